"""Durations, sizes, times and addresses: as options are written, and as people read them; and tables of text."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import dropwhile
from typing import Self

DURATION_FORM = "a duration such as 0s, 500ms, 15m, 24h or 7d"
SIZE_FORM = "a size such as 65536, 512KiB, 128MiB or 1GiB"

_DURATIONS = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}
_SIZES = {"TiB": 1 << 40, "GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "": 1}
_NUMBER_AND_UNIT = re.compile(r"([0-9]{1,15}) ?([A-Za-z]*)")

NONE = "-"
"""Stands for a value that is absent. It is never left out, so that every row of a table has a word in every column."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LENGTHS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server. Port 0 takes any free port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``HOST:PORT``; an IPv6 host is in brackets.

        Raises:
            ValueError: it has another format.
        """
        match = re.fullmatch(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:\[\]]+)):(?P<port>[0-9]{1,5})", text)
        if match is None or int(match["port"]) >= 1 << 16:
            raise ValueError(f"not HOST:PORT: {text}")
        return cls(match["v6"] or match["name"], int(match["port"]))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_duration(text: str) -> timedelta:
    """Parse a number with one of the units ms, s, m, h, d.

    Raises:
        ValueError: it has another format or is longer than Python can express.
    """
    number, unit = _split(text, DURATION_FORM)
    if unit not in _DURATIONS:
        raise ValueError(DURATION_FORM)
    try:
        return number * _DURATIONS[unit]
    except OverflowError as error:
        raise ValueError(DURATION_FORM) from error


def _split(text: str, form: str) -> tuple[int, str]:
    match = _NUMBER_AND_UNIT.fullmatch(text.strip())
    if match is None:
        raise ValueError(form)
    return int(match[1]), match[2]


def write_duration(duration: timedelta) -> str:
    """Write whole milliseconds with the largest unit that divides them."""
    if not duration:
        return "0s"
    for unit, length in _DURATIONS.items():
        if duration % length == timedelta(0):
            return f"{duration // length}{unit}"
    raise ValueError(f"{duration} is not a whole number of milliseconds")


def parse_size(text: str) -> int:
    """Parse bytes: a plain number, or one with a unit of KiB, MiB, GiB, TiB.

    Raises:
        ValueError: it has another format.
    """
    number, unit = _split(text, SIZE_FORM)
    if unit not in _SIZES:
        raise ValueError(SIZE_FORM)
    return number * _SIZES[unit]


def write_size(size: int) -> str:
    """Write bytes with the largest unit that divides them."""
    if size == 0:
        return "0"
    return next(f"{size // length}{unit}" for unit, length in _SIZES.items() if size % length == 0)


def format_size(count: int) -> str:
    """Bytes in the largest binary unit that is not larger than they are: ``939 B``, ``1.5 GiB``."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if round(value, 1) < 1024:
            break
        value, unit = value / 1024, larger
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"


@dataclass(frozen=True, slots=True)
class TimeWords:
    """Points in time in a sentence as of ``now_ms``, Unix milliseconds. ``lasting``: without ages, in one that is read later.

    Text for people: durations, sizes, times, names and tables, each written in one way. JSON, metrics and the fields of log messages
    are for programs, and carry plain numbers.
    """

    now_ms: int
    lasting: bool = False

    def at(self, at_ms: int) -> str:
        """A point in time with its age: ``2026-11-20T03:27:04Z (3m 20s ago)``."""
        return self.with_note(at_ms, self._age(at_ms))

    def with_note(self, at_ms: int, note: str) -> str:
        """The same with something else in brackets that is only true now."""
        return format_time(at_ms) if self.lasting else f"{format_time(at_ms)} ({note})"

    def ago(self, at_ms: int) -> str:
        """When it was: ``3m 20s ago``, or ``at 2026-11-20T03:27:04Z``."""
        return f"at {format_time(at_ms)}" if self.lasting else self._age(at_ms)

    def _age(self, at_ms: int) -> str:
        return format_age((self.now_ms - at_ms) / 1000)


def format_time(milliseconds: float, timespec: str = "seconds") -> str:
    """A point in time, given in Unix milliseconds, as ISO 8601 in UTC: ``2026-11-20T03:27:04Z``.

    A time that has no year of four digits, as a client may claim, is written as the number it is. ``timespec``: see `datetime.isoformat`.
    """
    try:
        time = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return time.isoformat(timespec=timespec).replace("+00:00", "Z")


def format_age(seconds: float) -> str:
    """How long ago something was, ``3m 20s ago``, or how soon it will be if the age is below zero, ``in 9m 47s``; ``in <1s`` within one."""
    length = "<1s" if 0 < round(abs(seconds) * 1000) < 1000 else format_duration(abs(seconds))
    return f"{length} ago" if seconds >= 0 else f"in {length}"


def format_duration(seconds: float) -> str:
    """Seconds in the largest unit and the one below it if that is not zero: ``3m 20s``, ``2h``, ``250ms``. Never below zero."""
    milliseconds = max(0, round(seconds * 1000))
    if 0 < milliseconds < 1000:
        return f"{milliseconds}ms"
    rest, counts = round(milliseconds / 1000), []
    for unit, length in _LENGTHS:
        count, rest = divmod(rest, length)
        counts.append((count, unit))
    largest = list(dropwhile(lambda each: not each[0], counts))[:2]
    return " ".join(f"{count}{unit}" for count, unit in largest if count) or "0s"


def format_name(text: str, most: int = 100) -> str:
    """A name of any length as one word: as `format_word`, but only its beginning and its length if it is longer than ``most``."""
    return format_word(text) if len(text) <= most else f"{format_word(text[:most])}...({len(text):,} characters)"


def format_word(text: str) -> str:
    """A text that a client has chosen as one word without control characters: quoted as in JSON if it is none."""
    printable = text.isprintable()
    return text if text and printable and " " not in text else json.dumps(text, ensure_ascii=not printable)


def format_count(count: int, noun: str) -> str:
    """A number of things: ``1 record``, ``1,200 records``, ``1 log dir``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def format_be(count: int) -> str:
    """The verb after a number of things: ``is`` or ``are``."""
    return "is" if count == 1 else "are"


def capitalized(text: str) -> str:
    """The same with a capital letter at its beginning, as sentences have it; "" stays ""."""
    return f"{text[:1].upper()}{text[1:]}"


def format_list(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are: ``a, b and 1,200 more``."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def format_table(rows: Iterable[Sequence[str | None]], right: Collection[str] = ()) -> Iterator[str]:
    """Rows below each other, two spaces between columns; None is an empty cell. Nothing is cut off: names are there to be copied.

    Args:
        rows: the first one is the heads; each has as many cells.
        right: heads of the columns that are aligned at their right, as numbers are.
    """
    columns = [[NONE if cell is None else cell for cell in column] for column in zip(*rows, strict=True)]
    sides = (">" if column[0] in right else "<" for column in columns)
    line = "  ".join(f"{{:{side}{max(map(len, column))}}}" for side, column in zip(sides, columns, strict=True)).format
    return (line(*row).rstrip() for row in zip(*columns, strict=True))


def plain_lines(text: str) -> str:
    """The same for a text of several lines."""
    return text if text.isprintable() else "\n".join(map(plain, text.split("\n")))


def plain(text: str) -> str:
    """A text with what does not print as an escape, such as ``\\x1b``: control and bidirectional characters, surrogates."""
    return text if text.isprintable() else "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
