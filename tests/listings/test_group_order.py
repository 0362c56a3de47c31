"""The list of groups: what comes first, and by whom they are used."""

from dataclasses import replace

from streaming.broker.protocol.group_json import GroupPage, GroupPartition
from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.pages.api.listed_groups import GroupResults, ListedGroups
from streaming.pages.api.paging import page_request
from streaming.pages.listings.declared_lists import GROUPS
from tests.builders import NOW
from tests.group_snapshots import Group, snapshot_of

HOUR = 3_600_000
READING = GroupPartition(
    topic="orders", partition=3, committed=100, commit_ms=NOW - 5000, lag_offsets=50, lag_records_read_committed=45, next_offset=101
)
NEAR = replace(READING, loss_ms=NOW + HOUR, next_timestamp_ms=NOW - 9 * HOUR)


def listed(query: str, *groups: Group) -> GroupPage:
    snapshot = snapshot_of(*groups, now_ms=NOW)
    answers = ListedGroups(
        judged=judge_groups(snapshot, NOW),
        results=GroupResults(snapshot, lambda _: True),
        messages=lambda: None,  # type: ignore[arg-type,return-value]
    )
    return answers.page(page_request(query, GROUPS))


SOME = (
    Group(name="far", partitions=[replace(NEAR, loss_ms=NOW + 3 * HOUR, lag_records_read_committed=99)], facts={}),
    Group(name="gone", partitions=[replace(NEAR, commit_ms=NOW - 48 * HOUR)], facts={"members": 0, "state": "Empty"}),
    Group(name="idle", partitions=[replace(READING, lag_records_read_committed=500)], facts={}),
    Group(name="near", partitions=[NEAR], facts={}),
    Group(name="stands", partitions=[replace(READING, stopped_since_ms=NOW - HOUR)], facts={}),
    Group(name="console-consumer-7", partitions=[NEAR], facts={}),
)


def test_the_most_severe_comes_first_and_of_those_the_one_that_loses_first() -> None:
    rows = listed("", *SOME).rows
    assert [(row.group, row.severity) for row in rows] == [
        ("near", "critical"),
        ("far", "critical"),
        ("stands", "warning"),
        ("gone", "info"),
        ("console-consumer-7", ""),
        ("idle", ""),
    ]


def test_groups_are_sorted_by_who_uses_them() -> None:
    uses = [row.use for row in listed("sort=use", *SOME).rows]
    assert uses == sorted(uses)
    assert set(uses) == {"in_use", "abandoned", "throw_away"}
