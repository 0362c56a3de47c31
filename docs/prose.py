"""Reads what people read, as proselint does: Markdown, and the sentences in the code. ``python -m docs.prose`` prints what breaks a rule.

proselint brings its checks and the way to declare more; prose.yaml beside this file says which of its checks run, and has our words.
Length and headings are rules on a block of text, which proselint does not know: they stand here.
"""

import ast
import re
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import click
import yaml
from markdown_it import MarkdownIt
from proselint import checks as of_proselint
from proselint.registry.checks import Check, engine
from proselint.registry.checks.types import PreferredForms

_ROOT = Path(__file__).parents[1]
_RULES = yaml.safe_load((_ROOT / "docs" / "prose.yaml").read_text(encoding="utf-8"))
_CODE = "name"  # stands for what is in backticks: one word, of which nothing is said
_END = re.compile(r"(?<![ (][a-z]\.[a-z])(?<!e\.g)(?<!i\.e)(?<!vs)[.!?][)\"]*\s+(?=[^a-z]|name\b)|;\s|:\s*\n|^name\b[^.:]{0,80}: ")
_ASIDE = re.compile(rf"\([^()]*\)|(?<={_CODE})(?:,| and| or) {_CODE}\b")  # counts as no words: what is in parentheses, a list of names
_WORD = re.compile(r"[^\W_][\w'/.,:-]*")


class Text(NamedTuple):
    """A block of text that somebody reads: a paragraph, a cell, a heading, a string."""

    file: str
    line: int
    words: str
    heading: bool = False


def of_markdown(file: str, source: str) -> Iterator[Text]:
    """Paragraphs, items, cells and headings; code only as a name within them."""
    heading, line = False, 1
    for token in MarkdownIt("commonmark").enable("table").parse(source):
        line = token.map[0] + 1 if token.map else line
        if token.type.endswith("_open"):
            heading = token.type == "heading_open"
        elif token.type == "inline":
            shown = (
                _CODE if each.type == "code_inline" else " " if each.type == "softbreak" else each.content for each in token.children or ()
            )
            yield Text(file, line, "".join(shown), heading)


def of_python(file: str, source: str) -> Iterator[Text]:
    """First lines of docstrings, and strings that have a sentence of four words at least."""
    tree = ast.parse(source)
    docstrings = set[ast.AST]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (told := ast.get_docstring(node)):
            docstrings.add(node.body[0].value)  # type: ignore[attr-defined]
            yield Text(file, node.body[0].lineno, re.sub(r"``[^`]*``|`[^`]*`", _CODE, told.partition("\n")[0]))
    within = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr | ast.Constant) and node not in docstrings | within:
            words = _string(node)
            if _is_prose(words):
                yield Text(file, node.lineno, words)


def _string(node: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else _CODE for part in node.values)


def _is_prose(words: str) -> bool:
    """A sentence, not a query, a pattern or markup: words with spaces between them, and nothing that only code has."""
    return bool(re.search(r"(?:[A-Za-z',]+ ){3}[a-z]", words)) and not re.search(r"[{}\\<>=|]|SELECT|://|\(\?|\n", words)


@cache
def _checks() -> list[Check]:
    """The chosen ones of proselint, and ours: words with the one to write instead, or why not."""
    kept = [each for each in of_proselint.__register__ if any(each.matches_partial(name) for name in _RULES["proselint"])]
    fancy = engine.Fancy()
    return [*kept, Check(PreferredForms(_RULES["words"]), fancy, "words", "'{1}': write {0}.")]


def found_in(texts: Iterable[Text]) -> Iterator[tuple[int, str]]:
    """What breaks a rule in the texts of a file, in words, with the line."""
    blocks = list(texts)
    joined = "\n\n".join(["", *(each.words for each in blocks), ""])
    starts = list(accumulate((len(each.words) + 2 for each in blocks), initial=2))
    for check in _checks():
        for result in check.check_with_flags(joined):
            at = bisect_right(starts, result.span[1] - 1) - 1
            if at < len(blocks):
                yield blocks[at].line, f"{result.check_path}: {result.message}"
    for text in blocks:
        yield from ((text.line, said) for said in (*_long_sentences(text), *(_heading(text.words) if text.heading else ())))


def _long_sentences(text: Text) -> Iterator[str]:
    most = _RULES["longest"].get(text.file, _RULES["longest"]["else"])
    for sentence in _END.split(text.words):
        if (length := len(_WORD.findall(_ASIDE.sub("", sentence)))) > most:
            yield f"longest: {length} words, {most} at most: {sentence.strip()[:60]}…"


def _heading(title: str) -> Iterator[str]:
    first, *others = title.split()
    if re.fullmatch("[A-Z][a-z]+ing", first) and first not in _RULES["nouns"]:
        yield f"headings: '{title}' begins with a participle"
    if any(re.fullmatch("[A-Z][a-z]+", word) and word not in _RULES["names"] for word in others):
        yield f"headings: '{title}' is not in sentence case"


def texts(file: str) -> Iterator[Text]:
    """All texts of a file."""
    read = of_markdown if file.endswith(".md") else of_python
    return read(file, (_ROOT / file).read_text(encoding="utf-8"))


def main() -> int:
    """Print each break of a rule with its place; the exit status is 1 if there is one."""
    listed = subprocess.run(["git", "ls-files", *_RULES["files"]], cwd=_ROOT, check=True, capture_output=True, text=True).stdout.split()
    broken = [f"{file}:{line}: {said}" for file in listed if (_ROOT / file).is_file() for line, said in found_in(texts(file))]
    for line in broken:
        click.echo(line)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
