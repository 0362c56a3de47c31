"""Every document is found from the index, and the alert that docs/alerts.md shows is that of the rule."""

import re

from tests.docs.documented import ROOT

DOCS = ROOT / "docs"
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def test_the_index_leads_to_every_document() -> None:
    linked = {(DOCS / path).resolve() for path, _ in _LINK.findall((DOCS / "README.md").read_text())}
    documents = {*DOCS.glob("*.md"), *(DOCS / "internals").glob("*.md"), DOCS / "runbooks" / "README.md"} - {DOCS / "README.md"}
    assert sorted(path.name for path in documents - linked) == []


def test_the_alert_that_is_shown_is_worded_as_the_rule() -> None:
    (shown,) = re.findall(r"^FIRING (\w+): .*\n((?:    .*\n)+)", (DOCS / "alerts.md").read_text(), re.MULTILINE)
    rule = (ROOT / "conf" / "alerts" / f"{shown[0]}.yaml").read_text()
    sentences = [
        part for part in re.split(r"[.:,] +|\n +|: \d+|topic payments", shown[1]) if len(part.split()) > 4 and "kafka-" not in part
    ]
    assert len(sentences) > 4
    assert [part for part in sentences if part.strip(" .") not in rule] == []
