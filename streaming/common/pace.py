"""The exporter's side of the pace: who requests pages, and the schedule that comes of it, as the source follows it."""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import ceil, inf, isfinite
from pathlib import Path
from statistics import median
from threading import Lock

from streaming.common.whole_files import write_whole

log = logging.getLogger(__name__)

QUICK_SECONDS = 1.0
"""The pace while a person watches; also the shortest pace of all."""

FALLBACK_SECONDS = 10.0
"""The longest pause if some scraper's times are not known."""

LONGEST_SECONDS = 30.0
"""The longest pause of all: Spark ends a Python worker that was idle for a minute, and a new one costs a second of CPU."""

LATE_SECONDS = 2.0
"""A scrape may come so much later than expected. Scrapes that are due within so long share a micro-batch."""

AS_LEARNED = 3
"""So many scrapes in a row have to come at the same pauses as before. Then the pauses are relied on."""

MOST_A_PERIOD = 4
"""Up to so many scrapers that cannot be distinguished are learned."""

RESTLESS_SECONDS = 60.0
"""After a scrape by a scraper whose period is not known, another scrape is awaited for so long."""

STEADY_PERIODS = 12
"""A scraper that has kept a rhythm for so many periods has shown how much earlier and later it comes."""

LEARNED_SECONDS = 0.3
"""So much of the margin before a scrape is not needed if it is known how early the scraper comes."""

LEARNED_SPREAD_SECONDS = 1.1
"""A scraper whose times differ by more than this is likely to come even earlier: all of the margin is needed."""

_MOST_SCRAPES = 48
_MOST_SCRAPERS = 64
_FORGOTTEN_SECONDS = 1800.0

_MISSED = 3
"""A scraper that has missed so many of its scrapes is no longer expected."""

YOUNG_SECONDS = 60.0
"""A JVM is young for so long. It optimizes its code while micro-batches run: the sooner they come, the cheaper they become."""

LIVE_SECONDS = 60.0
"""A person who has fetched the page for people may fetch it again within this time."""

_MARGIN_SECONDS = 0.5
_UNKNOWN_SECONDS = 1.0  # what a micro-batch is assumed to take until one has ended
_BATCHES = 8
_HELD_UP = 3


class PaceReason(StrEnum):
    """Why the pace is what it is."""

    FIXED = "fixed"
    FIRST_MINUTE = "first_minute"
    LIVE = "live"
    SCRAPE = "scrape"
    FALLBACK = "fallback"


def due_without(since: float) -> float:
    """When the next check is due if there is no schedule."""
    return since + FALLBACK_SECONDS


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

    The schedule: which scrapes the exporter expects, and when the source therefore checks for work next. All times are seconds of
    `time.monotonic`: all processes of a host share this clock, and no operator can set it.

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


@dataclass(frozen=True, slots=True)
class Pace:
    """The longest pause between two checks for work, in seconds, and the reason for it."""

    seconds: float
    reason: PaceReason


def _part(pause: float, longest: float) -> float:
    """``pause``, or an equal part of it that is no longer than ``longest``."""
    return pause / max(1, ceil(pause / longest))


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


class Freshness:
    """How old the newest data of one query is, over all its runs: the time since the last check for work whose data is completely there.

    Two small files on the driver's host: the driver writes the schedule for the source, the source writes its last check for work. By
    the check it is known how old the newest data in the metrics is.

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


class Pacer:
    """Learns when scrapers come, and writes the schedule by which the query checks for work. Thread-safe.

    Who scrapes the pages, and when they will come again: learned from the times of earlier scrapes. Scrapers that cannot be
    distinguished (a pair behind one proxy) count as one scraper that comes several times in a period.

    Args:
        clock: seconds of `time.monotonic`.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = Lock()  # protects everything below
        self._path: Path | None = None
        self._scrapers = Scrapers()
        self._took: deque[float] = deque(maxlen=_BATCHES)  # one item for each series of micro-batches that follow each other at once
        self._first = -1.0
        self._young_until = self._live_until = 0.0
        self._schedule = self._made()

    def begins(self, path: Path) -> None:
        """The query is started, and reads the schedule at ``path``."""
        with self._lock:
            self._path = path
            self._young_until = self._clock() + YOUNG_SECONDS
            self._write()

    def scraped(self, who: str) -> None:
        """A scraper requests a page."""
        with self._lock:
            self._scrapers.came(who, self._clock())
            self._write()

    def watched(self) -> None:
        """A person opens a page."""
        with self._lock:
            now = self._clock()
            if self._live_until - now < LIVE_SECONDS / 2:
                self._live_until = now + LIVE_SECONDS
                self._write()

    def took(self, first: float, seconds: float) -> None:
        """A micro-batch is in the metrics, ``seconds`` after the ``first`` check for work of its series (see `WorkCheck`).

        The last micro-batch of a series counts: only after it a scrape sees complete data.
        """
        with self._lock:
            if first == self._first:
                self._took.pop()
            self._first = first
            self._took.append(seconds)

    @property
    def pace(self) -> Pace:
        """The present pace."""
        with self._lock:
            return self._schedule.pace(self._clock())

    def _made(self) -> Schedule:
        now = self._clock()
        return Schedule(
            written=now,
            lead=self._lead + _MARGIN_SECONDS,
            young_until=self._young_until,
            live_until=self._live_until,
            restless_until=self._scrapers.restless_until,
            expected=self._scrapers.expected(now),
        )

    @property
    def _lead(self) -> float:
        """The longest recent duration, at most `_HELD_UP` medians. The longest, because a micro-batch that is late costs a whole pause."""
        return min(max(self._took), _HELD_UP * median(self._took)) if self._took else _UNKNOWN_SECONDS

    def _write(self) -> None:
        self._schedule = self._made()
        if self._path is not None:
            try:
                write_schedule(self._path, self._schedule)
            except OSError as error:  # the source uses the last one, and soon none: a scrape must not fail because of this
                log.error("the schedule of scrapes cannot be written", extra={"path": str(self._path), "error": str(error)})


