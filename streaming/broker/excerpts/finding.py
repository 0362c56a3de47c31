"""A place that does not have Kafka's format: the file, the position, and what was expected."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FormatFlaw:
    """``position`` is a byte in the file, None for the whole file."""

    path: Path
    position: int | None
    what: str

    def __str__(self) -> str:
        place = "" if self.position is None else f" position {self.position}:"
        return f"{self.path}:{place} {self.what}"


Report = Callable[[FormatFlaw], None]
"""Takes a finding as soon as it is found; the work continues after it."""
