"""The words that an operator meets first: the glossary marks them, and each runbook links the first use of each to it.

Runbooks are read in terminals too, so the links are short: `[agent]` in the text, and where it leads at the end of the file.
"""

import re

from tests.docs.documented import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
RUNBOOKS = sorted(path for path in (ROOT / "docs" / "runbooks").glob("*.md") if path.name != "README.md")

WORDS = {
    "committed offset": "kafka",
    "coordinator": "kafka",
    "hanging transaction": "kafka",
    "high watermark": "kafka",
    "in-sync replicas": "kafka",
    "last stable offset": "kafka",
    "log dir": "kafka",
    "marker": "kafka",
    "metadata log": "kafka",
    "agent": "segtail",
    "backlog": "segtail",
    "job": "segtail",
    "journal": "segtail",
    "scrub": "segtail",
    "verdict": "segtail",
}
"""Each word, and the part of the glossary that has it."""

_WORD = rf"(?:{'|'.join(sorted(WORDS, key=len, reverse=True))})s?"
_PIECE = re.compile(
    rf"(?P<other>```.*?```|`[^`]*`|^#.*?$)|(?P<link>\[[^\]]*\](?:\([^)]*\))?)|(?P<word>(?<![\w-]){_WORD}(?![\w-]))",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_LABEL = re.compile(rf"\[({_WORD})\](?!\()", re.IGNORECASE)
_DEFINITION = re.compile(r"^\[[^\]]+\]: \.\./glossary\.md#\w+\n", re.MULTILINE)


def _singular(word: str) -> str:
    word = word.lower()
    return word if word in WORDS else word.removesuffix("s")


def linked(text: str) -> str:
    """A runbook with the first use of each word as a link. What is code, a heading or a link already stays."""
    seen: set[str] = set()

    def link(found: re.Match[str]) -> str:
        if found["link"]:
            seen.update(_singular(word) for word in re.findall(_WORD, found["link"], re.IGNORECASE))
        if not found["word"] or _singular(found["word"]) in seen:
            return found[0]
        seen.add(_singular(found["word"]))
        return f"[{found[0]}]"

    body = _PIECE.sub(link, _DEFINITION.sub("", text)).rstrip("\n")
    labels = sorted({label.lower() for label in _LABEL.findall(body)})
    definitions = "".join(f"[{label}]: ../glossary.md#{WORDS[_singular(label)]}\n" for label in labels)
    return f"{body}\n" + (f"\n{definitions}" if definitions else "")
