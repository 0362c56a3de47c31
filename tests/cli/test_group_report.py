"""How consumer groups are printed: each column its own value, the order of lines, and what is said where nothing is known."""

from typing import Any

import pytest

from streaming.cli.group_report import as_json, assumed, groups_table, no_groups, partitions_table, reasons
from streaming.protocol.group_json import GroupDetail, GroupPartition, GroupSummary
from streaming.verdicts.group_verdicts import Bounds

NOW_MS = 1_700_000_000_000
HOUR = 3_600_000
BOUNDS = Bounds()

SUMS: dict[str, Any] = {
    "type": "Classic",
    "state": "Stable",
    "members": 2,
    "partitions": 3,
    "lag_records_read_committed": 4,
    "lag_offsets": 5,
    "lag_bytes": 6 << 20,
    "oldest_append_ms": NOW_MS - HOUR,
    "last_commit_ms": NOW_MS - 2 * HOUR,
}
PART: dict[str, Any] = {
    "committed": 7,
    "high_watermark": 12,
    "log_start": 0,
    "lag_records_read_committed": 4,
    "lag_offsets": 5,
    "lag_bytes": 6 << 20,
    "next_offset": 8,
    "next_timestamp_ms": NOW_MS - 9 * HOUR,
    "next_append_ms": NOW_MS - HOUR,
}


def group(name: str = "g", *partitions: GroupPartition, **values: Any) -> GroupDetail:
    return GroupDetail(at_ms=NOW_MS, summary=GroupSummary(group=name, **SUMS | values), partitions=list(partitions))


def part(topic: str = "t", number: int = 0, **values: Any) -> GroupPartition:
    return GroupPartition(topic=topic, partition=number, **PART | values)


def cells(lines: list[str]) -> list[list[str]]:
    """The words of each line; columns are parted by two spaces at least."""
    return [[word.strip() for word in line.split("  ") if word.strip()] for line in lines]


def listed(*groups: GroupDetail) -> list[list[str]]:
    return cells(list(groups_table(groups, NOW_MS, BOUNDS)))[1:]


def test_each_column_of_groups_shows_its_own_value() -> None:
    assert listed(group()) == [["g", "Classic", "Stable", "2", "3", "4", "5", "6.0 MiB", "1h ago", "-", "fine"]]
    assert listed(group(oldest_append_ms=-1, oldest_timestamp_ms=NOW_MS - 3 * HOUR))[0][8] == "3h ago"


def test_a_sum_of_which_parts_are_not_known_is_a_lower_bound_and_what_limits_decide_has_a_question_mark() -> None:
    (line,) = listed(group(unknown=1, limits_assumed=True, loss_ms=NOW_MS + 48 * HOUR))
    assert (line[5], line[9], line[10]) == ("4+", "in 2d?", "unknown?")
    assert listed(group(held=1, limits_assumed=True))[0][10] == "held"


def test_groups_come_by_verdict_and_then_by_lag_and_name() -> None:
    rows = listed(
        group("few", lag_records_read_committed=1),
        group("b", lag_records_read_committed=9),
        group("a", lag_records_read_committed=9),
        group("held", held=1),
        group("lost", below_start=1),
    )
    assert [row[0] for row in rows] == ["lost", "held", "a", "b", "few"]


def test_each_column_of_partitions_shows_its_own_value() -> None:
    (line,) = cells(list(partitions_table([group("g", part())], NOW_MS, BOUNDS)))[1:]
    assert line == ["g", "t-0", "7", "12", "4", "5", "6.0 MiB", "1h ago", "-", "fine"]
    (line,) = cells(list(partitions_table([group("g", part(next_append_ms=-1))], NOW_MS, BOUNDS)))[1:]
    assert line[7] == "9h ago"


def test_partitions_come_by_verdict_and_lag_and_then_what_is_about_a_whole_group() -> None:
    held = part("t", 2, held=True, lag_records_read_committed=0)
    deserted = group("g", part(), held, part("t", 1, lag_records_read_committed=5), members=0, state="Empty", epoch=3)
    *rows, whole = list(partitions_table([deserted], NOW_MS, BOUNDS))[1:]
    assert [row[1] for row in cells(rows)] == ["t-2", "t-1", "t-0"]
    assert whole == "g: no member, and not everything is read"


@pytest.mark.parametrize(
    ("values", "head"),
    [
        ({}, "g: Classic Stable, 2 members; 4 records left in 3 partitions"),
        ({"lag_records_read_committed": 1, "members": 1, "partitions": 1}, "g: Classic Stable, 1 member; 1 record left in 1 partition"),
        ({"lag_records_read_committed": 1, "unknown": 1}, "g: Classic Stable, 2 members; 1+ records left in 3 partitions"),
        ({"lag_records_read_committed": 0, "members": 0, "state": "Empty"}, "g: Classic Empty, 0 members; 0 records left in 3 partitions"),
        (
            {"lag_records_read_committed": -1, "members": -1, "type": "", "state": ""},
            "g: only commits; records left not known in 3 partitions",
        ),
    ],
)
def test_the_head_of_what_is_said_about_a_group(values: dict[str, Any], head: str) -> None:
    assert next(reasons(group(**values), NOW_MS, BOUNDS)) == head


def test_each_finding_has_its_command_or_the_reason_why_there_is_none_and_what_is_calm_comes_together_at_last() -> None:
    lost = part("t", 1, lost_offsets=3, lost_records=3, log_start=10)
    calm = [part("t", number, lag_records_read_committed=0, lag_offsets=0, next_offset=-1) for number in (2, 3)]
    held = part("t", 4, held=True, lag_records_read_committed=0)
    lines = list(reasons(group("g", lost, *calm, held), NOW_MS, BOUNDS))
    assert lines[1].startswith("- t-1: already deleted: 3 records ")
    assert lines[2].startswith("    kafka-consumer-groups.sh ")
    assert lines[-3].startswith("- t-4: held up by an open transaction")
    assert lines[-2] == "    no command: the transaction is not known"
    assert lines[-1] == "- t-2, t-3: nothing to do: everything is read."


def test_limits_that_are_assumed_are_explained_once_with_their_partitions() -> None:
    assert list(assumed([group("g", part())])) == []
    (line,) = assumed([group("g", part("t", 1, limits_assumed=True)), group("h", part("t", 1, limits_assumed=True), part("t", 2))])
    assert line.startswith("assumed: t-1: ")


def test_what_is_said_instead_of_a_table_without_a_line() -> None:
    assert no_groups(None) == "no consumer groups are known"
    assert no_groups(0).endswith("no log of a coordinator (__consumer_offsets) was read here")
    assert [no_groups(logs) for logs in (1, 2)] == [
        "no consumer groups: 1 log of coordinators was read",
        "no consumer groups: 2 logs of coordinators were read",
    ]


def test_json_has_no_verdicts_where_only_sums_are_there() -> None:
    whole, sums = (as_json(each, NOW_MS, BOUNDS) for each in (group("g", part(held=True)), group("g", held=1)))
    assert (whole["verdict"], sums["verdict"], sums["partitions"], sums["verdicts"]) == ("held", "held", None, None)
    (verdict,) = whole["verdicts"]  # type: ignore[misc]
    assert (verdict["verdict"], verdict["topic"], verdict["partition"], verdict["command"]) == ("held", "t", 0, None)
    assert verdict["no_command"] == "the transaction is not known"
    nothing = as_json(group("g", partitions=0), NOW_MS, BOUNDS)
    (verdict,) = nothing["verdicts"]  # type: ignore[misc]
    assert (verdict["topic"], verdict["partition"]) == (None, None)
