"""Every document is found: from the index, and a section of the long reference from its contents. The overview stays short."""

import re

from tests.docs.documented import ROOT
from tests.docs.test_links import headings

DOCS = ROOT / "docs"
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def test_the_index_leads_to_every_document() -> None:
    linked = {(DOCS / path).resolve() for path, _ in _LINK.findall((DOCS / "README.md").read_text())}
    documents = {*DOCS.glob("*.md"), *(DOCS / "internals").glob("*.md"), DOCS / "runbooks" / "README.md"} - {DOCS / "README.md"}
    assert sorted(path.name for path in documents - linked) == []


def test_the_reference_names_every_section_in_its_contents() -> None:
    reference = DOCS / "internals" / "architecture.md"
    contents = reference.read_text().partition("\n## ")[0]
    assert headings(reference) - {"architecture"} - {heading for _, heading in _LINK.findall(contents)} == set()


def test_how_it_works_is_read_in_ten_minutes() -> None:
    assert len((DOCS / "how-it-works.md").read_bytes()) <= 10_000