class Scrapers:
    """All scrapers, by their identity."""

    def __init__(self) -> None:
        self._scrapers: dict[str, Scraper] = {}  # in the order of their last scrapes

    def came(self, who: str, now: float) -> None:
        """The scraper ``who`` scrapes at ``now``."""
        scraper = self._scrapers.pop(who, None) or Scraper()
        scraper.came(now)
        self._scrapers = {name: each for name, each in self._scrapers.items() if now - each.last < _FORGOTTEN_SECONDS}
        while len(self._scrapers) >= _MOST_SCRAPERS:
            del self._scrapers[next(iter(self._scrapers))]
        self._scrapers[who] = scraper

    def expected(self, now: float) -> tuple[ExpectedScrape, ...]:
        """The expected scrapes of all scrapers whose times are known."""
        return tuple(
            each
            for scraper in self._scrapers.values()
            for each in scraper.expected
            if now - scraper.last <= max(RESTLESS_SECONDS, _MISSED * each.period)
        )

    @property
    def restless_until(self) -> float:
        """Until when a scraper may come whose times are not known."""
        return max((each.last + RESTLESS_SECONDS for each in self._scrapers.values() if not each.expected), default=0.0)


class Scraper:
    """One scraper."""

    def __init__(self) -> None:
        self._came: deque[float] = deque(maxlen=_MOST_SCRAPES)
        self.expected: tuple[ExpectedScrape, ...] = ()
        """When it comes again: one entry for each scrape of a period, none as long as the period is not known."""

    def came(self, now: float) -> None:
        """It scrapes at ``now``."""
        self._came.append(now)
        self.expected = self._learned()

    @property
    def last(self) -> float:
        """The time of its last scrape."""
        return self._came[-1]

    def _learned(self) -> tuple[ExpectedScrape, ...]:
        came, best = list(self._came), inf
        found: tuple[ExpectedScrape, ...] = ()
        for count in range(1, MOST_A_PERIOD + 1):
            # the compared pauses must show a change of the period or a missing scrape: twice as many pauses as one period has are compared
            compared = max(AS_LEARNED, 2 * count)
            if len(came) < count + compared:
                break
            pauses = [came[-1 - back] - came[-1 - back - count] for back in range(compared)]
            rhythm = _longest(came, count, count + compared)
            spread = max(pauses) - min(pauses)
            if rhythm.scrapes >= count * STEADY_PERIODS:
                spread = min(spread, rhythm.spread)
            if spread <= LATE_SECONDS and round(2 * spread) < best:
                best = round(2 * spread)
                found = rhythm.expected()
        return found


def _longest(came: Sequence[float], count: int, least: int) -> _Rhythm:
    """The rhythm of the last scrapes, of as many as have one, of ``least`` at least."""
    size = len(came)
    while size > least:
        rhythm = _rhythm(came[-size:], count)
        if rhythm.spread <= LATE_SECONDS:
            return rhythm
        size = max(least, size // 2)
    return _rhythm(came[-least:], count)


@dataclass(frozen=True, slots=True)
class _Rhythm:
    """Scrapes that come every ``period`` seconds, later by up to ``spread``. ``earliest``: of each scrape of the next period."""

    period: float
    spread: float
    earliest: tuple[float, ...]
    scrapes: int

    def expected(self) -> tuple[ExpectedScrape, ...]:
        """The earliest times count: a check for work that is too early costs less than one that is too late. How early a scraper
        comes that was seen often is learned, so a part of the margin that everybody gets is not needed.
        """
        learned = self.scrapes >= len(self.earliest) * STEADY_PERIODS and self.spread <= LEARNED_SPREAD_SECONDS
        later = min(self.spread / 2, LEARNED_SECONDS) if learned else 0.0
        return tuple(ExpectedScrape(at + later, max(QUICK_SECONDS, self.period)) for at in self.earliest)


def _rhythm(came: Sequence[float], count: int) -> _Rhythm:
    """The rhythm of scrapes of which ``count`` come in a period, by least squares: each is late by chance, and not more and more."""
    rows = [came[-1 - place :: -count] for place in reversed(range(count))]  # each with the newest first
    means = [(len(row) - 1) / 2 for row in rows]
    shared = sum((mean - back) * at for row, mean in zip(rows, means, strict=True) for back, at in enumerate(row))
    period = shared / sum((mean - back) ** 2 for row, mean in zip(rows, means, strict=True) for back in range(len(row)))
    brought = [[at + (back + 1) * period for back, at in enumerate(row)] for row in rows]
    return _Rhythm(period, max(max(each) - min(each) for each in brought), tuple(map(min, brought)), len(came))


def write_schedule(path: Path, schedule: Schedule) -> None:
    """Write the schedule atomically: no process reads half of it.

    Raises:
        OSError: it cannot be written.
    """
    write_whole(path, json.dumps(asdict(schedule)).encode(), lasting=False)
