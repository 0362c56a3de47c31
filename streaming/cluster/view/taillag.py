"""How far the metrics are behind what agents have published, in bytes and in time, and how far a job that starts is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

_POINTS = 1024
"""How many points in time are kept for an agent: the time is exact for the first quarter of an hour, then to 0.4 % of the lag."""


class StartStep(StrEnum):
    """What a job that starts waits for, in this order; where agents read before Spark is there, `READING` comes first."""

    AGENTS = "agents"  # the first answer of an agent
    SPARK = "spark"  # Spark's JVM
    READING = "reading"  # agents read what is on their disks
    COUNTING = "counting"  # what they have read becomes numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class StartProgress:
    """How far a start is. Bytes of logs that are done and that there are in this step, -1 not known; ``left_s``: until the step is over.

    How far a job that starts is in what was on the disks: in steps, and in bytes as its agents report them.
    """

    step: StartStep
    done_bytes: int = -1
    all_bytes: int = -1
    left_s: float = -1.0


@dataclass(slots=True)
class StartMeter:
    """Follows a start; call `note` to know how far it is. The bytes that a journal held before count as neither read nor counted."""

    _begun: dict[str, int] = field(default_factory=dict)  # by agent: its total from which on this start counts
    _step: StartStep = StartStep.AGENTS
    _step_at: float = 0.0
    _step_done: int = 0
    _progress: StartProgress = field(default_factory=lambda: StartProgress(step=StartStep.AGENTS))

    def met(self, agent: str, published: int) -> None:
        """An agent answers for the first time, or once more: its journal holds so many bytes."""
        if published < self._begun.setdefault(agent, published):  # another journal
            self._begun[agent] = 0

    def note(self, agents: Iterable[ReadAgent], totals: Mapping[str, tuple[int, int]], at: float, *, querying: bool) -> None:
        """Take what is known now.

        Args:
            agents: those that are up.
            totals: for each agent the bytes that are in the metrics, and those that its journal holds.
            at: seconds of a monotonic clock.
            querying: Spark is there, and its query runs.
        """
        for agent, (processed, published) in totals.items():
            self.met(agent, published)
            if 0 < processed < self._begun[agent]:  # the rest has waited since the run before
                self._begun[agent] = processed
        up = list(agents)
        read = sum(published - self._begun[agent] for agent, (_, published) in totals.items())
        counted = sum(max(0, processed - self._begun[agent]) for agent, (processed, _) in totals.items())
        unread = sum(max(0, each.unread_bytes) for each in up)
        if not up:
            self._at(StartStep.AGENTS, at)
        elif unread or (read and any(each.catching_up and each.unread_bytes < 0 for each in up)):
            self._at(StartStep.READING, at, read, read + unread if unread else -1)
        elif not querying:
            self._at(StartStep.SPARK, at, -1, read or -1)
        elif any(each.catching_up for each in up):
            self._at(StartStep.READING, at)
        else:
            self._at(StartStep.COUNTING, at, min(counted, read) if read else -1, read or -1)

    @property
    def progress(self) -> StartProgress:
        """How far it was when `note` was called last."""
        return self._progress

    def _at(self, step: StartStep, at: float, done: int = -1, whole: int = -1) -> None:
        if step is not self._step or done < self._step_done:
            self._step, self._step_at, self._step_done = step, at, done
        moved, seconds = done - self._step_done, at - self._step_at
        left = (whole - done) * seconds / moved if moved > 0 and whole >= done else -1.0
        self._progress = StartProgress(step=step, done_bytes=done, all_bytes=whole, left_s=left)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAgent:
    """What an agent that is up has reported: bytes that it has not read, -1 not known, and whether it still reads what was there before."""

    unread_bytes: int
    catching_up: bool


class TailLag:
    """Follows one agent's published bytes, which only grow, and how many of them are in the metrics.

    Both are totals since the beginning of a journal, by its id. Reports about a journal that was replaced are ignored.
    """

    def __init__(self) -> None:
        self._journal = ""
        self._left: set[str] = set()
        self._published = 0
        self._processed: int | None = None  # None: not known yet, after a restart it can be anything but 0
        self._waiting: deque[_Point] = deque()  # oldest first, each with bytes that are not processed
        self._whole_at: float | None = None
        self._apart = 0.0  # seconds: a point that is less than this after the last one is joined to it

    def published(self, journal: str, total: int, at: float) -> None:
        """``total`` bytes in all were published by ``at``. Fewer than before means a journal that was set back."""
        if not self._speaks(journal):
            return
        if total < self._published:
            self._waiting.clear()
            self._processed, self._whole_at = 0, None
        self._published = total
        if total <= (self._processed or 0):
            self._whole_at = at
            return
        if self._waiting and total <= self._waiting[-1].total:
            return
        if self._waiting and at - self._waiting[-1].at < self._apart:
            self._waiting[-1] = _Point(total, self._waiting[-1].at)
        else:
            self._waiting.append(_Point(total, at))
            # halve the points when there are too many: each two become one that is as old as the first
            if len(self._waiting) > _POINTS:
                points = list(self._waiting)
                points.append(points[-1])  # if their number is odd, the last one is joined with itself
                self._waiting = deque(_Point(second.total, first.at) for first, second in zip(points[::2], points[1::2], strict=False))
                self._apart = 2 * (points[-1].at - points[0].at) / _POINTS

    def begins(self) -> None:
        """Nothing of any journal is in the metrics, unless something else was reported."""
        if self._processed is None:
            self._processed = 0

    def processed(self, journal: str, total: int) -> None:
        """``total`` of the published bytes are in the metrics."""
        if not self._speaks(journal):
            return
        self._processed = total
        while self._waiting and self._waiting[0].total <= total:
            self._whole_at = max(self._waiting.popleft().at, self._whole_at or 0.0)
        if not self._waiting:
            self._apart = 0.0

    def _speaks(self, journal: str) -> bool:
        """Whether a journal is the agent's present one. A new one replaces the one before, and nothing of it is in the metrics."""
        if journal in self._left:
            return False
        if journal != self._journal:
            if self._journal:
                self._left.add(self._journal)
                self._published = self._processed = 0
                self._whole_at = None
                self._waiting.clear()
            self._journal = journal
        return True

    @property
    def known(self) -> bool:
        """Whether it was ever reported what is processed: until then it is not known how many bytes wait."""
        return self._processed is not None

    @property
    def whole_at(self) -> float | None:
        """The time of the agent's last answer of which everything has been processed, None if it is not known."""
        return self._whole_at if self.known else None

    @property
    def totals(self) -> tuple[int, int]:
        """How many bytes are in the metrics, and how many are published, both from the journal's beginning on."""
        return self._processed or 0, self._published

    @property
    def size(self) -> int:
        """Bytes published and not processed; all published bytes as long as it is not known what is processed, see `known`."""
        return max(0, self._published - (self._processed or 0))

    def seconds(self, now: float) -> float:
        """How long the oldest of these bytes have been waiting, 0 if there are none; as long as `known` is False, since the first one."""
        return max(0.0, now - self._waiting[0].at) if self._waiting else 0.0


class _Point(NamedTuple):
    """A time ``at`` by which the first of the bytes between the ``total`` of the point before and this ``total`` were published."""

    total: int
    at: float
