"""Two small files on the driver's host: the driver writes the schedule for the source, the source writes its last check for work.

By the check it is known how old the newest data in the metrics is.
"""

import json
import logging
import os
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path

from streaming.common.pace.schedule import ExpectedScrape, Schedule
from streaming.common.whole_files import write_whole

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkCheck:
    """One check for work by the source.

    ``at``: when it ended, by `time.monotonic`. ``number``: counts the checks of this run of the query, from 1 on. ``idle``: it found
    nothing new, so everything before it is in the metrics. ``first``: when the first check of its series ended. The checks of a series
    follow each other at once, because there was more than one micro-batch takes.
    """

    at: float
    number: int
    idle: bool
    first: float


def write_schedule(path: Path, schedule: Schedule) -> None:
    """Write the schedule atomically: nobody reads half of it.

    Raises:
        OSError: it cannot be written.
    """
    write_whole(path, json.dumps(asdict(schedule)).encode(), lasting=False)


def read_schedule(path: Path, now: float) -> Schedule | None:
    """The schedule; None if it is missing or cannot be used, for example because it was written before the host was started."""
    try:
        fields = json.loads(path.read_text())
        expected = tuple(ExpectedScrape(**each) for each in fields.pop("expected"))
        schedule = Schedule(**fields, expected=expected)
        numbers = [*fields.values(), *(number for each in expected for number in (each.at, each.period))]
        usable = all(map(isfinite, numbers)) and all(each.period > 0 for each in expected)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return schedule if usable and schedule.written <= now else None


def write_check(path: Path, check: WorkCheck) -> None:
    """Overwrite the previous check in the file: this needs no new space, so it works on a full disk too.

    Raises:
        OSError: it cannot be written.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(fd, f"{check.at:020.6f} {check.number:012} {check.idle:d} {check.first:020.6f}\n".encode(), 0)
    finally:
        os.close(fd)


def last_check(path: Path) -> WorkCheck | None:
    """The last check, None if there was none."""
    try:
        at, number, idle, first = path.read_text().split()
        return WorkCheck(float(at), int(number), idle == "1", float(first))
    except (FileNotFoundError, ValueError):  # ValueError: an earlier version wrote the file
        return None
    except OSError as error:  # no descriptor is free, or the disk fails: neither a scrape nor the query ends for this
        log.warning("the last check for work cannot be read", extra={"path": str(path), "error": str(error)})
        return None


class Freshness:
    """How old the newest data of one query is, over all its runs: the time since the last check for work whose data is completely there.

    Spark's thread calls `arrived`, scrapes call `age`.
    """

    def __init__(self, checks: Path) -> None:
        self._checks = checks
        self._check: WorkCheck | None = None

    def arrived(self) -> WorkCheck | None:
        """A micro-batch is in the metrics. Returns the check that planned it, which is the last check; None if it is not known."""
        self._check = last_check(self._checks)
        return self._check

    def age(self, now: float) -> float | None:
        """The age in seconds at ``now``, a time of `time.monotonic`; None as long as nothing is known."""
        last = last_check(self._checks)
        known = last if last is not None and last.idle else self._check
        return None if known is None else max(0.0, now - known.at)
