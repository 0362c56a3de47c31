"""The schedule: what the exporter knows of those who take its pages, and when by that the source looks for work next.

All times are seconds of `time.monotonic`, the one clock that all processes of a host share and that nobody sets.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

QUICK_SECONDS = 1.0
"""The pace while a person looks, and the shortest of all."""

FALLBACK_SECONDS = 10.0
"""The longest pause where it is not known of everybody when they come."""

LONGEST_SECONDS = 30.0
"""The longest pause of all: Spark ends a Python worker that was idle for a minute, and a new one costs a second of CPU."""

LATE_SECONDS = 2.0
"""A scrape may come so much later than expected, and scrapes that are due within so long share a micro-batch."""


class Reason(StrEnum):
    """Why the pace is what it is."""

    FIXED = "fixed"
    FIRST_MINUTE = "first_minute"
    LIVE = "live"
    SCRAPE = "scrape"
    FALLBACK = "fallback"


@dataclass(frozen=True, slots=True)
class Pace:
    """The longest pause between two looks for work, in seconds, and why it is that."""

    seconds: float
    reason: Reason


@dataclass(frozen=True, slots=True)
class Expected:
    """A scrape that is expected ``at`` a time, and every ``period`` seconds from then on."""

    at: float
    period: float

    def after(self, time: float) -> float:
        """The first of them behind a time."""
        return self.at if self.at > time else self.at + (int((time - self.at) / self.period) + 1) * self.period


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What is expected, as of the moment when it was ``written``.

    ``lead``: so long before a scrape the look has to begin; ``young_until``: the JVM is young and every micro-batch dear; ``live_until``: a
    person looks; ``restless_until``: somebody scrapes of whom is not known when.
    """

    written: float
    lead: float
    young_until: float = 0.0
    live_until: float = 0.0
    restless_until: float = 0.0
    expected: tuple[Expected, ...] = ()

    def pace(self, now: float) -> Pace:
        """The pace of the moment."""
        if now < self.young_until:
            return Pace(QUICK_SECONDS, Reason.FIRST_MINUTE)
        if now < self.live_until:
            return Pace(QUICK_SECONDS, Reason.LIVE)
        if self._is_sure(now):
            return Pace(min(_part(each.period, LONGEST_SECONDS) for each in self.expected), Reason.SCRAPE)
        return Pace(FALLBACK_SECONDS, Reason.FALLBACK)

    def due(self, since: float, now: float) -> float:
        """When the next look is due after the one at ``since``; never more than `LONGEST_SECONDS` behind that.

        A pause that would be longer is parted evenly, so that the last look of several is the one right before the scrape.
        """
        if now < max(self.young_until, self.live_until):
            return since + QUICK_SECONDS
        longest = LONGEST_SECONDS if self._is_sure(now) else FALLBACK_SECONDS
        pause = min((at - since for at in self._looks(since, now)), default=longest)
        return since + max(QUICK_SECONDS, _part(pause, longest))

    def _is_sure(self, now: float) -> bool:
        """Whether it is known of everybody when they come, and they do."""
        return bool(self.expected) and now >= self.restless_until and all(now <= each.at + LATE_SECONDS for each in self.expected)

    def _looks(self, since: float, now: float) -> Iterator[float]:
        """For each scrape that is expected the time of the look that it needs. The one at ``since`` serves what is due soon behind it."""
        for each in self.expected:
            if now <= each.at + LATE_SECONDS:
                yield each.after(since + self.lead + min(LATE_SECONDS, each.period / 2)) - self.lead


def due_without(since: float) -> float:
    """When the next look is due where there is no schedule."""
    return since + FALLBACK_SECONDS


def _part(pause: float, longest: float) -> float:
    """A pause, or an even part of it that is no longer than ``longest``."""
    return pause / max(1, ceil(pause / longest))
