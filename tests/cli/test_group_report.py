"""How consumer groups are printed: each column its own value, the order of lines, and what is said where nothing is known."""

from collections.abc import Sequence
from typing import Any

import pytest

from streaming.broker.protocol.group_json import GroupDetail, GroupFinding, GroupPage, GroupPartition, GroupSummary
from streaming.pages.listings.declared_lists import GROUPS, no_groups
from streaming.pages.listings.listing import Times
from streaming.pages.listings.text_table import text_table
from streaming.terminal.cli.group_report import assumed, assumed_groups, partition_tables, reasons

NOW_MS = 1_700_000_000_000
HOUR = 3_600_000

SUMS: dict[str, Any] = {
    "type": "Classic",
    "state": "Stable",
    "members": 2,
    "partitions": 3,
    "lag_records_read_committed": 4,
    "lag_offsets": 5,
    "lag_bytes": 6 << 20,
    "oldest_ms": NOW_MS - HOUR,
    "last_commit_ms": NOW_MS - 2 * HOUR,
    "verdict": "fine",
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
    "verdict": "fine",
}


def group(name: str = "g", *partitions: GroupPartition, findings: Sequence[GroupFinding] = (), **values: Any) -> GroupDetail:
    summary = GroupSummary(group=name, **SUMS | values)
    return GroupDetail(at_ms=NOW_MS, summary=summary, partitions=list(partitions), findings=[*findings])


def part(topic: str = "t", number: int = 0, **values: Any) -> GroupPartition:
    return GroupPartition(topic=topic, partition=number, **PART | values)


def cells(lines: list[str]) -> list[list[str]]:
    """The words of each line; columns are parted by two spaces at least."""
    return [[word.strip() for word in line.split("  ") if word.strip()] for line in lines]


def listed(*groups: GroupDetail) -> list[list[str]]:
    return cells(text_table(GROUPS, [each.summary for each in groups], Times(NOW_MS)))[1:]


def test_each_column_of_groups_shows_its_own_value() -> None:
    assert listed(group()) == [["g", "fine", "4", "1h ago", "-", "6.0 MiB", "2", "-", "5", "Stable", "Classic", "3"]]
    assert listed(group(oldest_ms=NOW_MS - 3 * HOUR))[0][3] == "3h ago"


def test_a_sum_of_which_parts_are_not_known_is_a_lower_bound_and_what_limits_decide_has_a_question_mark() -> None:
    (line,) = listed(group(unknown=1, limits_assumed=True, loss_ms=NOW_MS + 48 * HOUR, verdict="unknown"))
    assert (line[2], line[4], line[1]) == ("4+", "in 2d?", "unknown?")
    assert listed(group(limits_assumed=True, verdict="held"))[0][1] == "held"


def test_each_column_of_partitions_shows_its_own_value() -> None:
    (line,) = cells(list(partition_tables([group("g", part())])))[2:]
    assert line == ["t-0", "fine", "4", "1h ago", "-", "6.0 MiB", "5", "7", "12", "-", "-"]


def test_each_group_has_a_head_its_partitions_as_they_come_and_what_is_about_the_whole_of_it() -> None:
    whole = GroupFinding(verdict="no_members", severity="info", text="it has no member, and something is left to read")
    deserted = group("g", part("t", 2, verdict="held"), part("t", 1), findings=[whole])
    lines = list(partition_tables([deserted, group("h")]))
    assert lines[0] == next(reasons(deserted))
    assert [row[0] for row in cells(lines[1:4])] == ["Partition", "t-2", "t-1"]
    assert lines[4:] == ["the group: it has no member, and something is left to read", "", next(reasons(group("h")))]


