"""The usual interval between two commits of a group, whatever it commits and however often."""

from collections.abc import Iterable
from itertools import pairwise
from random import Random

import pytest

from streaming.kafka.groups.membership import COUNTS_TIMES, SHORT_MS, Rhythm
from tests.groups.coordinator import Log
from tests.tables import each_row

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
BEGUN = 1_700_000_000_000


def usual(times: Iterable[int]) -> int:
    """The usual interval of a group that commits one partition at these times."""
    rhythm, before = Rhythm(), -1
    for at in times:
        was = rhythm.usual_ms
        assert rhythm.committed(before, at) == (rhythm.usual_ms != was)
        before = at
    return rhythm.usual_ms


def run(begun: int, commits: int = 200, step: int = SECOND) -> list[int]:
    """The commits of one run."""
    return [begun + number * step for number in range(commits)]


def interval_of(commits: Iterable[tuple[int, int]]) -> int:
    """Of a log with these commits: when, and of which partition."""
    found: int = Log(" ".join(f"{number}/{partition}@{at}" for number, (at, partition) in enumerate(commits))).row["interval_ms"]
    return found


HOURLY = [at for hour in range(3) for at in run(BEGUN + hour * HOUR)]


@each_row(
    ("times", "interval"),
    [
        ([], -1),
        ([BEGUN], -1),
        ([BEGUN, BEGUN + HOUR], -1),  # one interval is no habit
        (run(BEGUN, 3), SHORT_MS),
        (run(BEGUN, 3, SHORT_MS), SHORT_MS),
        (run(BEGUN, 3, SHORT_MS + 1), SHORT_MS + 1),
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
    random, times = Random(seed), [BEGUN]
    for _ in range(random.randrange(2, 200)):
        times.append(times[-1] + random.choice((5 * SECOND, 40 * SECOND, random.randrange(1, 3 * HOUR), HOUR, random.randrange(1, DAY))))
    intervals = [(after - before, after) for before, after in pairwise(times)]
    counting = (max(one, SHORT_MS) for one, ended in intervals if one <= SHORT_MS or times[-1] - ended <= COUNTS_TIMES * one)
    lengths = sorted(counting, reverse=True)
    expected = lengths[1] if len(lengths) > 1 else -1
    assert expected / 2 <= usual(times) <= expected


@pytest.mark.parametrize("seed", range(10))
def test_compaction_makes_no_interval_longer(seed: int) -> None:
    """The cleaner leaves the last commit of each partition of what it has cleaned."""
    random = Random(seed)
    runs = sorted(
        (at, partition)
        for hour in range(8)
        for at in run(BEGUN + hour * random.choice((HOUR, MINUTE)), 30)
        for partition in random.sample(range(6), random.choice((1, 5, 6)))
    )
    cleaned = random.randrange(len(runs))
    last = {partition: number for number, (_, partition) in enumerate(runs[:cleaned])}
    kept = [each for number, each in enumerate(runs) if number >= cleaned or last[each[1]] == number]
    assert interval_of(kept) <= max(interval_of(runs), SHORT_MS)


def test_a_group_is_reported_again_when_its_rhythm_changes_and_only_then() -> None:
    beside = sorted([(at, 1) for at in run(BEGUN, 2 * 3600)] + [(BEGUN + hour * HOUR, 0) for hour in range(3)])
    assert interval_of(beside) == SHORT_MS, "in a partition nothing comes, while the group goes on"
    log = Log(f"1@{BEGUN} 2@{BEGUN + HOUR}")
    before = log.replay.version
    (row,) = log.play(f"3@{BEGUN + 2 * HOUR}").rows(before)
    assert row["interval_ms"] == HOUR
    before = log.replay.version
    assert log.play(f"4@{BEGUN + 2 * HOUR + SECOND}").rows(before) == []
    assert log.play("G1(a)").row["interval_ms"] == HOUR, "a record about the group leaves it"
    assert log.play("G~").row["interval_ms"] == -1
