"""Durations, sizes and addresses as settings are written: ``500ms``, ``15m``, ``128MiB``, ``127.0.0.1:9712``.

A value has one unit and is a whole number, so that it is written as it was read. Text that is not read again is made by `formatting`.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
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


def _split(text: str, form: str) -> tuple[int, str]:
    match = _NUMBER_AND_UNIT.fullmatch(text.strip())
    if match is None:
        raise ValueError(form)
    return int(match[1]), match[2]
