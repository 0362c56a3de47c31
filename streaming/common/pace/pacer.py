"""The exporter's side of the pace: it records who requests pages, and writes the schedule that the source follows."""

import logging
from collections import deque
from collections.abc import Callable
from pathlib import Path
from statistics import median
from threading import Lock

from streaming.common.pace.pace_files import write_schedule
from streaming.common.pace.schedule import Pace, Schedule
from streaming.common.pace.scrapers import Scrapers

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
