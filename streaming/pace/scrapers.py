"""Who takes the pages, and when they will come again: learned from when they came.

Scrapers that cannot be told apart (a pair behind one proxy) are one that comes several times in a period.
"""

from collections import deque
from math import inf

from streaming.pace.schedule import LATE_SECONDS, QUICK_SECONDS, Expected

AS_LEARNED = 3
"""So many scrapes in a row have to come as the ones before did until they are relied on."""

MOST_A_PERIOD = 4
"""Scrapers that cannot be told apart are learned up to so many of them."""

RESTLESS_SECONDS = 60.0
"""For so long after a scrape of somebody whose period is not known another one is waited for."""

_MOST_SCRAPERS = 64
_FORGOTTEN_SECONDS = 1800.0
_MISSED = 3
"""One that has missed so many of its scrapes is expected no more."""


class Scraper:
    """One of them."""

    def __init__(self) -> None:
        # a change of its period, or a scrape left out, must show among the pauses that are compared: twice as many as make a period
        self._came: deque[float] = deque(maxlen=3 * MOST_A_PERIOD)

    def came(self, now: float) -> None:
        """It scrapes."""
        self._came.append(now)

    @property
    def last(self) -> float:
        """When it scraped last."""
        return self._came[-1]

    def expected(self) -> tuple[Expected, ...]:
        """When it comes again: one entry for each scrape of a period, none as long as that is not known.

        The shortest period seen of late counts: a look that is early costs less than one that is late.
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
    """All of them, by who they are."""

    def __init__(self) -> None:
        self._known: dict[str, Scraper] = {}  # who came last is last

    def came(self, who: str, now: float) -> None:
        """One of them scrapes."""
        scraper = self._known.pop(who, None) or Scraper()
        scraper.came(now)
        self._known = {name: each for name, each in self._known.items() if now - each.last < _FORGOTTEN_SECONDS}
        while len(self._known) >= _MOST_SCRAPERS:
            del self._known[next(iter(self._known))]
        self._known[who] = scraper

    def expected(self, now: float) -> tuple[Expected, ...]:
        """When those come again of whom that is known."""
        return tuple(
            each
            for scraper in self._known.values()
            for each in scraper.expected()
            if now - scraper.last <= max(RESTLESS_SECONDS, _MISSED * each.period)
        )

    @property
    def restless_until(self) -> float:
        """Until when somebody may come of whom it is not known when."""
        return max((each.last + RESTLESS_SECONDS for each in self._known.values() if not each.expected()), default=0.0)
