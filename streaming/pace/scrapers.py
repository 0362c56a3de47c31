"""Who scrapes the pages, and when they will come again: learned from the times of earlier scrapes.

Scrapers that cannot be distinguished (a pair behind one proxy) count as one scraper that comes several times in a period.
"""

from collections import deque
from math import inf

from streaming.pace.schedule import LATE_SECONDS, QUICK_SECONDS, Expected

AS_LEARNED = 3
"""So many scrapes in a row have to come at the same pauses as before. Then the pauses are relied on."""

MOST_A_PERIOD = 4
"""Up to so many scrapers that cannot be distinguished are learned."""

RESTLESS_SECONDS = 60.0
"""After a scrape by somebody whose period is not known, another scrape is awaited for so long."""

_MOST_SCRAPERS = 64
_FORGOTTEN_SECONDS = 1800.0
_MISSED = 3
"""A scraper that has missed so many of its scrapes is no longer expected."""


class Scraper:
    """One scraper."""

    def __init__(self) -> None:
        # the compared pauses must show a change of the period or a missing scrape: twice as many pauses as one period has are compared
        self._came: deque[float] = deque(maxlen=3 * MOST_A_PERIOD)

    def came(self, now: float) -> None:
        """It scrapes at ``now``."""
        self._came.append(now)

    @property
    def last(self) -> float:
        """The time of its last scrape."""
        return self._came[-1]

    def expected(self) -> tuple[Expected, ...]:
        """When it comes again: one entry for each scrape of a period, none as long as the period is not known.

        The shortest recent period counts: a check for work that is too early costs less than one that is too late.
        """
        best = inf
        found: tuple[Expected, ...] = ()
        for count in range(1, MOST_A_PERIOD + 1):
            compared = max(AS_LEARNED, 2 * count)
            if len(self._came) < count + compared:
                break
            came = list(self._came)
            periods = [came[-1 - back] - came[-1 - back - count] for back in range(compared)]
            spread = max(periods) - min(periods)
            if spread <= LATE_SECONDS and round(2 * spread) < best:
                best = round(2 * spread)
                period = max(QUICK_SECONDS, min(periods))
                found = tuple(Expected(at + period, period) for at in came[-count:])
        return found


class Scrapers:
    """All scrapers, by their identity."""

    def __init__(self) -> None:
        self._known: dict[str, Scraper] = {}  # in the order of their last scrapes

    def came(self, who: str, now: float) -> None:
        """The scraper ``who`` scrapes at ``now``."""
        scraper = self._known.pop(who, None) or Scraper()
        scraper.came(now)
        self._known = {name: each for name, each in self._known.items() if now - each.last < _FORGOTTEN_SECONDS}
        while len(self._known) >= _MOST_SCRAPERS:
            del self._known[next(iter(self._known))]
        self._known[who] = scraper

    def expected(self, now: float) -> tuple[Expected, ...]:
        """The expected scrapes of all scrapers whose times are known."""
        return tuple(
            each
            for scraper in self._known.values()
            for each in scraper.expected()
            if now - scraper.last <= max(RESTLESS_SECONDS, _MISSED * each.period)
        )

    @property
    def restless_until(self) -> float:
        """Until when a scraper may come whose times are not known."""
        return max((each.last + RESTLESS_SECONDS for each in self._known.values() if not each.expected()), default=0.0)