@pytest.mark.parametrize(
    ("values", "head"),
    [
        ({}, "g: Classic Stable, 2 members; 4 records left in 3 partitions"),
        ({"lag_records_read_committed": 1, "members": 1, "partitions": 1}, "g: Classic Stable, 1 member; 1 record left in 1 partition"),
        (
            {"lag_records_read_committed": 1, "unknown": 1},
            "g: Classic Stable, 2 members; 1+ records left in 3 partitions, 1 of them not counted",
        ),
        ({"lag_records_read_committed": 0, "members": 0, "state": "Empty"}, "g: Classic Empty, 0 members; 0 records left in 3 partitions"),
        (
            {"lag_records_read_committed": -1, "members": -1, "type": "", "state": ""},
            "g: only commits; records left not known in 3 partitions",
        ),
    ],
)
def test_the_head_of_what_is_stated_about_a_group(values: dict[str, Any], head: str) -> None:
    assert next(reasons(group(**values))) == head


def test_each_finding_has_its_command_or_the_reason_why_there_is_none_and_what_is_calm_comes_together_at_last() -> None:
    findings = [
        GroupFinding(verdict="lost", severity="warning", topic="t", partition=1, text="deleted", command="reset"),
        GroupFinding(verdict="held", topic="t", partition=4, text="held up", no_command="not known"),
        *(GroupFinding(verdict="fine", topic="t", partition=number, text="nothing is left to read") for number in (2, 3)),
    ]
    assert list(reasons(group("g", findings=findings)))[1:] == [
        "- t-1: deleted.",
        "    reset",
        "- t-4: held up.",
        "    no command: not known",
        "- t-2, t-3: nothing is left to read.",
    ]


def test_what_partitions_share_is_told_once() -> None:
    tail = "auto.offset.reset decides. Another sentence"
    findings = [
        *(
            GroupFinding(verdict="lost", topic="t", partition=each, text=f"{each} records are deleted. {tail}", command=f"reset {each}")
            for each in (1, 2)
        ),
        *(GroupFinding(verdict="held", topic="t", partition=each, text="held up. Wait", no_command="not known") for each in (4, 5, 6)),
        GroupFinding(verdict="held", topic="t", partition=7, text="held up by another. Wait", no_command="not known"),
    ]
    assert list(reasons(group("g", findings=findings)))[1:] == [
        "- t-1: 1 records are deleted.",
        "- t-2: 2 records are deleted.",
        f"    all 2: {tail}.",
        "    reset 1",
        "    reset 2",
        "- t-4, t-5, t-6: held up.",
        "- t-7: held up by another.",
        "    all 4: Wait.",
        "    no command: not known",
    ]
    assert list(reasons(group("g", findings=findings[2:5])))[1:] == ["- t-4, t-5, t-6: held up. Wait.", "    no command: not known"]
    one, other = (GroupFinding(verdict="held", topic="t", partition=each, text=text) for each, text in ((1, "held up. Wait"), (2, "Wait")))
    assert list(reasons(group("g", findings=[one, other])))[1:] == ["- t-1: held up. Wait.", "- t-2: Wait."]


def test_limits_that_are_assumed_are_explained_once_with_their_partitions() -> None:
    assert list(assumed([group("g", part())])) == []
    (line,) = assumed_groups([group("a").summary, group("b", limits_assumed=True).summary])
    assert line.startswith("\nassumed: b: ")
    (line,) = assumed([group("g", part("t", 1, limits_assumed=True)), group("h", part("t", 1, limits_assumed=True), part("t", 2))])
    assert line.startswith("\nassumed: t-1: ")


def test_what_is_stated_instead_of_a_table_without_a_line() -> None:
    def stated(coordinators: int) -> str:
        page = {"at_ms": 1, "total": 0, "matched": 0, "offset": 0, "sort": "verdict", "order": "asc"}
        return no_groups(GroupPage(**page, rows=[], coordinators=coordinators))  # type: ignore[arg-type]

    assert stated(-1) == "no consumer groups are known"
    assert stated(0).endswith("no log of a coordinator (__consumer_offsets) was read here")
    assert [stated(logs) for logs in (1, 2)] == [
        "no consumer groups: 1 log of coordinators was read",
        "no consumer groups: 2 logs of coordinators were read",
    ]
