"""Groups that begin at the earliest record of a log while retention deletes its first segments: who reads away from that."""

import json
from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
import pytest

from streaming.cluster.consumers.group_counting import LASTING_MS
from streaming.common.rows import SEGMENTS
from tests.consumers.group_agents import GROUP, FakeAgent, Records
from tests.consumers.group_world import GroupJob
from tests.view.reported import Facts
from tests.view.rows import new_table

EVERY = 10
"""Seconds between two records."""

KEPT, SEGMENT, ROUND = 7_200, 60, 15
"""Seconds that records are kept, records of a segment, and seconds between two rounds."""

NOW = 1_000_000

FORETOLD = 60
"""Seconds before a loss by which it is told."""


class Deleting:
    """A log to which a record is appended every ten seconds, and of which retention deletes what is older than two hours.

    Args:
        behind: by so many seconds the job is behind its agent.
    """

    def __init__(self, kept: int = KEPT, segment: int = SEGMENT, behind: int = 0) -> None:
        self.kept, self.segment, self.behind = kept, segment, behind
        self.agent = FakeAgent(logs={("orders", 0): Records([])}, groups_=[GROUP])
        self.job = GroupJob(new_table(), {"a1": self.agent}, now=float(NOW))
        self.job.put("__consumer_offsets", end=1000)
        self.job.reach()
        self.committed = -1.0
        self.lost = False
        self._log()

    @property
    def clock(self) -> int:
        """As of when the log is told."""
        return int(self.job.now) - self.behind

    @property
    def start(self) -> int:
        """The first record of the first segment that has one young enough."""
        oldest = -(-(self.clock - self.kept) // EVERY) - NOW // EVERY + 10_000
        return max(oldest // self.segment * self.segment, 0)

    @property
    def end(self) -> int:
        return (self.clock - NOW) // EVERY + 10_000

    def at(self, offset: int) -> int:
        """When a record was appended."""
        return 1000 * (NOW + EVERY * (offset - 10_000))

    def _log(self) -> None:
        records = self.agent.logs["orders", 0]
        for offset in range(len(records.kinds), self.end):
            records.kinds.append("data")
            records.times[offset] = self.at(offset)
        bases = range(self.start, self.end, self.segment)
        lasts = [min(base + self.segment, self.end) - 1 for base in bases]
        rows = [(base, 100 * (last + 1 - base), self.at(last), self.at(last)) for base, last in zip(bases, lasts, strict=True)]
        facts = Facts(segments=np.array(rows, SEGMENTS), configs=json.dumps({"topic": {"retention.ms": str(1000 * self.kept)}}))
        self.job.put(end=self.end, log_start_offset=self.start, facts=facts.encode(), active_segment=bases[-1], active_position=rows[-1][1])

    def read(self, rate: float, rounds: int) -> Iterator[tuple[str, str]]:
        """The verdict and its severity after each round in which the group reads so many records a second."""
        for _ in range(rounds):
            self.committed = max(self.committed, float(self.start)) if self.committed < 0 else self.committed
            self.lost |= self.committed < self.start
            self.agent.commit(min(int(self.committed), self.end), commit_ms=1000 * self.clock)
            self.job.behind["a1"] = float(self.behind)
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


class Appended:
    """A log to which records were appended at these seconds, of which retention deletes what is older than 15 minutes."""

    kept = 900

    def __init__(self, times: Sequence[int], segment: int) -> None:
        self.times, self.segment = times, segment

    def end(self, now: int) -> int:
        return int(np.searchsorted(self.times, now, side="right"))

    def start(self, now: int) -> int:
        """Of the first segment of which the newest record is young enough; the active one gets no newer records."""
        bases = range(0, max(self.end(now), 1), self.segment)
        young = (base for base in bases if self.newest(base, now) + self.kept >= now)
        return next(young, self.end(now))

    def newest(self, base: int, now: int) -> int:
        return self.times[min(base + self.segment, self.end(now)) - 1]

    def loss(self, rate: float, begun: int, until: int) -> int:
        """When a group first loses something that reads from the beginning, at so many records a second; -1 for never."""
        read = 0.0
        for now in range(begun, until, ROUND):
            if read < self.start(now):
                return now
            read = min(read + rate * ROUND, self.end(now))
        return -1

    def verdicts(self, rate: float, begun: int, until: int, *, reads_until: int = 2 * NOW) -> Iterator[tuple[int, str, str]]:
        """What a job says after each round of a group that reads like this, until it loses something."""
        agent = FakeAgent(logs={("orders", 0): Records([])}, groups_=[GROUP])
        job = GroupJob(new_table(), {"a1": agent}, now=float(begun - ROUND))
        job.put("__consumer_offsets", end=1000)
        job.reach()
        read = 0.0
        for now in range(begun, until, ROUND):
            start, end = self.start(now), self.end(now)
            if read < start:
                return
            records = agent.logs["orders", 0]
            for offset in range(len(records.kinds), end):
                records.kinds.append("data")
                records.times[offset] = 1000 * self.times[offset]
            bases = range(start, max(end, start + 1), self.segment)
            rows = [(base, 100 * self.segment, 1000 * self.newest(base, now), 1000 * self.newest(base, now)) for base in bases]
            facts = Facts(segments=np.array(rows, SEGMENTS), configs=json.dumps({"topic": {"retention.ms": str(1000 * self.kept)}}))
            job.put(end=end, log_start_offset=start, facts=facts.encode(), active_segment=bases[-1], active_position=rows[-1][1])
            agent.commit(int(read), commit_ms=1000 * now)
            job.round(ROUND)
            detail = job.detail()
            assert detail is not None
            yield now, detail.summary.verdict, detail.summary.severity
            read = min(read + rate * ROUND, end) if now < reads_until else read


def burst(count: int, every: int = 0, until: int = 0) -> list[int]:
    """So many records within ten seconds, and then one every so many seconds."""
    return sorted([NOW + 10 * number // count for number in range(count)] + (list(range(NOW + 10, NOW + until, every)) if every else []))


def test_a_backlog_of_one_burst_that_is_read_in_time_is_no_danger() -> None:
    """It is through after ten minutes, and records are kept for fifteen: half of that time is over before."""
    log = Appended(burst(1200), 100)
    assert log.loss(2.0, NOW + 15, NOW + 2000) == -1
    verdicts = list(log.verdicts(2.0, NOW + 15, NOW + 1500))
    assert {severity for _, _, severity in verdicts[3:]} == {""}
    assert "catching_up" in {verdict for _, verdict, _ in verdicts}


def test_a_backlog_of_one_burst_that_is_not_read_in_time_is_a_danger_long_before() -> None:
    log = Appended(burst(1200), 100)
    lost = log.loss(1.2, NOW + 15, NOW + 2000)
    verdicts = [now for now, _, severity in log.verdicts(1.2, NOW + 15, NOW + 2000) if severity == "critical"]
    assert NOW + 900 < lost <= NOW + 930
    assert min(verdicts) <= NOW + 500


@pytest.mark.parametrize("rate", [0.2, 0.5])
def test_a_group_that_is_far_too_slow_for_a_burst_will_lose_records_and_has_no_time_when_it_is_through(rate: float) -> None:
    """It would read 180, or 450, of 1,200 records before all of them go."""
    log = Appended(burst(1200), 100)
    verdicts = list(log.verdicts(rate, NOW + 15, NOW + 900))
    settled = [(verdict, severity) for now, verdict, severity in verdicts if now > NOW + 150]
    assert {verdict for verdict, _ in settled} == {"will_lose"}
    assert settled[0] == ("will_lose", "info")
    assert settled[-1] == ("will_lose", "critical")
    assert "catching_up" not in {verdict for _, verdict, _ in verdicts[3:]}


def test_a_group_that_stops_in_a_burst_is_in_danger_when_its_rate_has_faded() -> None:
    """It has read a half in five minutes, and no more."""
    log = Appended(burst(600), 100)
    verdicts = [now for now, _, severity in log.verdicts(1.0, NOW + 15, NOW + 900, reads_until=NOW + 315) if severity == "critical"]
    assert NOW + 450 < min(verdicts) <= NOW + 600
    assert verdicts == list(range(min(verdicts), NOW + 900, ROUND))


@pytest.mark.parametrize("seed", range(24))
def test_every_loss_is_foretold_before_it_comes_and_who_is_fast_enough_is_in_no_danger(seed: int) -> None:
    """After a burst, with or without steady appends, at whatever rate."""
    random = Random(seed)
    count, every = random.choice((300, 900)), random.choice((0, 1, 3))
    log = Appended(burst(count, every, 4000), random.choice((50, 200)))
    rate = random.choice((0.2, 0.4, 0.8, 1.0, 1.2, 1.5, 2.0)) * random.uniform(0.8, 1.2)
    begun = NOW + random.choice((15, 300, 600))
    lost = log.loss(rate, begun, NOW + 2000)
    verdicts = list(log.verdicts(rate, begun, NOW + 2000))
    if lost >= 0:
        assert all(severity == "critical" for now, _, severity in verdicts if now > lost - FORETOLD)
    if log.loss(rate / 1.3, begun, NOW + 3900) < 0:
        assert {severity for now, _, severity in verdicts if now > begun + LASTING_MS // 1000} <= {"", "info"}
