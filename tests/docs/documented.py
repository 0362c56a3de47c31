"""The commands that the documents show: those of ``sh`` blocks, and those after ``$`` with the output that is shown for them."""

import functools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "checkpoints/README.md", "helm/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
)

_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)    (?=\S)(?P<text>[^\n]+)\n(?=\n)")
_INLINE = re.compile(r"`((?:\.venv/bin/)?segtail|make)((?: [^`]*)?)`")


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it is shown, whole: lines that end with a backslash are joined. ``output`` is None where none is shown."""

    document: Path
    line: int
    text: str
    output: str | None = None

    @property
    def words(self) -> list[str]:
        """The words of it as a shell splits them, without what is set before it and without a comment."""
        return [*_words(self.text)]

    @property
    def section(self) -> str:
        """The heading below which it is, "" of one that is a paragraph of its own."""
        before = self.document.read_text(encoding="utf-8").splitlines()[: self.line]
        return next((line.lstrip("# ") for line in reversed(before) if line.startswith("## ")), "")

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return f"{self.document.relative_to(ROOT)}:{self.line}"


@functools.cache  # who looks for certain commands asks each of them
def _words(text: str) -> tuple[str, ...]:
    words = shlex.split(text.replace("\\\n", " "), comments=True)
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    return tuple(words)


def commands() -> list[Command]:
    """All of them, in the order of documents."""
    return [command for document in DOCUMENTS if document.is_file() for command in of_document(document)]


def of_document(document: Path) -> Iterator[Command]:
    """Those of one document: of its blocks first, then those that are a paragraph of their own."""
    text = document.read_text(encoding="utf-8")
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 2
        lines = [each.removeprefix(block["indent"]) for each in block["text"].splitlines()]
        if block["language"] == "sh":
            yield from _of_script(document, line, lines)
        elif block["language"] == "" and any(each.startswith("$ ") for each in lines):
            yield from _of_session(document, line, lines)
    for found in _INDENTED.finditer(_BLOCK.sub("", text)):
        yield Command(document, 0, found["text"])


def inline() -> Iterator[tuple[Path, str, list[str]]]:
    """Commands of segtail and make that are named in running text: document, program, words after it."""
    for document in DOCUMENTS:
        if document.is_file():
            for found in _INLINE.finditer(_BLOCK.sub("", document.read_text(encoding="utf-8"))):
                yield document, found[1].rpartition("/")[2], found[2].split()


def blocks(language: str) -> Iterator[tuple[Path, str]]:
    """All blocks in this language, each with its document."""
    for document in DOCUMENTS:
        if document.is_file():
            for block in _BLOCK.finditer(document.read_text(encoding="utf-8")):
                if block["language"] == language:
                    yield document, "".join(f"{line.removeprefix(block['indent'])}\n" for line in block["text"].splitlines())


def _of_script(document: Path, line: int, lines: list[str]) -> Iterator[Command]:
    joined, begun = "", line
    for number, each in enumerate(lines, start=line):
        begun = begun if joined else number
        joined += each
        if joined.endswith("\\"):
            joined += "\n"
            continue
        if shlex.split(joined, comments=True):
            yield Command(document, begun, joined)
        joined = ""


def _of_session(document: Path, line: int, lines: list[str]) -> Iterator[Command]:
    starts = [number for number, each in enumerate(lines) if each.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        output = "\n".join(lines[start + 1 : end]).strip("\n")
        yield Command(document, line + start, lines[start].removeprefix("$ "), output)
