"""Whose next record is in danger: a partition is compared with itself, the same for the judge and for the metric of the alert."""

from dataclasses import replace

import numpy as np

from streaming.broker.protocol.group_json import GroupPartition
from streaming.cluster.verdicts.conditions import certain_losses, endangered_losses, losses_by_cause, pair_losses
from streaming.cluster.verdicts.group_bounds import DEFAULT_BOUNDS, usages
from streaming.cluster.verdicts.group_judge import judge_groups
from tests.builders import NOW
from tests.group_snapshots import Group, snapshot_of

HOUR = 3_600_000


def waiting(partition: int, *, age: int, left: int, **values: object) -> GroupPartition:
    """A partition whose next record is so old, and is deleted so long from now."""
    facts = {"committed": 3, "lag_offsets": 4, "lag_records_read_committed": 4, "next_offset": 3, "next_append_ms": NOW - age}
    facts |= {"loss_ms": NOW + left}
    return GroupPartition(topic="orders", partition=partition, **facts | values)  # type: ignore[arg-type]


def endangered(*partitions: GroupPartition) -> tuple[list[int], list[int], str]:
    """Of each partition, of their pair, and the severity of the worst that is said of them."""
    snapshot = snapshot_of(Group(partitions=list(partitions)), now_ms=NOW)
    losses = endangered_losses(snapshot, usages(snapshot, NOW, DEFAULT_BOUNDS), NOW)
    return losses.tolist(), pair_losses(snapshot, losses).tolist(), judge_groups(snapshot, NOW).of_group("billing", 0).word


def test_the_loss_of_one_partition_is_not_compared_with_the_age_of_another() -> None:
    keeps_up, has_time = waiting(0, age=60_000, left=3 * HOUR), waiting(1, age=7 * HOUR // 2, left=168 * HOUR)
    assert endangered(keeps_up, has_time) == ([-1, -1], [-1], "")
    stopped = replace(has_time, stopped_since_ms=NOW - HOUR)
    assert endangered(keeps_up, stopped) == ([-1, NOW + 168 * HOUR], [NOW + 168 * HOUR], "warning")


def test_the_earliest_of_those_in_danger_counts() -> None:
    near, nearer, safe = waiting(0, age=3 * HOUR, left=2 * HOUR), waiting(1, age=3 * HOUR, left=HOUR), waiting(2, age=1, left=60_000)
    assert endangered(near, nearer, safe) == ([NOW + 2 * HOUR, NOW + HOUR, -1], [NOW + HOUR], "critical")


def test_what_is_due_is_in_danger_also_where_the_age_of_the_record_is_not_known() -> None:
    assert endangered(waiting(0, age=NOW + 1, left=-1))[1:] == ([NOW - 1], "critical")
    assert endangered(waiting(0, age=NOW + 1, left=1))[1:] == ([-1], "info")


def test_a_loss_by_limits_that_are_assumed_has_no_date_for_an_alert_and_no_severity_of_one() -> None:
    assumed = waiting(0, age=3 * HOUR, left=2 * HOUR, limits_assumed=True)
    assert endangered(assumed) == ([-1], [-1], "info")
    snapshot = snapshot_of(Group(partitions=[assumed, waiting(1, age=1, left=5 * HOUR)]), now_ms=NOW)
    assert certain_losses(snapshot.found).tolist() == [-1, NOW + 5 * HOUR]
    assert np.min(snapshot.found.loss_ms) == NOW + 2 * HOUR  # lists show it, with a question mark


def test_a_loss_that_waits_for_the_start_of_a_broker_has_no_date_for_an_alert() -> None:
    """It has none in lists either. Whoever starts the broker has to know it before."""
    away = waiting(0, age=3 * HOUR, left=0, loss_ms=-1, loss_start_of=2)
    assert endangered(away) == ([-1], [-1], "warning")
    assert endangered(away, waiting(1, age=3 * HOUR, left=HOUR))[1:] == ([NOW + HOUR], "critical")


def test_what_a_transaction_holds_up_is_distinguished_from_what_the_group_has_not_read() -> None:
    held, behind = waiting(0, age=3 * HOUR, left=HOUR, held=True), waiting(1, age=3 * HOUR, left=2 * HOUR)
    for partitions, causes in (
        ((held,), {"transaction": [NOW + HOUR], "group": [-1]}),
        ((behind,), {"transaction": [-1], "group": [NOW + 2 * HOUR]}),
        ((held, behind), {"transaction": [NOW + HOUR], "group": [NOW + 2 * HOUR]}),
        # who waits for one transaction after the other is in one danger, whose alert waits for two minutes
        ((waiting(0, age=89_999, left=500, held=True),), {"transaction": [-1], "group": [NOW + 500]}),
        ((waiting(0, age=90_000, left=500, held=True),), {"transaction": [NOW + 500], "group": [-1]}),
    ):
        snapshot = snapshot_of(Group(partitions=list(partitions)), now_ms=NOW)
        losses = endangered_losses(snapshot, usages(snapshot, NOW, DEFAULT_BOUNDS), NOW)
        assert {cause: each.tolist() for cause, each in losses_by_cause(snapshot, losses).items()} == causes
