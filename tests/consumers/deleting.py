"""A log from which retention deletes whole segments while records are appended, and a group that reads it at some rate."""

import json
from collections.abc import Iterator, Sequence

import numpy as np

from streaming.common.rows import SEGMENTS
from tests.consumers.group_agents import GROUP, FakeAgent, Records
from tests.consumers.group_world import GroupJob
from tests.view.reported import Facts
from tests.view.rows import new_table

EVERY = 10
"""Seconds between two records of a log that grows steadily."""

KEPT, SEGMENT, ROUND = 7_200, 60, 15
"""Seconds that records are kept, records of a segment, and seconds between two rounds."""

NOW = 1_000_000
STEADY = range(NOW - 100_000, NOW + 20_000, EVERY)


class Deleting:
    """Records are appended at these seconds; ``behind``: by so many seconds the job is behind its agent."""

    def __init__(
        self, times: Sequence[int] = STEADY, *, kept: int = KEPT, segment: int = SEGMENT, begun: int = NOW, behind: int = 0
    ) -> None:
        self.times, self.kept, self.segment, self.behind = np.array(times), kept, segment, behind
        self.agent = FakeAgent(logs={("orders", 0): Records([])}, groups_=[GROUP])
        self.job = GroupJob(new_table(), {"a1": self.agent}, now=float(begun - ROUND))
        self.job.put("__consumer_offsets", end=1000)
        self.job.reach()
        self.now = begun - behind  # as of when the log is told
        self.committed = float(self.start(self.now))
        self.lost = False

    def end(self, now: int) -> int:
        return int(np.searchsorted(self.times, now, side="right"))

    def start(self, now: int) -> int:
        """Of the first segment that has a record which is young enough; the active one gets no newer records."""
        young, end = int(np.searchsorted(self.times, now - self.kept)), self.end(now)
        return young // self.segment * self.segment if young < end else end

    def loss(self, rate: float, until: int) -> int:
        """When a group first loses something that reads from the beginning, at so many records a second; -1 for never."""
        read = float(self.start(self.now))
        for now in range(self.now, until, ROUND):
            if read < self.start(now):
                return now
            read = min(read + rate * ROUND, self.end(now))
        return -1

    def _tell(self) -> None:
        records, start, end = self.agent.logs["orders", 0], self.start(self.now), self.end(self.now)
        for offset in range(len(records.kinds), end):
            records.kinds.append("data")
            records.times[offset] = 1000 * int(self.times[offset])
        bases = range(start, max(end, start + 1), self.segment)
        ends = [min(base + self.segment, end) for base in bases]
        rows = [(base, 100 * (end - base), *[1000 * self.times[end - 1]] * 2) for base, end in zip(bases, ends, strict=True)]
        facts = Facts(segments=np.array(rows, SEGMENTS), configs=json.dumps({"topic": {"retention.ms": str(1000 * self.kept)}})).encode()
        self.job.put(end=end, log_start_offset=start, facts=facts, active_segment=bases[-1], active_position=int(rows[-1][1]))

    def read(self, rate: float, rounds: int) -> Iterator[tuple[int, str, str]]:
        """The second, the verdict and its severity after each round in which the group reads so many records a second."""
        for _ in range(rounds):
            self._tell()
            self.lost |= self.committed < self.start(self.now)
            self.agent.commit(int(self.committed), commit_ms=1000 * self.now)
            self.job.behind["a1"] = float(self.behind)
            self.job.round(ROUND)
            summary = self.job.about().summary
            yield self.now, summary.verdict, summary.severity
            self.committed = min(self.committed + rate * ROUND, self.end(self.now))
            self.now += ROUND
