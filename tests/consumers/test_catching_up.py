"""Groups that begin at the earliest record of a log while retention deletes its first segments: who reads away from that."""

import json
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_speeds import LEAST_MS, MARK_MS, Speeds
from streaming.common.rows import SEGMENTS
from tests.consumers.group_agents import GROUP, FakeAgent, Records
from tests.consumers.group_world import GroupJob
from tests.tables import each_row
from tests.view.reported import Facts
from tests.view.rows import new_table

EVERY = 10
"""Seconds between two records."""

KEPT, SEGMENT, ROUND = 7_200, 60, 15
"""Seconds that records are kept, records of a segment, and seconds between two rounds."""

NOW = 1_000_000


class Deleting:
    """A log to which a record is appended every ten seconds, and of which retention deletes what is older than two hours."""

    def __init__(self) -> None:
        self.agent = FakeAgent(logs={("orders", 0): Records([])}, groups_=[GROUP])
        self.job = GroupJob(new_table(), {"a1": self.agent}, now=float(NOW))
        self.job.put("__consumer_offsets", end=1000)
        self.job.reach()
        self.committed = -1.0
        self.lost = False
        self._log()

    @property
    def start(self) -> int:
        """The first record of the first segment that has one young enough."""
        oldest = -(-(int(self.job.now) - KEPT) // EVERY) - NOW // EVERY + 10_000
        return max(oldest // SEGMENT * SEGMENT, 0)

    @property
    def end(self) -> int:
        return (int(self.job.now) - NOW) // EVERY + 10_000

    def at(self, offset: int) -> int:
        """When a record was appended."""
        return 1000 * (NOW + EVERY * (offset - 10_000))

    def _log(self) -> None:
        records = self.agent.logs["orders", 0]
        for offset in range(len(records.kinds), self.end):
            records.kinds.append("data")
            records.times[offset] = self.at(offset)
        bases = range(self.start, self.end, SEGMENT)
        rows = [(base, 100 * SEGMENT, self.at(last), self.at(last)) for base in bases for last in [min(base + SEGMENT, self.end) - 1]]
        facts = Facts(segments=np.array(rows, SEGMENTS), configs=json.dumps({"topic": {"retention.ms": str(1000 * KEPT)}}))
        self.job.put(end=self.end, log_start_offset=self.start, facts=facts.encode(), active_segment=bases[-1], active_position=100)

    def read(self, rate: float, rounds: int) -> Iterator[tuple[str, str]]:
        """The verdict and its severity after each round in which the group reads so many records a second."""
        for _ in range(rounds):
            self.committed = max(self.committed, float(self.start)) if self.committed < 0 else self.committed
            self.lost |= self.committed < self.start
            self.agent.commit(min(int(self.committed), self.end), commit_ms=round(1000 * self.job.now))
            self.job.round(ROUND)
            detail = self.job.detail()
            assert detail is not None
            yield detail.summary.verdict, detail.summary.severity
            self.committed = min(self.committed + rate * ROUND, self.end)
            self._log()


@pytest.mark.parametrize("rate", [0.5, 1.0, 3.0])
def test_a_new_group_at_the_earliest_record_that_reads_away_from_deletion_catches_up_with_a_time(rate: float) -> None:
    log = Deleting()
    found = list(log.read(rate, 40))
    assert not log.lost
    assert {severity for _, severity in found[4:]} == {""}
    assert found[4][0] == "catching_up"
    detail = log.job.detail()
    assert detail is not None
    assert all("catches up in" in each.text for each in detail.findings if each.verdict == "catching_up")


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.09])
def test_one_that_does_not_will_lose_records(rate: float) -> None:
    log = Deleting()
    found = list(log.read(rate, 60))
    assert set(found[:4]) == {("will_lose", "critical")}
    assert all(severity in ("critical", "warning") for _, severity in found)
    assert log.lost


def test_a_group_that_is_reset_to_the_earliest_record_is_measured_anew() -> None:
    log = Deleting()
    log.committed = float(log.end - 100)
    list(log.read(1.0, 30))
    log.committed = float(log.start)
    found = list(log.read(0.0, 3))
    assert found[-1] == ("will_lose", "critical")
    assert {severity for _, severity in list(log.read(1.0, 30))[4:]} == {""}


def test_a_group_that_no_longer_reads_is_in_danger_again() -> None:
    log = Deleting()
    assert list(log.read(0.5, 8))[-1] == ("catching_up", "")
    assert list(log.read(0.0, 25))[-1] == ("will_lose", "critical")


@pytest.mark.parametrize("seed", range(12))
def test_what_catches_up_loses_nothing(seed: int) -> None:
    """At whatever speed it reads, from wherever."""
    random = Random(seed)
    log, rate = Deleting(), random.choice((0.11, 0.15, 0.2, random.uniform(0.05, 2)))
    log.committed = float(log.start + random.randrange(3 * SEGMENT))
    list(log.read(0.0, random.randrange(20)))
    log.lost, log.committed = False, max(log.committed, float(log.start))
    safe = [verdict != "will_lose" for verdict, _ in log.read(rate, 60)]
    if all(safe[5:]):
        assert not log.lost
    if rate <= 1 / EVERY:
        assert not safe[-1] or log.lost


# Speeds.


def speeds(*rounds: tuple[int, int, int]) -> list[float]:
    """The speed of one item after each round: seconds, its offset, the time of its next record in seconds or -1."""
    measured = Speeds()
    measured.begin(np.zeros(1, np.int64), np.array([False]))
    return [
        float(measured.now(np.array([start]), np.array([-1 if at < 0 else 1000 * at]), 1000 * seconds)[0]) for seconds, start, at in rounds
    ]


LEAST, MARK = LEAST_MS // 1000, MARK_MS // 1000


@each_row(
    ("rounds", "speed"),
    [
        ([(0, 0, 0)], ABSENT),
        ([(0, 0, 0), (LEAST - 1, 9, 90)], ABSENT),
        ([(0, 0, 0), (LEAST, 9, 3 * LEAST)], 3.0),
        ([(0, 0, 0), (LEAST, 0, 0)], 0.0),
        ([(0, 5, 100), (LEAST, 4, 90), (2 * LEAST, 9, 90 + LEAST)], 1.0),  # since it went back
        ([(0, 0, 0), (LEAST, 9, -1), (2 * LEAST, 9, 500)], ABSENT),  # it had read everything
        ([(0, 0, 0), (MARK, 1, 10 * MARK), (2 * MARK, 2, 10 * MARK), (3 * MARK, 3, 10 * MARK)], 0.0),  # only the last minutes count
    ],
)
def test_a_speed_is_over_the_last_minutes(rounds: list[tuple[int, int, int]], speed: float) -> None:
    assert speeds(*rounds)[-1] == pytest.approx(speed)


def test_speeds_follow_their_items() -> None:
    measured = Speeds()
    measured.begin(np.zeros(2, np.int64), np.zeros(2, np.bool_))
    measured.now(np.array([0, 0]), np.array([0, 0]), 0)
    measured.begin(np.array([1, 0, 0]), np.array([True, True, False]))
    found = measured.now(np.array([1, 1, 1]), np.array([60_000, 120_000, 5]), 60_000)
    assert found.tolist() == [1.0, 2.0, ABSENT]
