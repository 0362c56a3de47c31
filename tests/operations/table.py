"""The tables of docs/alerts.md, which say what fires when, as values."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "alerts.md"
COLUMNS = ("event", "what happens", "fires", "muted", "resolves")
MUTES = ("while this fires", "these are muted", "of the same")

_NAME = re.compile(r"`(\w+)`")
_NOTHING = "\N{EN DASH}"
_BORDER = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One step of an event. ``fires`` reach somebody, ``muted`` fire and reach nobody, ``resolves`` fire no longer when it is over."""

    event: str
    step: str
    fires: frozenset[str]
    muted: frozenset[str]
    resolves: frozenset[str]


def rows(document: str) -> Iterator[Row]:
    """Those of all events, in their order.

    Raises:
        ValueError: a cell holds something else than names of alerts, or the sign for none.
    """
    event = ""
    for named, step, *names in body(document, COLUMNS):
        event = named or event  # named in its first row alone
        fires, muted, resolves = map(_names, names)
        yield Row(event=event, step=step, fires=fires, muted=muted, resolves=resolves)


def body(document: str, columns: tuple[str, ...]) -> Iterator[list[str]]:
    """The rows of all tables with these columns."""
    inside = False
    for line in document.splitlines():
        cells = [cell.strip().replace(r"\|", "|") for cell in _BORDER.split(line.strip().strip("|"))] if line.startswith("|") else []
        if tuple(cells) == columns:
            inside = True
        elif not cells:
            inside = False
        elif inside and not set(line) <= set("|- "):
            yield cells


def _names(cell: str) -> frozenset[str]:
    found = _NAME.findall(cell)
    if cell != (", ".join(f"`{name}`" for name in found) or _NOTHING):
        raise ValueError(f"{cell!r} is not a list of alerts")
    return frozenset(found)


def of_document() -> list[Row]:
    """All rows of docs/alerts.md."""
    return list(rows(DOCUMENT.read_text(encoding="utf-8")))
