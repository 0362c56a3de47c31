"""The exporter's side of the pace: it records who requests pages, and writes the schedule that the source follows."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import median
from threading import Lock

from streaming.common.pace.schedule import LATE_SECONDS, QUICK_SECONDS, ExpectedScrape, Pace, Schedule, write_schedule

# --- who scrapes the pages, and when they will come again: learned from the times of earlier scrapes. Scrapers that cannot be distinguished
# (a pair behind one proxy) count as one scraper that comes several times in a period.


AS_LEARNED = 3
"""So many scrapes in a row have to come at the same pauses as before. Then the pauses are relied on."""

MOST_A_PERIOD = 4
"""Up to so many scrapers that cannot be distinguished are learned."""

RESTLESS_SECONDS = 60.0
"""After a scrape by somebody whose period is not known, another scrape is awaited for so long."""

STEADY_PERIODS = 12
"""A scraper that has kept a rhythm for so many periods has shown how much earlier and later it comes."""

LEARNED_SECONDS = 0.3
"""So much of the margin before a scrape is not needed if it is known how early the scraper comes."""

LEARNED_SPREAD_SECONDS = 1.1
"""Of a scraper whose times differ by more than this, an even earlier scrape is more likely: all of the margin is needed."""

_MOST_SCRAPES = 48
_MOST_SCRAPERS = 64
_FORGOTTEN_SECONDS = 1800.0
_MISSED = 3
"""A scraper that has missed so many of its scrapes is no longer expected."""


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


def _longest(came: Sequence[float], count: int, least: int) -> _Rhythm:
    """The rhythm of the last scrapes, of as many as have one, of ``least`` at least."""
    size = len(came)
    while size > least:
        rhythm = _rhythm(came[-size:], count)
        if rhythm.spread <= LATE_SECONDS:
            return rhythm
        size = max(least, size // 2)
    return _rhythm(came[-least:], count)


def _rhythm(came: Sequence[float], count: int) -> _Rhythm:
    """The rhythm of scrapes of which ``count`` come in a period, by least squares: each is late by chance, and not more and more."""
    rows = [came[-1 - place :: -count] for place in reversed(range(count))]  # each with the newest first
    means = [(len(row) - 1) / 2 for row in rows]
    shared = sum((mean - back) * at for row, mean in zip(rows, means, strict=True) for back, at in enumerate(row))
    period = shared / sum((mean - back) ** 2 for row, mean in zip(rows, means, strict=True) for back in range(len(row)))
    brought = [[at + (back + 1) * period for back, at in enumerate(row)] for row in rows]
    return _Rhythm(period, max(max(each) - min(each) for each in brought), tuple(map(min, brought)), len(came))


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


log = logging.getLogger(__name__)

YOUNG_SECONDS = 60.0
"""A JVM is young for so long. It optimizes its code while micro-batches run: the sooner they come, the cheaper they become."""

LIVE_SECONDS = 60.0
"""A person who has fetched the page for people may fetch it again within this time."""

_MARGIN_SECONDS = 0.5
_UNKNOWN_SECONDS = 1.0  # what a micro-batch is assumed to take until one has ended
_BATCHES = 8
_HELD_UP = 3


class Pacer:
    """Safe from any thread.

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
