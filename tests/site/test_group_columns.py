"""What the page's tables and verdicts about consumer groups show, and how severe they look."""

from typing import Any

import pytest

from streaming.protocol.group_json import GroupDetail, GroupPartition, GroupSummary, NextBatch
from streaming.protocol.problem_json import CRITICAL, WARNING
from streaming.protocol.status_json import Status
from streaming.site.group_columns import GROUP_COLUMNS, GROUP_PARTITION_COLUMNS
from streaming.site.group_view import GroupView, group_view
from streaming.site.page_query import Query
from streaming.site.page_words import NOTHING, Cell

NOW_MS = 1_700_000_000_000
HOUR = 3_600_000


def of_group(head: str, **values: Any) -> Cell:
    (column,) = (each for each in GROUP_COLUMNS if each.head == head)
    return column.cell(GroupSummary(group="g", **values), NOW_MS)


def of_partition(head: str, **values: Any) -> Cell:
    (column,) = (each for each in GROUP_PARTITION_COLUMNS if each.head == head)
    return column.cell(GroupPartition(topic="t", partition=0, **values), NOW_MS)


def viewed(*, summary: dict[str, Any] | None = None, **values: Any) -> GroupView:
    found = GroupPartition(topic="t", partition=0, committed=5, **values)
    detail = GroupDetail(at_ms=NOW_MS, summary=GroupSummary(group="g", partitions=1, members=1, **summary or {}), partitions=[found])
    return group_view(detail, Query(), Status(at_ms=NOW_MS, version="0", ready=True, verdict="", freshness=""))


@pytest.mark.parametrize(
    ("values", "text", "tone"),
    [
        ({}, NOTHING, ""),
        ({"below_start": 1}, "1 lost records", CRITICAL),
        ({"held": 2}, "2 held up", WARNING),
        ({"beyond_end": 3}, "3 beyond the end", WARNING),
        ({"stopped": 4}, "4 stopped", WARNING),
        ({"pending": 1500}, "1,500 with commits that wait", WARNING),
        ({"held": 2, "below_start": 1}, "1 lost records, 2 held up", CRITICAL),
    ],
)
def test_partitions_in_trouble_are_counted_and_lost_records_are_critical(values: dict[str, int], text: str, tone: str) -> None:
    found = of_group("Partitions in trouble", **values)
    assert (found.text, found.tone) == (text, tone)


def test_what_is_left_of_a_group_is_in_records_or_else_in_offsets() -> None:
    cells = [
        of_group("Records left", lag_records_read_committed=0, lag_offsets=9),
        of_group("Records left", lag_records_read_committed=1500, unknown=2),
        of_group("Records left", lag_offsets=0),
        of_group("Records left"),
    ]
    assert [(each.text, each.note) for each in cells] == [("0", ""), ("1,500", "2 unknown"), ("0", "offsets"), (NOTHING, "")]


def test_the_state_of_a_group_has_its_members_where_they_are_known() -> None:
    cells = [of_group("State", state="Empty", members=0), of_group("State", state="Stable", members=1), of_group("State")]
    assert [(each.text, each.note) for each in cells] == [("Empty", "0 members"), ("Stable", "1 member"), (NOTHING, "")]


def test_times_of_a_group_are_each_its_own() -> None:
    times = {"oldest_append_ms": NOW_MS - HOUR, "loss_ms": NOW_MS + 2 * HOUR, "last_commit_ms": NOW_MS - 3 * HOUR}
    heads = ("Oldest unread", "First loss", "Last commit")
    assert [of_group(head, **times).text for head in heads] == ["1h ago", "in 2h", "3h ago"]
    facts = {each.name: each.value.text for each in viewed(summary=times).facts}
    assert [facts[head] for head in heads] == ["1h ago", "in 2h", "3h ago"]


def test_what_is_left_of_a_partition_is_in_records_or_else_in_offsets_or_why_it_is_not_known() -> None:
    cells = [
        of_partition("Records left", lag_records_read_committed=1500, lag_offsets=2000),
        of_partition("Records left", lag_offsets=7),
        of_partition("Records left", unknown="topic_gone"),
    ]
    assert [(each.text, each.note) for each in cells] == [("1,500", ""), ("7", "offsets"), (NOTHING, "topic gone")]


@pytest.mark.parametrize(
    ("values", "text", "tone"),
    [
        ({"lag_records_read_committed": 1}, "goes on", ""),
        ({"lag_records_read_committed": 0}, NOTHING, ""),
        ({"lag_records_read_committed": 1, "stopped_since_ms": NOW_MS - HOUR}, "stopped", WARNING),
        ({"lag_records_read_committed": 1, "held": True, "stopped_since_ms": NOW_MS - HOUR}, "held up", WARNING),
    ],
)
def test_the_progress_of_a_partition(values: dict[str, Any], text: str, tone: str) -> None:
    found = of_partition("Progress", **values)
    assert (found.text, found.tone) == (text, tone)


@pytest.mark.parametrize(
    ("values", "badge", "tone"),
    [
        ({"lost_offsets": 5, "lost_records": 5}, "lost", CRITICAL),
        ({"batch": NextBatch(sound=False, error="crc", last_offset=6), "next_offset": 5}, "damaged", CRITICAL),
        ({"lag_records_read_committed": 5, "stopped_since_ms": NOW_MS - HOUR}, "stopped", WARNING),
        ({"unknown": "beyond_end"}, "beyond end", WARNING),
    ],
)
def test_what_is_lost_or_damaged_is_critical_in_the_view_of_a_group(values: dict[str, Any], badge: str, tone: str) -> None:
    found = viewed(**values).verdicts[0]
    assert (found.badge, found.tone) == (badge, tone)
