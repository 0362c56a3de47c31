"""Scrapers, the exporter's pacer and a source that goes by its schedule, on a clock that is moved by hand."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from streaming.common.pace import Pacer
from streaming.spark.source.stream import Hurry, Turns

BEGIN = 5_000.0


@dataclass
class ScrapedQuery:
    """``visits`` are who scrapes when, seconds from the beginning; ``took`` is what each micro-batch takes, and ``parts`` how many of them
    what has come in the pause before makes."""

    directory: Path
    visits: Iterable[tuple[float, str]]
    took: float = 0.3
    parts: int = 1
    now: float = BEGIN
    checks: list[float] = field(default_factory=list)
    ages: dict[str, list[tuple[float, float]]] = field(default_factory=dict)  # (when, how old the data was)

    def __post_init__(self) -> None:
        self._coming = [(BEGIN + at, who) for at, who in self.visits]
        heapq.heapify(self._coming)
        self._shown = BEGIN  # the look whose data is in the metrics
        self.pacer = Pacer(lambda: self.now)
        self.schedule = self.directory / "schedule"
        self.pacer.begins(self.schedule)
        self.turns = Turns(self.schedule, lambda: self.now, self.sleep, lambda: 1)

    def sleep(self, seconds: float) -> None:
        """Time passes, in which scrapers come."""
        until = self.now + seconds
        while self._coming and self._coming[0][0] <= until:
            at, who = heapq.heappop(self._coming)
            self.now = max(self.now, at)
            self.pacer.scraped(who)
            self.ages.setdefault(who, []).append((self.now - BEGIN, self.now - self._shown))
        self.now = until

    def run(self, seconds: float) -> None:
        """The query until so long after the beginning, with a micro-batch after each look."""
        while self.now < BEGIN + seconds:
            for part in range(1, self.parts + 1):
                assert self.turns.wait()
                check = self.turns.checked(Hurry.NOT if part == self.parts else Hurry.NOW, idle=False)
                self.checks.append(check.at)
                self.sleep(self.took)
                self._shown = self._shown if part < self.parts else check.at
                self.pacer.took(check.first, self.now - check.first)

    @property
    def pauses(self) -> list[float]:
        """Between a look and the next one."""
        return [later - earlier for earlier, later in zip(self.checks, self.checks[1:], strict=False)]

    def oldest(self, who: str, since: float) -> float:
        """The oldest data that a scraper was given from some time on, seconds from the beginning."""
        return max(age for at, age in self.ages[who] if at >= since)

    def looks_between(self, begin: float, end: float) -> int:
        """How many looks there were, by seconds from the beginning."""
        return sum(begin <= at - BEGIN < end for at in self.checks)
