"""The schedule: which scrapes the exporter expects, and when the source therefore checks for work next.

All times are seconds of `time.monotonic`: all processes of a host share this clock, and nobody sets it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

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
