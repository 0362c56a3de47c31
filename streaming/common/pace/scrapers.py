"""Who scrapes the pages, and when they will come again: learned from the times of earlier scrapes.

Scrapers that cannot be distinguished (a pair behind one proxy) count as one scraper that comes several times in a period.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from streaming.common.pace.schedule import LATE_SECONDS, QUICK_SECONDS, ExpectedScrape

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
