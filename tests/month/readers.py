"""Consumer groups of a month: how far each has read at any time, and what its coordinator knows of it."""

from dataclasses import dataclass, field
from typing import Any

from streaming.kafka.groups.rebalance_log import MemberChanges, RebalanceLog
from streaming.kafka.groups.rhythm import SHORT_MS, Rhythm
from tests.consumers.group_agents import GROUP
from tests.month.streams import Stream, unix_ms

BEHIND_S = 2.0
"""So far behind the end a group is that keeps up."""

AT_ONCE = 1e6
"""The speed of a group that reads whatever is there."""


@dataclass(slots=True, kw_only=True)
class Reader:
    """A group that reads one topic. Others change its fields when something happens to it.

    ``speed``: seconds of the log that it reads in a second. ``moves``: what it commits moves on; it commits all the same if not.
    ``position_s``: it has read what was appended before. ``lived_s``: when it was last seen to be used.
    """

    name: str
    streams: list[Stream]
    members: int = 2
    speed: float = AT_ONCE
    commits: bool = True
    moves: bool = True
    position_s: float = 0.0
    lived_s: float = 0.0
    rhythm: Rhythm = field(default_factory=Rhythm)
    interval_ms: int = SHORT_MS
    rebalances: RebalanceLog = field(default_factory=RebalanceLog)
    _lost: bool = False
    _were: int = 0  # its members in the step before

    def step(self, before_s: float, now_s: float) -> bool:
        """Go on to a time; returns whether it commits then. What retention has deleted before it was read is skipped in the next step."""
        self._rebalance(now_s)
        if not self.commits:
            return False
        self.lived_s = now_s
        if self.moves:
            first_s = self.streams[0].first_s(now_s)
            skips = self._lost
            self._lost = self.position_s < first_s and not skips
            if skips:
                self.position_s = max(self.position_s, first_s)
            if not self._lost:
                self.position_s = min(now_s - BEHIND_S, self.position_s + self.speed * (now_s - before_s))
        return True

    def _rebalance(self, now_s: float) -> None:
        """Once for a member that has left, and twice for one that has come, as with a cooperative assignor."""
        for _ in range((self.members != self._were) + (self.members > self._were > 0)):
            epoch = max(self.rebalances.raised, 0) + 1
            self.rebalances.epoch(epoch, epoch, -1, unix_ms(now_s), self.members, MemberChanges(subscribed=True))
        self._were = self.members

    def offset(self, stream: Stream) -> int:
        """What it has committed of a log."""
        return stream.offset_at(self.position_s)

    def facts(self) -> dict[str, Any]:
        """Its group, as an agent has it from its coordinator's log."""
        alive = {"state": "Stable", "state_ms": -1} if self.members else {"state": "Empty", "state_ms": unix_ms(self.lived_s)}
        topics = [self.streams[0].topic]
        of = {"group": self.name, "members": self.members, "topics": topics, "interval_ms": self.interval_ms}
        rebalanced = {
            "raised": self.rebalances.raised,
            "raised_by_metadata": 0 if self.rebalances.raised >= 0 else -1,
            "raised_unfinished": 0,
            "rebalance_ms": self.rebalances.last_ms,
            "rebalance_minutes": self.rebalances.flat_minutes,
        }
        return GROUP | alive | of | rebalanced


@dataclass(slots=True, kw_only=True)
class Job(Reader):
    """A group whose consumers run for a while, once in a period, and end."""

    period_s: int
    offset_s: int
    runs_s: int = 600
    late: bool = False  # its scheduler is broken: it does not run

    def __post_init__(self) -> None:
        for run in range(-4, 0):
            self._run(run)

    def step(self, before_s: float, now_s: float) -> bool:
        into_s = (now_s - self.offset_s) % self.period_s
        runs = into_s < self.runs_s and not self.late
        if runs and not self.members:
            self._run(int((now_s - self.offset_s) // self.period_s))
        self.members = int(runs)
        self.commits = runs
        return Reader.step(self, before_s, now_s)

    def _run(self, number: int) -> None:
        """Its coordinator has seen commits of it: the first of this run, after the last of the run before, and some more."""
        begin_ms = unix_ms(self.offset_s + number * self.period_s)
        self.rhythm.committed(begin_ms - 1000 * (self.period_s - self.runs_s), begin_ms)
        self.rhythm.committed(begin_ms, begin_ms + 5_000)
        self.lived_s = max(self.lived_s, self.offset_s + number * self.period_s + self.runs_s)
        self.interval_ms = self.rhythm.usual_ms
