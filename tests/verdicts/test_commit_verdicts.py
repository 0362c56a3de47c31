"""Verdicts about commits: from when on, and how severe they are at their bounds."""

from dataclasses import replace

import numpy as np

from streaming.broker.protocol.group_json import GroupPartition
from streaming.cluster.consumers.group_counting import LOST_LATELY_MS
from streaming.cluster.verdicts.group_bounds import DEFAULT_BOUNDS
from streaming.cluster.verdicts.group_judge import judge_groups
from tests.builders import NOW
from tests.group_snapshots import Group, snapshot_of
from tests.tables import each_row

HOUR = 3_600_000


@each_row("since_ms, severity", [(DEFAULT_BOUNDS.lost_lately_ms, "warning"), (DEFAULT_BOUNDS.lost_lately_ms + 1, "info")])
def test_a_loss_is_a_warning_for_a_day(since_ms: int, severity: str) -> None:
    assert DEFAULT_BOUNDS.lost_lately_ms == LOST_LATELY_MS == 24 * HOUR, "the range of the alert, and what is remembered"
    lost = GroupPartition(topic="orders", partition=0, committed=3, log_start=8, lost_offsets=5, lost_records=5)
    snapshot = snapshot_of(Group(partitions=[lost]), now_ms=NOW)
    began = np.array([NOW - 30 * HOUR])
    seen = replace(snapshot, progress=replace(snapshot.progress, lost_ms=np.array([NOW - since_ms]), losing_since_ms=began))
    worst = judge_groups(seen, NOW).of_group("billing", 0)
    assert (worst.verdict.label, worst.word, worst.since_ms) == ("lost", severity, NOW - 30 * HOUR)


def test_what_is_lost_is_lost_for_a_day_also_where_it_was_perhaps_no_record() -> None:
    day = DEFAULT_BOUNDS.lost_lately_ms
    partition = GroupPartition(topic="orders", partition=0, committed=30, lag_offsets=0, lag_records_read_committed=0)
    snapshot = snapshot_of(Group(partitions=[partition]), now_ms=NOW)

    def worst(since_ms: int, *, doubtful: bool) -> str:
        progress = replace(snapshot.progress, lost_ms=np.array([NOW - since_ms]))
        facts = replace(snapshot.found, loss_doubtful=np.array([doubtful]))
        return judge_groups(replace(snapshot, progress=progress, found=facts), NOW).of_row(0)[0].verdict.label

    assert [worst(since, doubtful=False) for since in (day, day + 1)] == ["lost", "fine"]
    assert [worst(since, doubtful=True) for since in (day, day + 1)] == ["lost", "perhaps_lost"]


def test_a_group_is_held_since_the_time_of_its_next_record() -> None:
    held = GroupPartition(
        topic="orders",
        partition=0,
        committed=3,
        lag_offsets=4,
        held=True,
        next_offset=3,
        next_append_ms=NOW - HOUR,
        stopped_since_ms=NOW - 2 * HOUR,
    )
    worst = judge_groups(snapshot_of(Group(partitions=[held]), now_ms=NOW), NOW).of_row(0)[0]
    assert (worst.verdict.label, worst.since_ms) == ("held", NOW - HOUR)
