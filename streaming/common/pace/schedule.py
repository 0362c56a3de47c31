"""The schedule: which scrapes the exporter expects, and when the source therefore checks for work next.

All times are seconds of `time.monotonic`: all processes of a host share this clock, and nobody sets it.
"""

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import ceil, isfinite
from pathlib import Path

from streaming.common.whole_files import write_whole

QUICK_SECONDS = 1.0
"""The pace while a person watches; also the shortest pace of all."""

FALLBACK_SECONDS = 10.0
"""The longest pause if some scraper's times are not known."""

LONGEST_SECONDS = 30.0
"""The longest pause of all: Spark ends a Python worker that was idle for a minute, and a new one costs a second of CPU."""

LATE_SECONDS = 2.0
"""A scrape may come so much later than expected. Scrapes that are due within so long share a micro-batch."""


class PaceReason(StrEnum):
    """Why the pace is what it is."""

    FIXED = "fixed"
    FIRST_MINUTE = "first_minute"
    LIVE = "live"
    SCRAPE = "scrape"
    FALLBACK = "fallback"


@dataclass(frozen=True, slots=True)
class Pace:
    """The longest pause between two checks for work, in seconds, and the reason for it."""

    seconds: float
    reason: PaceReason


@dataclass(frozen=True, slots=True)
class ExpectedScrape:
    """A scrape that is expected ``at`` a time, and every ``period`` seconds from then on."""

    at: float
    period: float

    def after(self, time: float) -> float:
        """The first of these scrapes after ``time``."""
        return self.at if self.at > time else self.at + (int((time - self.at) / self.period) + 1) * self.period


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The expected scrapes, as known when the schedule was ``written``.

    ``lead``: the check for work has to begin so long before a scrape. ``young_until``: until then the JVM is young and every micro-batch
    expensive. ``live_until``: until then a person watches. ``restless_until``: until then a scraper may come whose times are not known.
    """

    written: float
    lead: float
    young_until: float = 0.0
    live_until: float = 0.0
    restless_until: float = 0.0
    expected: tuple[ExpectedScrape, ...] = ()

    def pace(self, now: float) -> Pace:
        """The pace at ``now``."""
        if now < self.young_until:
            return Pace(QUICK_SECONDS, PaceReason.FIRST_MINUTE)
        if now < self.live_until:
            return Pace(QUICK_SECONDS, PaceReason.LIVE)
        if self._is_sure(now):
            return Pace(min(_part(each.period, LONGEST_SECONDS) for each in self.expected), PaceReason.SCRAPE)
        return Pace(FALLBACK_SECONDS, PaceReason.FALLBACK)

    def due(self, since: float, now: float) -> float:
        """When the next check for work is due after the one at ``since``; never more than `LONGEST_SECONDS` later.

        A pause that would be longer is divided into equal parts, so that the last check is the one right before the scrape.
        """
        if now < max(self.young_until, self.live_until):
            return since + QUICK_SECONDS
        longest = LONGEST_SECONDS if self._is_sure(now) else FALLBACK_SECONDS
        pause = min((at - since for at in self._checks(since, now)), default=longest)
        return since + max(QUICK_SECONDS, _part(pause, longest))

    def _is_sure(self, now: float) -> bool:
        """Whether the times of all scrapers are known, and none of them is late."""
        return bool(self.expected) and now >= self.restless_until and all(now <= each.at + LATE_SECONDS for each in self.expected)

    def _checks(self, since: float, now: float) -> Iterator[float]:
        """For each expected scrape, when the check that it needs is due. The check at ``since`` also serves scrapes soon after it."""
        for each in self.expected:
            if now <= each.at + LATE_SECONDS:
                yield each.after(since + self.lead + min(LATE_SECONDS, each.period / 2)) - self.lead


def due_without(since: float) -> float:
    """When the next check is due if there is no schedule."""
    return since + FALLBACK_SECONDS


def _part(pause: float, longest: float) -> float:
    """``pause``, or an equal part of it that is no longer than ``longest``."""
    return pause / max(1, ceil(pause / longest))


# --- two small files on the driver's host: the driver writes the schedule for the source, the source writes its last check for work. By the
# check it is known how old the newest data in the metrics is.


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
