"""Something that is not as Kafka writes it: in which file, where, and what was expected."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Finding:
    """``position`` is a byte in the file, None where the whole file is meant."""

    path: Path
    position: int | None
    what: str

    def __str__(self) -> str:
        place = "" if self.position is None else f" position {self.position}:"
        return f"{self.path}:{place} {self.what}"


Report = Callable[[Finding], None]
"""Takes a finding the moment it is found: the work goes on behind it."""
