"""A column of a view, and how times, sizes and counts that may not be known are written in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from streaming.formatting import NONE, format_age, format_duration, format_name, format_size, format_time

BLOCKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Times:
    """How points in time are written: as ages at ``now_ms``, or in UTC."""

    now_ms: int
    relative: bool

    def of(self, at_ms: int) -> str:
        """A point in time, Unix milliseconds; -1 is none."""
        if at_ms < 0:
            return NONE
        return format_age((self.now_ms - at_ms) / 1000) if self.relative else format_time(at_ms)

    def both(self, at_ms: int) -> str:
        """Both ways, for a place with room for it."""
        return NONE if at_ms < 0 else f"{format_time(at_ms)}, {format_age((self.now_ms - at_ms) / 1000)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column. ``cell``: its text for a row of the view.

    ``letter``: with shift it sorts by the field ``sort``, ``descends`` first; "" if it cannot be sorted by. ``least``: the width down to
    which it gives way, 0 if it does not. ``keeps_end``: what is cut off is in the middle.
    """

    heading: str
    cell: Callable[[Any, Times], str]
    letter: str = ""
    sort: str = ""
    descends: bool = True
    right: bool = False
    least: int = 0
    keeps_end: bool = False

    @property
    def name(self) -> str:
        """The heading where no key sorts: in it, the letter within a word is a small one."""
        at = self.heading.find(self.letter) if self.letter else 0
        return self.heading[:at] + self.heading[at : at + 1].lower() + self.heading[at + 1 :] if at > 0 else self.heading


def count(value: float) -> str:
    """A whole number; below zero it is not known."""
    return NONE if value < 0 else f"{round(value):,}"


def number(value: int) -> str:
    """An id or an offset, to be copied."""
    return NONE if value < 0 else str(value)


def rate(value: float) -> str:
    """Things a second."""
    return NONE if value < 0 else f"{value:,.1f}" if 0 < value < 10 else f"{value:,.0f}"


def size(value: float) -> str:
    """Bytes."""
    return NONE if value < 0 else format_size(round(value))


def length(milliseconds: int) -> str:
    """How long something takes or took."""
    return NONE if milliseconds < 0 else format_duration(milliseconds / 1000)


def word(text: str) -> str:
    """A name, or nothing."""
    return format_name(text) if text else NONE


def place(topic: str, partition: int) -> str:
    """A partition."""
    return f"{format_name(topic)}-{partition}"


def curve(values: Sequence[float], width: int) -> str:
    """Values as a line of blocks, each the largest of its stretch against the largest of all; what is not known is a space."""
    if not values or width < 1:
        return ""
    top = max(values)
    width = min(width, len(values))
    parts = [values[len(values) * at // width : len(values) * (at + 1) // width] for at in range(width)]
    return "".join(" " if max(part) < 0 else BLOCKS[int(max(part) / top * (len(BLOCKS) - 1)) if top > 0 else 0] for part in parts)
