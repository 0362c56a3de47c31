"""What is done with batches that are damaged: as Spark's file sources do by their option ``mode``."""

import logging
from enum import StrEnum
from pathlib import Path

from streaming.errors import FormatError

log = logging.getLogger(__name__)

_MOST_LOGGED = 100
"""So many places of one task are logged one by one: a damaged disk may have a million."""


class OnDamage(StrEnum):
    """What becomes of a damaged batch."""

    READ = "read"  # the records of it that can be read come
    LEAVE_OUT = "leave out"
    FAIL = "fail"


class RecordDamage:
    """The damage that one task met. Each place is logged with file and position, and counted.

    The place is in the text of a message: in a Python worker of Spark nobody has set up how other fields are written.
    """

    def __init__(self, on_damage: OnDamage) -> None:
        self.on_damage = on_damage
        self.places = 0
        """So many places were damaged."""
        self._last: tuple[Path, int | None] | None = None

    def found(self, path: Path, position: int | None, what: str) -> None:
        """A place that is damaged. What else is wrong with the same batch is said once.

        Raises:
            FormatError: damage makes the query fail.
        """
        if (path, position) == self._last:
            return
        self._last = path, position
        place = str(path) if position is None else f"{path}: position {position}"
        if self.on_damage is OnDamage.FAIL:
            raise FormatError(f"{place}: {what}; with the option mode=PERMISSIVE what can be read is read")
        self.places += 1
        if self.places <= _MOST_LOGGED:
            log.warning("damaged: %s: %s", place, what)

    def close(self) -> None:
        """Say how much it was."""
        if self.places:
            kept = "records of it that can be read were read" if self.on_damage is OnDamage.READ else "damaged batches were left out"
            log.warning("%d damaged places in this task's segments; %s", self.places, kept)
