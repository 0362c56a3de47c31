"""A group that stands still near a loss: its own rhythm shows it, and the time that is left."""

from dataclasses import replace

import numpy as np

from streaming.broker.protocol.group_json import GroupPartition
from streaming.cluster.consumers.commit_times import AppendedNext
from streaming.cluster.verdicts.group_judge import judge_groups
from tests.builders import NOW
from tests.group_snapshots import Group, snapshot_of
from tests.tables import each_row

MINUTE = 60_000
HOUR = 60 * MINUTE


def verdict(stood_ms: int, left_ms: int, *, interval_ms: int = MINUTE, perhaps_ms: int | None = None, members: int = 1) -> tuple[str, str]:
    """Of a group that has stood for so long, and whose next record, which came then, is deleted so long from now."""
    waits = GroupPartition(
        topic="orders",
        partition=0,
        committed=3,
        commit_ms=NOW - 1000,
        lag_offsets=4,
        lag_records_read_committed=4,
        next_offset=3,
        next_append_ms=NOW - stood_ms,
        loss_ms=NOW + left_ms,
    )
    snapshot = snapshot_of(Group(partitions=[waits], facts={"interval_ms": interval_ms, "members": members}), now_ms=NOW)
    latest, earliest = (np.array([NOW - ms]) for ms in (stood_ms, perhaps_ms or stood_ms))
    snapshot = replace(
        snapshot,
        progress=replace(snapshot.progress, stopped_since_ms=latest, perhaps_since_ms=earliest),
        found=replace(snapshot.found, appended=AppendedNext(earliest_ms=earliest, latest_ms=latest)),
    )
    worst = judge_groups(snapshot, NOW).of_group("billing", 0)
    return worst.verdict.label, worst.word


@each_row(
    "stood_ms, left_ms, expected",
    [
        (2 * MINUTE, 13 * MINUTE, ("fine", "")),  # twice its usual interval is its rhythm
        (2 * MINUTE + 1, 13 * MINUTE, ("will_lose", "info")),
        (5 * MINUTE, 51 * MINUTE, ("fine", "")),
        (5 * MINUTE, 50 * MINUTE, ("will_lose", "info")),
        (9 * MINUTE, 23 * HOUR, ("fine", "")),
        (3 * HOUR, 25 * HOUR, ("fine", "")),
        (8 * MINUTE, 7 * MINUTE, ("will_lose", "critical")),  # and as before, by the age of the record
    ],
)
def test_a_group_that_stands_for_longer_than_it_pauses_will_lose_what_goes_soon(
    stood_ms: int, left_ms: int, expected: tuple[str, str]
) -> None:
    assert verdict(stood_ms, left_ms) == expected


@each_row(
    "interval_ms, expected",
    [(-1, "fine"), (MINUTE, "will_lose"), (3 * MINUTE, "fine"), (3 * MINUTE - 1, "will_lose")],
)
def test_its_own_rhythm_decides_and_where_that_is_not_known_only_whether_it_has_stopped(interval_ms: int, expected: str) -> None:
    assert verdict(6 * MINUTE, 50 * MINUTE, interval_ms=interval_ms)[0] == expected


def test_one_that_may_have_stood_for_as_long_is_neither_fine_nor_about_to_lose() -> None:
    assert verdict(MINUTE, 50 * MINUTE, perhaps_ms=6 * MINUTE) == ("unknown", "")
    assert verdict(MINUTE, 50 * MINUTE, perhaps_ms=4 * MINUTE) == ("fine", "")
    assert verdict(6 * MINUTE, 50 * MINUTE, perhaps_ms=8 * MINUTE) == ("will_lose", "info")
