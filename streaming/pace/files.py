"""Two small files on the driver's host: the schedule, which the driver leaves for the source, and the last look, which the source notes."""

import json
import os
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path

from streaming.pace.schedule import Expected, Schedule


@dataclass(frozen=True, slots=True)
class Look:
    """A look for work.

    ``at``: when it was over, by `time.monotonic`; ``number``: of the looks of this run of the query, from 1 on; ``idle``: it found nothing
    new, so that everything before it is in the metrics; ``first``: when the first one was over of those that followed each other at once up
    to it, because there was more than one micro-batch takes.
    """

    at: float
    number: int
    idle: bool
    first: float


def write_schedule(path: Path, schedule: Schedule) -> None:
    """Leave it, so that nobody reads half of it.

    Raises:
        OSError: it cannot be written.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(json.dumps(asdict(schedule)))
    temporary.replace(path)


def read_schedule(path: Path, now: float) -> Schedule | None:
    """The schedule; None where there is none that can be used, as of a time before the host was started."""
    try:
        fields = json.loads(path.read_text())
        expected = tuple(Expected(**each) for each in fields.pop("expected"))
        schedule = Schedule(**fields, expected=expected)
        numbers = [*fields.values(), *(number for each in expected for number in (each.at, each.period))]
        usable = all(map(isfinite, numbers)) and all(each.period > 0 for each in expected)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return schedule if usable and schedule.written <= now else None


def note_look(path: Path, look: Look) -> None:
    """Note a look in place of the one before: on a full disk there is still room for that.

    Raises:
        OSError: it cannot be written.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.pwrite(fd, f"{look.at:020.6f} {look.number:012} {look.idle:d} {look.first:020.6f}\n".encode(), 0)
    finally:
        os.close(fd)


def last_look(path: Path) -> Look | None:
    """The last look, None if there was none."""
    try:
        at, number, idle, first = path.read_text().split()
        return Look(float(at), int(number), idle == "1", float(first))
    except (FileNotFoundError, ValueError):  # the latter of an earlier version's
        return None
