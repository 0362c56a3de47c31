"""How the history of a group is printed: what is ordinary is folded, and what somebody looks for stands out."""

from dataclasses import replace
from typing import Any

from streaming.broker.protocol.history_json import GroupHistory, HistoryEvent
from streaming.terminal.cli.group_report import APART_MS, deleted_topics, end_of, histories

SECOND = 1000
HOUR_MS = 3_600_000
NOW_MS = 1_700_000_000_000


def commits(*offsets: int, partition: int = 0, first: int = 0, **values: Any) -> list[HistoryEvent]:
    """Commits of a partition, a second after the other; each follows the one before."""
    befores = (-1, *offsets)
    return [
        HistoryEvent(
            event="commit",
            record_offset=first + number,
            at_ms=NOW_MS + (first + number) * SECOND,
            topic="orders",
            partition=partition,
            committed=offset,
            before=befores[number],
            **values,
        )
        for number, offset in enumerate(offsets)
    ]


def printed(*events: HistoryEvent, group: str = "g") -> list[str]:
    _, *lines = histories([GroupHistory(group=group, log="/d/__consumer_offsets-3", whole_from=0, events=[*events])])
    return lines


def test_what_one_partition_has_read_is_a_line() -> None:
    assert printed(*commits(100, 103, 103, 783)) == [
        "2023-11-14T22:13:20.000Z  0 to 3  orders-0: 4 commits until 2023-11-14T22:13:23.000Z, from 100 to 783 (+683)"
    ]
    assert printed(*commits(100, 103)[1:]) == ["2023-11-14T22:13:21.000Z  1  orders-0: committed 103 (+3)"], "one is as it is"
    assert printed(*commits(100, 103, 105)[1:])[0].endswith("2 commits until 2023-11-14T22:13:22.000Z, from 100 to 105 (+5)")
    assert printed(*commits(7, 7, 7))[0].endswith("3 commits until 2023-11-14T22:13:22.000Z, all of 7")


def test_partitions_that_are_committed_together_are_a_line_each() -> None:
    both = [each for pair in zip(commits(1, 2, 3), commits(5, 6, 7, partition=1), strict=True) for each in pair]
    assert [line.partition("  ")[2].partition("  ")[2] for line in printed(*both)] == [
        "orders-0: 3 commits until 2023-11-14T22:13:22.000Z, from 1 to 3 (+2)",
        "orders-1: 3 commits until 2023-11-14T22:13:22.000Z, from 5 to 7 (+2)",
    ]


def test_a_move_stands_alone_and_says_what_lies_between_and_who_has_the_command() -> None:
    before, after = commits(700, 783), commits(110, 120, first=3)
    (move,) = commits(100, first=2, moved="admin")
    lines = printed(*before, replace(move, before=783), *after, group="g 1")
    assert [line.partition("orders-0: ")[2] for line in lines] == [
        "2 commits until 2023-11-14T22:13:21.000Z, from 700 to 783 (+83)",
        "committed 100 (-683, moved by hand). 683 offsets lie between; "
        "for a day `segtail why 'g 1'` says how many records, and the command",
        "2 commits until 2023-11-14T22:13:24.000Z, from 110 to 120 (+10)",
    ]
    (line,) = printed(replace(move, before=101, moved="external"))
    assert line.endswith("committed 100 (-1, moved by a program beside the group). 1 offset lies between")


def test_whatever_else_happens_ends_a_run() -> None:
    for event, what in (
        ("pending", "orders-0: 9 waits for the end of its transaction"),
        ("aborted", "orders-0: 9 does not count: its transaction was aborted"),
        ("deleted", "orders-0: 8 is deleted"),
        ("generation", "generation 4: not understood"),
        ("gone", "the group is deleted"),
    ):
        other = HistoryEvent(event=event, record_offset=2, at_ms=NOW_MS, topic="orders", partition=0, committed=9, before=8, epoch=4)
        _, line, _ = printed(*commits(1, 2), other, *commits(3, 4, first=3))
        assert line == f"2023-11-14T22:13:20.000Z  2  {what}"
    unknown = HistoryEvent(event="commit", record_offset=2, topic="orders", partition=0)
    assert len(printed(*commits(1, 2), unknown, *commits(3, 4, first=3))) == 3


def test_a_group_has_ended_with_its_last_offset_or_with_its_own_record() -> None:
    def end(*events: HistoryEvent) -> str:
        return end_of(GroupHistory(group="g", log="/d/__consumer_offsets-3", whole_from=0, events=[*events]), NOW_MS, {})

    deleted, other = (HistoryEvent(event="deleted", record_offset=9, at_ms=NOW_MS, topic="orders", partition=of, before=7) for of in (0, 1))
    gone, generation = (HistoryEvent(event=event, record_offset=10, at_ms=NOW_MS) for event in ("gone", "generation"))
    both = [*commits(7), *commits(7, partition=1)]
    assert "it had committed orders-0: 7, orders-1: 7; " in end(*both, deleted, other)
    assert "it had committed orders-0: 7; " in end(*both, deleted, gone)
    assert end(*both, gone).startswith("its coordinator deleted it at 2023-11-14T22:13:20Z (0s ago), ")
    for alive in ((*both, deleted), (*both, deleted, other, *commits(8)), (*both, gone, generation), both):
        assert end(*alive) == ""


def test_commits_went_with_their_topic_where_that_was_deleted_after_the_last_of_them_and_before_their_end() -> None:
    def topics(deleted_ms: int, *, committed_ms: int = NOW_MS, ended_ms: int = NOW_MS + HOUR_MS) -> dict[str, int]:
        end = HistoryEvent(event="deleted", record_offset=9, at_ms=ended_ms, topic="orders", partition=0, before=7)
        group = GroupHistory(group="g", log="/d/x", whole_from=0, events=[replace(*commits(7), at_ms=committed_ms), end])
        return deleted_topics(group, {"orders": deleted_ms, "stock": NOW_MS})

    assert topics(NOW_MS + HOUR_MS - 100) == {"orders": NOW_MS + HOUR_MS - 100}
    assert topics(NOW_MS + HOUR_MS + APART_MS) == {"orders": NOW_MS + HOUR_MS + APART_MS}, "clocks are apart"
    assert topics(NOW_MS + HOUR_MS + APART_MS + 1) == {}, "it expired, and the topic was deleted later"
    assert topics(NOW_MS - APART_MS - 1) == {}, "it is of another topic of that name"
    assert topics(-1) == {}


def test_the_end_of_a_group_names_the_topics_that_its_commits_went_with() -> None:
    events = [
        *commits(7),
        HistoryEvent(event="deleted", record_offset=9, at_ms=NOW_MS + 60, topic="orders", partition=0, before=7),
    ]
    group = GroupHistory(group="g", log="/d/x", whole_from=0, events=events)
    assert end_of(group, NOW_MS + 60, {"orders": NOW_MS + 60}, remains=True).startswith(
        "its coordinator deleted them at 2023-11-14T22:13:20Z (0s ago), with topic orders, which was deleted at 2023-11-14T22:13:20Z "
        "(0s ago): whether it had records left to read there is not on disk any more; it had committed orders-0: 7; "
    )
    assert "with their topic, by hand or because they expired" in end_of(group, NOW_MS, {}, remains=True)
