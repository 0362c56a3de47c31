"""The usual interval between two commits of a group, whatever it commits and however often."""

from collections.abc import Iterable
from itertools import pairwise
from random import Random

import pytest

from streaming.common.log_key import LogKey
from streaming.kafka.formats.consumer_offsets import GroupKey, OffsetCommit
from streaming.kafka.groups.commit_log import CommitLog
from streaming.kafka.groups.followed_groups import GroupLimit
from streaming.kafka.groups.rhythm import COUNTS_TIMES, SHORT_MS, Rhythm
from streaming.kafka.scan.group_records import Commit, GroupRecord, GroupRecords
from tests.groups.test_membership import classic
from tests.tables import each_row

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
BEGUN = 1_700_000_000_000

Committed = tuple[int, int]
"""When, and of which partition."""


def usual(times: Iterable[int]) -> int:
    """The usual interval of a group that commits one partition at these times."""
    rhythm, before = Rhythm(), -1
    for at in times:
        rhythm.committed(before, at)
        before = at
    return rhythm.usual_ms


def run(begun: int, commits: int = 200, step: int = SECOND) -> list[int]:
    """The commits of one run."""
    return [begun + number * step for number in range(commits)]


def log_of(commits: Iterable[Committed], group: str = "g") -> CommitLog:
    log = CommitLog(LogKey(1, "__consumer_offsets", 3, "id"), "e", GroupLimit(9))
    records = tuple(
        Commit(number, -1, group, "t", partition, OffsetCommit(offset=number, metadata="", commit_timestamp=at))
        for number, (at, partition) in enumerate(commits)
    )
    log.replay(GroupRecords(records, 0), len(records))
    return log


def interval_in(log: CommitLog, after: int = 0) -> int:
    (row,) = log.changes(after).groups.to_pylist()
    assert isinstance(row["interval_ms"], int)
    return row["interval_ms"]


HOURLY = [at for hour in range(3) for at in run(BEGUN + hour * HOUR)]


@each_row(
    ("times", "interval"),
    [
        ([], -1),
        ([BEGUN], -1),
        ([BEGUN, BEGUN + HOUR], -1),  # one interval is no habit
        (run(BEGUN, 3), SHORT_MS),
        ([BEGUN, BEGUN + HOUR, BEGUN + 2 * HOUR + MINUTE], HOUR),
        (HOURLY, HOUR - 199 * SECOND),  # 200 commits in three minutes, and a pause of almost an hour
        ([*run(BEGUN), *run(BEGUN + 3 * DAY)], SHORT_MS),  # one outage
        ([BEGUN + day * DAY for day in (0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 14)], 3 * DAY),  # a weekend comes again
        ([*HOURLY, *run(HOURLY[-1] + HOUR, 7 * 3600)], HOUR - 199 * SECOND),  # seven hours without a pause
        ([*HOURLY, *run(HOURLY[-1] + HOUR, 11 * 3600)], SHORT_MS),  # another habit by now
        ([BEGUN, BEGUN, BEGUN], -1),  # partitions of one commit
        ([BEGUN + HOUR, BEGUN, BEGUN + 2 * HOUR], -1),  # a clock that was set back
        ([0, 2**63 - 1, 0, 2**63 - 1], -1),
    ],
)
def test_the_usual_interval_is_the_second_longest_that_counts(times: list[int], interval: int) -> None:
    assert usual(times) == interval


@pytest.mark.parametrize("seed", range(60))
def test_it_is_what_comes_of_all_intervals(seed: int) -> None:
    """Up to the bits that are left out of what is kept: the last two of each length."""
    random = Random(seed)
    times = [BEGUN]
    for _ in range(random.randrange(2, 200)):
        times.append(times[-1] + random.choice((5 * SECOND, 40 * SECOND, random.randrange(1, 3 * HOUR), HOUR, random.randrange(1, DAY))))
    intervals = [(after - before, after) for before, after in pairwise(times)]
    lengths = sorted(
        (max(length, SHORT_MS) for length, ended in intervals if length <= SHORT_MS or times[-1] - ended <= COUNTS_TIMES * length),
        reverse=True,
    )
    expected = lengths[1] if len(lengths) > 1 else -1
    assert expected / 2 <= usual(times) <= expected


@pytest.mark.parametrize("seed", range(20))
def test_compaction_makes_no_interval_longer(seed: int) -> None:
    """The cleaner leaves the last commit of each partition of what it has cleaned."""
    random = Random(seed)
    runs = [
        (at, partition)
        for hour in range(8)
        for at in run(BEGUN + hour * random.choice((HOUR, MINUTE)), 30)
        for partition in sorted(random.sample(range(6), random.choice((1, 5, 6))))
    ]
    runs.sort()
    cleaned = random.randrange(len(runs))
    last = {partition: number for number, (_, partition) in enumerate(runs[:cleaned])}
    kept = [each for number, each in enumerate(runs) if number >= cleaned or last[each[1]] == number]
    assert interval_in(log_of(kept)) <= max(interval_in(log_of(runs)), SHORT_MS)


def test_partitions_that_are_committed_one_after_the_other_make_no_pause() -> None:
    """A partition in which nothing comes is not committed, while the group goes on."""
    others = [(at, 1) for at in run(BEGUN, 7200)]
    quiet = [(BEGUN + hour * HOUR, 0) for hour in range(3)]
    assert interval_in(log_of(sorted(others + quiet))) == SHORT_MS


def test_a_group_is_reported_again_when_its_rhythm_changes_and_only_then() -> None:
    log = log_of([(BEGUN, 0), (BEGUN + HOUR, 0)])
    before = log.version
    assert interval_in(log) == -1

    def commit(at: int) -> None:
        value = OffsetCommit(offset=at, metadata="", commit_timestamp=at)
        log.replay(GroupRecords((Commit(log.upto, -1, "g", "t", 0, value),), 0), log.upto + 1)

    commit(BEGUN + 2 * HOUR)
    assert interval_in(log, before) == HOUR
    before = log.version
    commit(BEGUN + 2 * HOUR + SECOND)
    assert log.changes(before).groups.num_rows == 0


def test_a_record_about_the_group_leaves_its_rhythm_and_its_deletion_does_not() -> None:
    log = log_of([(BEGUN + hour * HOUR, 0) for hour in range(3)])
    log.replay(GroupRecords((GroupRecord(9, GroupKey("g"), classic("a")),), 0), 10)
    assert interval_in(log) == HOUR
    log.replay(GroupRecords((GroupRecord(10, GroupKey("g"), None),), 0), 11)
    assert interval_in(log) == -1
