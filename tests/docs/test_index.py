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


def test_the_alert_that_the_readme_shows_is_worded_as_the_rule() -> None:
    (shown,) = re.findall(r"^FIRING (\w+): .*\n((?:    .*\n)+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    rule = (ROOT / "conf" / "alerts" / f"{shown[0]}.yaml").read_text()
    sentences = [
        part for part in re.split(r"[.:,] +|\n +|: \d+|topic payments", shown[1]) if len(part.split()) > 4 and "kafka-" not in part
    ]
    assert len(sentences) > 4
    assert [part for part in sentences if part.strip(" .") not in rule] == []
