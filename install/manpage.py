"""Prints the man page segtail(1), made from the commands and their options: ``python -m install.manpage``.

It is one page for all commands. docs/segtail.1 is what it prints (`make man`).
"""

import re
import sys
from collections.abc import Iterator

import click

from streaming import __version__
from streaming.terminal.cli.app import COMMANDS, segtail

_LITERAL = re.compile(r"``?([^`]+)``?")
_GLYPHS = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}
_EXAMPLES = (
    ("What a broker's disk keeps, and what Kafka is about to delete:", "segtail retention --log-dirs /var/lib/kafka/data"),
    ("Whether a segment is whole:", "segtail dump --verify /var/lib/kafka/data/orders-3"),
    ("An agent beside a broker:", "segtail agent --log-dirs /var/lib/kafka/data --journal /var/lib/segtail/journal"),
    ("A job that asks this agent:", "segtail run --agents 127.0.0.1:8815"),
)


def page() -> Iterator[str]:
    """The lines of the page."""
    root = click.Context(segtail, info_name="segtail")
    about, *more = _paragraphs(segtail.help)
    yield f'.TH SEGTAIL 1 "" "segtail {__version__}" "User Commands"'
    yield ".SH NAME"
    yield f"segtail \\- {escape(about[0].lower() + about[1:].removesuffix('.'))}"
    yield ".SH SYNOPSIS"
    yield f".B segtail\n{escape(' '.join(segtail.collect_usage_pieces(root)))}"
    yield ".SH DESCRIPTION"
    yield from _text([about, *more])
    yield ".SH COMMANDS"
    for name in COMMANDS:
        yield from _command(name, root)
    epilog, status = _paragraphs(segtail.epilog)
    yield ".SH ENVIRONMENT"
    yield from _text([epilog])
    yield ".SH EXIT STATUS"
    yield from _text([status.removeprefix("Exit status: ").capitalize(), "Where a command has others, its part above says so."])
    yield ".SH EXAMPLES"
    for words, example in _EXAMPLES:
        yield from _text([words])
        yield from (".PP", ".RS 4", ".EX", escape(example), ".EE", ".RE")


def _command(name: str, root: click.Context) -> Iterator[str]:
    command = segtail.get_command(root, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=root)
    yield f".SS segtail {escape(name)} {escape(' '.join(command.collect_usage_pieces(context)))}"
    yield from _text(_paragraphs(command.help))
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            yield f".TP\n\\fB{escape(record[0])}\\fP\n{_inline(record[1])}"


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


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in page())
