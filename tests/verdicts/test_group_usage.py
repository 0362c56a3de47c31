"""Who uses a group, and how severe the same thing is for groups of each use: docs/groups.md has the same table."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from streaming.broker.protocol.group_json import GroupPartition, GroupUse, GroupVerdict, MovedOffset, PendingOffset
from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_partitions import NOT_COMMITTED
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.verdicts.group_bounds import DEFAULT_BOUNDS, Usage, usages
from streaming.cluster.verdicts.group_judge import JudgedGroups, judge_groups
from streaming.kafka.groups.commit_table import CoordinatorLog
from tests.builders import NOW
from tests.group_snapshots import Group, snapshot_of, storming
from tests.tables import each_row

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
DOCS = Path(__file__).parents[2] / "docs" / "groups.md"

READING = GroupPartition(
    topic="orders",
    partition=3,
    committed=100,
    commit_ms=NOW - 5000,
    log_start=40,
    high_watermark=150,
    last_stable_offset=150,
    lag_offsets=50,
    lag_records_read_committed=45,
    next_offset=101,
    next_timestamp_ms=NOW - 9000,
)
EMPTY = {"members": 0, "state": "Empty", "epoch": 0}
LEFT = EMPTY | {"epoch": 4}
UUID = "anonymous.0f8fad5b-d9cb-469f-a165-70867728950e"

Facts = Mapping[str, object] | None


def of(snapshot: GroupSnapshot, name: str = "billing") -> Usage:
    return usages(snapshot, NOW, DEFAULT_BOUNDS)[name]


def committed(ago_ms: int, facts: Facts, name: str = "billing", **values: int) -> GroupSnapshot:
    partition = replace(READING, commit_ms=NOW - ago_ms, **values)  # type: ignore[arg-type]
    return snapshot_of(Group(name=name, partitions=[partition], facts=facts), now_ms=NOW)


@each_row(
    ("ago_ms", "facts", "use", "between"),
    [
        (30 * DAY, {}, "in_use", False),  # members
        (30 * DAY, {"members": -2}, "unknown", False),  # a record that is not understood
        (2 * MINUTE, EMPTY | {"interval_ms": MINUTE}, "in_use", False),  # it commits all the time
        (2 * MINUTE + 1, EMPTY | {"interval_ms": MINUTE}, "unattended", False),
        (2 * HOUR, EMPTY | {"interval_ms": HOUR}, "in_use", True),
        (2 * HOUR, LEFT | {"interval_ms": HOUR}, "in_use", True),
        (2 * HOUR + 1, EMPTY | {"interval_ms": HOUR}, "unattended", False),
        (DAY, EMPTY | {"interval_ms": HOUR}, "unattended", False),
        (DAY + 1, EMPTY | {"interval_ms": HOUR}, "abandoned", False),
        (DAY + 1, EMPTY | {"interval_ms": 3 * HOUR}, "unattended", False),
        (30 * HOUR, EMPTY | {"interval_ms": 3 * HOUR}, "unattended", False),
        (30 * HOUR + 1, EMPTY | {"interval_ms": 3 * HOUR}, "abandoned", False),
        (1, EMPTY, "unattended", False),  # its rhythm is not known yet
        (DAY, EMPTY, "unattended", False),
        (DAY + 1, EMPTY, "abandoned", False),
        (DAY + 1, None, "abandoned", False),  # only commits
        (9 * DAY, LEFT | {"state_ms": NOW - HOUR}, "unattended", False),  # its members left an hour ago
        (9 * DAY, LEFT | {"state_ms": NOW - 2 * DAY}, "abandoned", False),
        (NOW + 1, EMPTY, "unknown", False),  # nothing shows when
        (5_000, LEFT | {"interval_ms": MINUTE, "state_ms": NOW - 30 * MINUTE}, "unattended", False),  # somebody has reset it
        (5_000, LEFT | {"interval_ms": MINUTE, "state_ms": NOW - 2 * DAY}, "abandoned", False),
        (5_000, LEFT | {"interval_ms": HOUR, "state_ms": NOW - 30 * MINUTE}, "in_use", True),
        (5_000, EMPTY | {"interval_ms": MINUTE, "state_ms": NOW - 30 * MINUTE}, "in_use", False),  # it never had members
        (5_000, LEFT | {"interval_ms": MINUTE}, "in_use", False),  # since when it has none is not known
    ],
)
def test_who_uses_a_group(ago_ms: int, facts: Facts, use: str, between: bool) -> None:
    found = of(committed(ago_ms, facts))
    assert (found.use, found.between) == (use, between)


@each_row(
    ("name", "thrown_away"),
    [
        ("console-consumer-77", True),
        ("console-consumer-", False),
        ("console-consumer-orders", False),
        ("my-console-consumer-77", False),
        (UUID, True),
        (UUID.upper().replace("ANONYMOUS", "anonymous"), True),
        ("anonymous.D5jL7DKdRZaHYw-8xw_2Ug", True),
        ("anonymous.payments", False),
        ("anonymous", False),
        ("test-7", True),  # by the option
        ("test-7-old", False),
    ],
)
def test_groups_that_are_thrown_away_have_such_names(name: str, thrown_away: bool) -> None:
    for facts in ({}, EMPTY):
        snapshot = replace(committed(5, facts, name), throwaway=re.compile(r"test-\d+"))
        assert (of(snapshot, name).use is GroupUse.THROW_AWAY) == thrown_away


def test_a_group_whose_coordinator_is_not_read_is_not_known() -> None:
    snapshot = committed(5, EMPTY | {"interval_ms": MINUTE}, unknown="coordinator_not_observed")
    assert of(snapshot).use == "unknown"
    log = CoordinatorLog(
        topic="__consumer_offsets",
        partition=0,
        agent="a",
        broker=1,
        edition="e",
        upto=5,
        high_watermark=-1,
        observed=False,
        waiting=0,
        unreadable=0,
        omitted=0,
    )
    without = snapshot_of(Group(facts={}), now_ms=NOW)
    assert of(without).use == "in_use"
    assert of(replace(without, coordinators=(log,))).use == "unknown"


def test_a_group_whose_offsets_expire_before_its_records_is_abandoned() -> None:
    soon = {"loss_ms": NOW + HOUR, "next_timestamp_ms": NOW - DAY}
    assert of(committed(HOUR, EMPTY, expiration_ms=NOW + HOUR, **soon)).use == "abandoned"
    assert of(committed(HOUR, EMPTY, expiration_ms=NOW + HOUR + 1, **soon)).use == "unattended"
    assert of(committed(HOUR, EMPTY, **soon)).use == "unattended"
    assert of(committed(HOUR, EMPTY, expiration_ms=NOW + DAY, loss_ms=NOW + 2 * DAY)).use == "unattended"  # nothing is near
    assert of(committed(HOUR, EMPTY | {"interval_ms": HOUR}, expiration_ms=NOW + HOUR, **soon)).use == "in_use"
    expires = replace(READING, commit_ms=NOW - HOUR, expiration_ms=NOW + HOUR, **soon)
    stays = replace(expires, partition=4, expiration_ms=NOW + 2 * HOUR)
    assert of(snapshot_of(Group(partitions=[expires, stays], facts=EMPTY), now_ms=NOW)).use == "unattended"


@pytest.mark.parametrize("seed", range(50))
def test_a_group_in_its_rhythm_is_used_and_no_group_is_abandoned_within_a_day(seed: int) -> None:
    random = Random(seed)
    interval, ago = random.randrange(MINUTE, 9 * DAY), random.randrange(20 * DAY)
    found = of(committed(ago, EMPTY | {"interval_ms": interval}))
    assert (found.use == "in_use") == (ago <= 2 * interval)
    assert (found.use == "abandoned") == (ago > max(DAY, 10 * interval))


# How severe the same thing is.

USES: dict[str, tuple[str, Facts, int]] = {
    "in use": ("billing", {}, 5),
    "unattended": ("billing", LEFT, HOUR),
    "abandoned": ("billing", LEFT, 2 * DAY),
    "throw-away": ("console-consumer-7", LEFT, HOUR),
    "not known": ("billing", {"members": -2}, HOUR),
}
"""The name of the group, what its coordinator knows of it, and how long ago it committed."""

THINGS: dict[GroupVerdict, GroupPartition] = {
    GroupVerdict.LOST: replace(READING, committed=30, lost_offsets=10, lost_records=5),
    GroupVerdict.WILL_LOSE: replace(READING, loss_ms=NOW + HOUR, next_timestamp_ms=NOW - 9 * HOUR),
    GroupVerdict.SKIPPED: replace(READING, moves=[MovedOffset(kind="admin", from_offset=3, to_offset=8, at_ms=NOW - HOUR, records=5)]),
    GroupVerdict.STOPPED: replace(READING, stopped_since_ms=NOW - HOUR),
    GroupVerdict.HELD: replace(READING, held=True, lag_records_read_committed=0, next_timestamp_ms=NOW - HOUR),
    GroupVerdict.PENDING: replace(
        READING, stopped_since_ms=NOW - HOUR, pending=[PendingOffset(producer_id=1, offset=2, coordinator=0, since_ms=NOW - 2 * DAY)]
    ),
    GroupVerdict.WILL_EXPIRE: replace(READING, expiration_ms=NOW + HOUR),
    GroupVerdict.BEYOND_END: GroupPartition(topic="orders", partition=7, committed=200, high_watermark=150, unknown="beyond_end"),
    GroupVerdict.OTHER_HISTORY: replace(READING, history="cut_off", history_epoch=3, go_on_at=80, passed_records=20),
    GroupVerdict.SKIPPED: replace(READING, moves=[MovedOffset(kind="admin", from_offset=40, to_offset=90, at_ms=NOW - HOUR, records=50)]),
}

TABLE = {
    GroupVerdict.WILL_LOSE: ("critical", "warning", "info", "", "critical"),
    GroupVerdict.WILL_EXPIRE: ("warning", "info", "", "", "warning"),
    **dict.fromkeys(
        (
            *(each for each in THINGS if each not in (GroupVerdict.WILL_LOSE, GroupVerdict.WILL_EXPIRE)),
            GroupVerdict.REBALANCING,
            GroupVerdict.DAMAGED,
        ),
        ("warning", "warning", "info", "", "warning"),
    ),
}
"""The severities for the uses, in their order."""


def judged(partition: GroupPartition, use: str) -> JudgedGroups:
    name, facts, ago = USES[use]
    return judge_groups(snapshot_of(Group(name=name, partitions=[replace(partition, commit_ms=NOW - ago)], facts=facts), now_ms=NOW), NOW)


@each_row(
    ("verdict", "use", "severity"),
    [(verdict, use, severity) for verdict, each in TABLE.items() if verdict in THINGS for use, severity in zip(USES, each, strict=True)],
)
def test_how_severe_it_is_for_whom(verdict: GroupVerdict, use: str, severity: str) -> None:
    found = judged(THINGS[verdict], use)
    stated = found.commits.severity[verdict, 0] != ABSENT  # that offsets expire, nobody is told of groups that nobody uses
    assert (found.judgement(verdict, 0).word if stated else "") == severity


@each_row(("use", "severity"), list(zip(USES, ("warning", "warning", "info", "", "warning"), strict=True)))
def test_what_goes_with_the_start_of_a_broker_is_a_warning_while_it_is_down(use: str, severity: str) -> None:
    """When the broker has started, it is too late to raise the limit. Limits that are assumed warn nobody."""
    due = replace(READING, loss_start_of=2, next_timestamp_ms=NOW - 9 * HOUR)
    assert judged(due, use).judgement(GroupVerdict.WILL_LOSE, 0).word == severity
    assumed = judged(replace(due, limits_assumed=True), use).judgement(GroupVerdict.WILL_LOSE, 0).word
    assert assumed == ("" if use == "throw-away" else "info")


@each_row(("use", "severity"), list(zip(USES, TABLE[GroupVerdict.REBALANCING], strict=True)))
def test_how_severe_it_is_that_a_group_rebalances_all_the_time(use: str, severity: str) -> None:
    name, facts, ago = USES[use]
    of = Group(name=name, partitions=[replace(READING, commit_ms=NOW - ago)], facts=facts | storming(NOW, 10))
    found = [each.word for each in judge_groups(snapshot_of(of, now_ms=NOW), NOW).about(name) if each.verdict is GroupVerdict.REBALANCING]
    assert found == [severity]


@each_row(("interval_ms", "ago_ms", "severity"), [(-1, 5, "warning"), (MINUTE, HOUR, "warning"), (MINUTE, MINUTE, "critical")])
def test_a_group_without_members_that_commits_in_its_rhythm_is_used(interval_ms: int, ago_ms: int, severity: str) -> None:
    """As one whose consumers have been assigned their partitions by hand, of Flink or Spark, and a job that runs now and then."""
    partition = replace(THINGS[GroupVerdict.WILL_LOSE], commit_ms=NOW - ago_ms)
    group = Group(partitions=[partition], facts=EMPTY | {"interval_ms": interval_ms})
    assert judge_groups(snapshot_of(group, now_ms=NOW), NOW).judgement(GroupVerdict.WILL_LOSE, 0).word == severity


def test_a_document_has_the_same_table() -> None:
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    stated = {row[0]: row[1:] for row in rows if len(row) == 1 + len(USES)}
    found = {name: tuple(each.replace("-", "") for each in of) for names, of in stated.items() for name in re.findall(r"`(\w+)`", names)}
    assert found == {verdict.label: of for verdict, of in TABLE.items()}, f"{DOCS.name} and TABLE have to name the same verdicts"


@each_row(("use", "severity"), [("unattended", "info"), ("abandoned", "info"), ("throw-away", "")])
def test_groups_that_nobody_is_in_lack_members_where_anybody_may_come_back(use: str, severity: str) -> None:
    found = judged(READING, use)
    assert [(each.verdict, each.word) for each in found.about(USES[use][0])] == [(GroupVerdict.NO_MEMBERS, severity)]


def test_between_its_runs_nothing_is_found() -> None:
    reading = replace(READING, commit_ms=NOW - HOUR, appended_rate=2.0, consumed_rate=1.0, next_timestamp_ms=NOW - HOUR)
    hourly = snapshot_of(Group(partitions=[reading], facts=LEFT | {"interval_ms": HOUR, "state_ms": NOW - HOUR}), now_ms=NOW)
    found = judge_groups(hourly, NOW)
    assert (found.of_group("billing", 0).verdict, found.of_group("billing", 0).word) == (GroupVerdict.BETWEEN_RUNS, "")
    assert judge_groups(hourly, NOW + HOUR + 1).of_group("billing", 0).verdict is GroupVerdict.NO_MEMBERS


def test_what_waits_without_a_commit_is_as_severe_as_the_rest() -> None:
    waits = [PendingOffset(producer_id=1, offset=2, coordinator=0, since_ms=NOW - 2 * DAY)]
    waiting = GroupPartition(topic="orders", partition=9, unknown=NOT_COMMITTED, pending=waits)
    stopped = replace(READING, commit_ms=NOW - 2 * DAY, stopped_since_ms=NOW - DAY)

    def severity(name: str, facts: Facts) -> str:
        snapshot = snapshot_of(Group(name=name, partitions=[stopped, waiting], facts=facts), now_ms=NOW)
        return judge_groups(snapshot, NOW).uncommitted[name]["orders", 9].word

    assert [severity("billing", {}), severity("billing", LEFT), severity(UUID, LEFT)] == ["warning", "info", ""]


def test_a_group_without_anything_is_not_known() -> None:
    assert of(snapshot_of(Group(facts=EMPTY), now_ms=NOW)).use == "unknown"


@each_row(
    ("loss_ms", "worst"),
    [
        (NOW + HOUR // 2 + 1, "between_runs"),  # the next run is due in half an hour
        (NOW + HOUR // 2, "will_lose"),
    ],
)
def test_a_group_between_its_runs_will_lose_what_goes_before_the_next_one(loss_ms: int, worst: str) -> None:
    partition = replace(READING, commit_ms=NOW - HOUR // 2, next_timestamp_ms=NOW - 9 * HOUR, loss_ms=loss_ms)
    facts = LEFT | {"interval_ms": HOUR, "state_ms": NOW - HOUR // 2}
    found = judge_groups(snapshot_of(Group(partitions=[partition], facts=facts), now_ms=NOW), NOW).of_group("billing", 0)
    assert (found.verdict.label, found.word) == (worst, "critical" if worst == "will_lose" else "")
