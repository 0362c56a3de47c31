"""One word for one thing: the glossary has each once, in order, and its own words are those of the code."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").replace("**", "")  # the marks of those that operators meet


def test_the_glossary_is_in_order_and_says_each_word_once() -> None:
    parts = [re.findall(r"^- ([^:]+): ", part, re.MULTILINE) for part in GLOSSARY.split("\n## ")[1:]]
    assert [listed for listed in parts if listed != sorted(listed, key=str.lower)] == []
    terms = [term for listed in parts for term in listed]
    assert len(set(terms)) == len(terms) > 50


def test_the_glossary_s_own_words_are_words_of_the_code() -> None:
    own = re.findall(r"^- ([\w ]+?)(?: \([^)]*\))?: ", GLOSSARY.partition("## segtail")[2], re.M)
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "streaming").rglob("*.py")).lower().replace("_", " ")
    assert len(own) > 30
    assert [term for term in own if not re.search(rf"\b{term.lower()}", code)] == []
