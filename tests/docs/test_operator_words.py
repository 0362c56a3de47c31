"""Runbooks link the first use of the words that the glossary marks."""

import re
from pathlib import Path

from tests.docs.operator_words import GLOSSARY, RUNBOOKS, WORDS, linked
from tests.tables import each_row


@each_row("runbook", RUNBOOKS)
def test_a_runbook_links_the_first_use_of_each(runbook: Path) -> None:
    assert linked(runbook.read_text(encoding="utf-8")) == runbook.read_text(encoding="utf-8"), "make docs"


def test_the_glossary_marks_them_and_no_others() -> None:
    parts = GLOSSARY.read_text(encoding="utf-8").split("\n## ")[1:]
    marked = {(term, part.partition("\n")[0].lower()) for part in parts for term in re.findall(r"^\| \*\*(.+?)\*\* \|", part, re.MULTILINE)}
    assert len(marked) == len(WORDS)
    assert all(any(word in term and WORDS[word] == part for word in WORDS) for term, part in marked)


def test_only_the_first_use_outside_of_code_and_headings_is_a_link() -> None:
    text = "## Agent\n\n`agent` An agent, agents and a [scrub](x.md); scrubs.\n"
    assert linked(text) == "## Agent\n\n`agent` An [agent], agents and a [scrub](x.md); scrubs.\n\n[agent]: ../glossary.md#segtail\n"
    assert linked(linked(text)) == linked(text)
