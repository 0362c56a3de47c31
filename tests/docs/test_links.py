"""A link from one document to another leads somewhere: the file is there, and so is the heading in it."""

import re
from pathlib import Path

from tests.docs.documented import DOCUMENTS
from tests.tables import each_row

_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
_DEFINITION = re.compile(r"^\[[^\]]+\]: (?!https?:)([^#\s]*)(?:#(\S*))?$", re.MULTILINE)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def headings(document: Path) -> set[str]:
    """The anchors of a document, as code forges make them of its headings."""
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@each_row("document", [path for path in DOCUMENTS if path.is_file()])
def test_every_link_leads_somewhere(document: Path) -> None:
    wrong = []
    text = _CODE.sub("", document.read_text(encoding="utf-8"))
    for path, heading in _LINK.findall(text) + _DEFINITION.findall(text):
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (heading and target.suffix == ".md" and heading not in headings(target)):
            wrong.append(f"{path}#{heading}")
    assert wrong == []
