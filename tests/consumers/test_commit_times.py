"""Coordinators whose clocks are wrong: nothing stands since a time to come, and no stamp alone makes a group alive, or abandons it."""

import pytest

from streaming.cluster.consumers.commit_times import AHEAD_MS, LATE_MS
from streaming.cluster.consumers.group_uncommitted import DEFAULT_MS
from streaming.cluster.verdicts.group_bounds import DEFAULT_BOUNDS, Usage, usages
from streaming.cluster.verdicts.group_judge import judge_groups
from tests.consumers.group_agents import GROUP, WAITING
from tests.consumers.group_world import STOPPED_MS, GroupJob, world
from tests.tables import each_row

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NOW = 100 * DAY
LEFT = GROUP | {"members": 0, "state": "Empty", "interval_ms": HOUR}
ABSENT = -1


def now() -> GroupJob:
    """A group without members, which commits once an hour."""
    job = world()
    job.now = NOW / 1000
    job.agents["a1"].groups_ = [LEFT]
    return job


def usage(job: GroupJob, seconds: float = 0) -> Usage:
    snapshot = job.round(seconds)
    return usages(snapshot, snapshot.at_ms, DEFAULT_BOUNDS)["g"]


@each_row(
    "stamp_ms, use, alive_ms",
    [
        (NOW - MINUTE, "in_use", NOW - MINUTE),
        (NOW + AHEAD_MS, "in_use", NOW),  # a clock that is right
        (NOW + AHEAD_MS + 1, "unknown", ABSENT),
        (NOW + DAY, "unknown", ABSENT),
        (NOW - 11 * DAY, "abandoned", NOW - 11 * DAY),
        (-1, "unknown", ABSENT),
    ],
)
def test_a_stamp_of_a_time_to_come_keeps_nobody_alive(stamp_ms: int, use: str, alive_ms: int) -> None:
    job = now()
    job.agents["a1"].commit(3, commit_ms=stamp_ms)
    found = usage(job)
    assert (found.use, found.alive_ms, found.between) == (use, alive_ms, use == "in_use")


@each_row(
    "stamp_ms, alive_ms",
    [
        (NOW + 60_000 + DAY, NOW + 60_000),
        (NOW + 60_000 - DAY, NOW),  # it came after the round before
        (NOW + 60_000 - LATE_MS, NOW + 60_000 - LATE_MS),  # as one that an agent was late to report
        (NOW + 30_000, NOW + 30_000),
    ],
)
def test_who_sees_a_commit_come_knows_when_it_was_made(stamp_ms: int, alive_ms: int) -> None:
    """Also one of the same offset, as auto-commit makes them, and for as long as it is the last one."""
    job = now()
    job.agents["a1"].commit(3, commit_ms=NOW - 11 * DAY)
    assert usage(job).use == "abandoned"
    job.agents["a1"].commit(3, commit_ms=stamp_ms)
    for seconds in (60, 60, 600):
        found = usage(job, seconds)
        assert (found.use, found.alive_ms) == ("in_use", alive_ms), seconds
    assert usage(job, 3 * 3600).use == "unattended"


def test_what_is_not_known_for_a_moment_was_committed_when_it_was() -> None:
    job = now()
    job.agents["a1"].commit(3, commit_ms=NOW - 11 * DAY)
    job.play("+0")
    job.agents["a1"].commit(3, commit_ms=NOW + DAY)
    assert usage(job, 60).alive_ms == NOW + MINUTE
    job.agents["a1"].commit(4, commit_ms=NOW + DAY, effective_offset=5_000)  # above the high watermark
    job.play("+60")
    assert usage(job, 60).alive_ms == NOW + MINUTE


@pytest.mark.parametrize("stamp_ms", [NOW + DAY, NOW + 5 * HOUR])
def test_a_group_stands_since_no_time_to_come_and_stops_as_soon_as_any(stamp_ms: int) -> None:
    job = now()
    job.agents["a1"].groups_ = [GROUP]
    job.agents["a1"].commit(3, commit_ms=stamp_ms)
    snapshot = job.round()
    assert snapshot.progress.stopped_since_ms.tolist() == [NOW]
    job.round(STOPPED_MS / 1000 - 1)
    assert job.page()["group_stopped_partitions{g,orders}"] == 0
    job.play("+1")
    assert job.page()["group_stopped_partitions{g,orders}"] == 1


def test_a_commit_that_waits_has_waited_since_it_was_first_there() -> None:
    job = now()
    job.agents["a1"].commit(3, commit_ms=NOW - MINUTE)
    job.agents["a1"].groups_ = [GROUP]
    job.agents["a1"].pending = [WAITING | {"commit_ms": NOW + DAY}]
    for seconds, verdict in ((0, "fine"), (60, "fine"), (1, "pending")):
        snapshot = job.round(seconds)
        assert [each.commit_ms for each in snapshot.pending] == [NOW]
        assert judge_groups(snapshot, snapshot.at_ms).of_row(0)[0].verdict.label == verdict, seconds


def test_a_group_is_empty_since_no_time_to_come() -> None:
    job = now()
    job.agents["a1"].groups_ = [LEFT | {"state_ms": NOW + DAY}]
    job.agents["a1"].commit(3, commit_ms=NOW - 11 * DAY)
    assert usage(job).use == "abandoned"
    detail = job.about()
    assert detail.summary.state_ms == ABSENT
    (found,) = (each.text for each in detail.findings if each.verdict == "no_members")
    assert found.startswith("it has no member, and something is left to read. Start its consumers")


@each_row("stamp_ms", [NOW + DAY, NOW - DAY, NOW])
def test_offsets_expire_by_their_coordinators_own_stamps(stamp_ms: int) -> None:
    job = now()
    job.agents["a1"].groups_ = [LEFT | {"type": "Consumer", "topics": []}]
    job.agents["a1"].commit(3, commit_ms=stamp_ms)
    assert job.round().found.expiration_ms.tolist() == [stamp_ms + DEFAULT_MS]
    job.agents["a1"].groups_ = [LEFT | {"type": "Classic", "state_ms": stamp_ms}]
    assert job.round(1).found.expiration_ms.tolist() == [stamp_ms + DEFAULT_MS]
