"""The man pages, made from the commands and their options: segtail(1) is an overview, and each command has its own.

``python -m install.manpage DIR`` writes them (`make man`: into docs/man); with ``--check`` it says which of those in DIR are not current.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from streaming import __version__
from streaming.terminal.cli.app import COMMANDS, segtail

_LITERAL = re.compile(r"``?([^`]+)``?")
_GLYPHS = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}
_EXAMPLES = (
    ("What a broker's disk keeps, and what Kafka is about to delete:", "segtail retention --log-dirs /var/lib/kafka/data"),
    ("Whether a segment is whole:", "segtail dump --verify /var/lib/kafka/data/orders-3"),
    ("An agent beside a broker:", "segtail agent --log-dirs /var/lib/kafka/data"),
    ("A job that asks this agent:", "segtail run --agents 127.0.0.1:8815"),
)


def pages() -> dict[str, str]:
    """The text of each page, by the name of its file."""
    root = click.Context(segtail, info_name="segtail")
    written = {"segtail.1": _overview()} | {f"segtail-{name}.1": _page_of(name, root) for name in COMMANDS}
    return {name: "".join(f"{line}\n" for line in lines) for name, lines in written.items()}


def _overview() -> Iterator[str]:
    root = click.Context(segtail, info_name="segtail")
    about, *more = _paragraphs(segtail.help)
    yield _title("segtail")
    yield ".SH NAME"
    yield f"segtail \\- {escape(about[0].lower() + about[1:].removesuffix('.'))}"
    yield ".SH SYNOPSIS"
    yield f".B segtail\n{escape(' '.join(segtail.collect_usage_pieces(root)))}"
    yield ".SH DESCRIPTION"
    yield from _text([about, *more])
    yield ".SH COMMANDS"
    for name, words in COMMANDS.items():
        yield f".TP\n\\fBsegtail\\-{escape(name)}\\fP(1)\n{_inline(words)}"
    epilog, status = _paragraphs(segtail.epilog)
    yield ".SH ENVIRONMENT"
    yield from _text([epilog])
    yield ".SH EXIT STATUS"
    yield from _text([status.removeprefix("Exit status: ").capitalize(), "Where a command has others, its page says so."])
    yield ".SH EXAMPLES"
    for words, example in _EXAMPLES:
        yield from _text([words])
        yield from (".PP", ".RS 4", ".EX", escape(example), ".EE", ".RE")


def _page_of(name: str, root: click.Context) -> Iterator[str]:
    command = segtail.get_command(root, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=root)
    yield _title(f"segtail-{name}")
    yield ".SH NAME"
    words = COMMANDS[name].removesuffix(".")
    yield f"segtail\\-{escape(name)} \\- {escape(words[0].lower() + words[1:])}"
    yield ".SH SYNOPSIS"
    yield f".B segtail {escape(name)}\n{escape(' '.join(command.collect_usage_pieces(context)))}"
    yield ".SH DESCRIPTION"
    yield from _text([*_paragraphs(command.help), *_paragraphs(command.epilog)])
    yield ".SH OPTIONS"
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            yield f".TP\n\\fB{escape(record[0])}\\fP\n{_inline(record[1])}"

    yield ".SH SEE ALSO"
    yield "\\fBsegtail\\fP(1)"


def _title(name: str) -> str:
    return f'.TH {escape(name.upper())} 1 "" "segtail {__version__}" "User Commands"'


def _paragraphs(text: str | None) -> list[str]:
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text or "") if part.strip()]


def _text(paragraphs: list[str]) -> Iterator[str]:
    for each in paragraphs:
        yield f".PP\n{_inline(each)}"


def _inline(text: str) -> str:
    """A paragraph on a line, where what is in backquotes is bold."""
    parts = _LITERAL.split(" ".join(text.split()))
    return "".join(f"\\fB{escape(part)}\\fP" if number % 2 else escape(part) for number, part in enumerate(parts))


def escape(text: str) -> str:
    """The text as roff shows it: what is a request, a hyphen or an escape to roff is one to nobody."""
    shown = "".join(_GLYPHS.get(char, char) if char < "\x7f" else f"\\[u{ord(char):04X}]" for char in text)
    return f"\\&{shown}" if shown.startswith(".") else shown


def write(folder: Path) -> int:
    """Write the pages, and remove those of commands that are no more."""
    made = pages()
    for file in folder.glob("*.1"):
        if file.name not in made:
            file.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


def check(folder: Path) -> int:
    """1 if a page is not current; their names go to stderr."""
    made, there = pages(), {file.name: file.read_text(encoding="utf-8") for file in folder.glob("*.1")}
    stale = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
    if stale:
        sys.stderr.write(f"{', '.join(stale)} of {folder} not current: make man\n")
    return 1 if stale else 0


if __name__ == "__main__":
    *checking, folder = sys.argv[1:]
    sys.exit(check(Path(folder)) if checking else write(Path(folder)))
