"""What each list declares: every column its own value, how it is written, and what it looks like where something is wrong."""

import dataclasses
import re
from collections import Counter
from functools import partial
from typing import Any, get_type_hints

import pytest

from streaming.broker.protocol.disk_json import FULL, NEVER, LogDirUse
from streaming.broker.protocol.group_json import GroupPartition, GroupSummary
from streaming.broker.protocol.json_message import WIDE, PublicMessage
from streaming.broker.protocol.listing_json import BrokerRow, PartitionRow, TopicRow, TransactionRow
from streaming.broker.protocol.status_json import CRITICAL, WARNING, Consequence, Problem
from streaming.pages.listings.declared_lists import (
    BROKERS,
    DISK,
    GROUP_PARTITIONS,
    GROUPS,
    LOG_DIRS,
    PARTITIONS,
    PROBLEMS,
    RETENTION,
    TOPICS,
    TRANSACTIONS,
)
from streaming.pages.listings.declared_lists import LISTS as LISTS_WITH_PATHS
from streaming.pages.listings.listing import Cell, Listing, Times, of_partition, severity_of
from streaming.pages.listings.text_table import text_table
from streaming.pages.site.page_views import columns_of
from tests.listings.kept_rows import HOUR, NOW_MS, kept
from tests.tables import each_row

TIMES = Times(NOW_MS)
LISTS = (PROBLEMS, TOPICS, PARTITIONS, TRANSACTIONS, RETENTION, GROUPS, GROUP_PARTITIONS, BROKERS)

PARTITION: dict[str, Any] = {
    "bytes_rate": 2048.0,
    "records_rate": 3.5,
    "size_bytes": 4 << 20,
    "log_end_offset": 15,
    "unread_offsets": 5,
    "open_transactions": 6,
    "hanging_transactions": 0,
    "last_append_ms": NOW_MS - 7 * HOUR,
    "next_deletion_ms": NOW_MS + 8 * HOUR,
    "oldest_record_ms": NOW_MS - 9 * HOUR,
    "segments": 10,
    "rates": [-1.0, 1.0, 8.0],
}
READ: dict[str, Any] = {
    "committed": 7,
    "commit_ms": NOW_MS - 3 * HOUR,
    "high_watermark": 12,
    "lag_records_read_committed": 4,
    "lag_offsets": 5,
    "lag_bytes": 6 << 20,
    "next_timestamp_ms": NOW_MS - 6 * HOUR,
    "next_append_ms": NOW_MS - HOUR,
    "consumed_rate": 2.5,
    "appended_rate": 3.5,
}


def partition(**values: Any) -> PartitionRow:
    return PartitionRow(broker=1, topic="t", partition=0, **PARTITION | values)


def transaction(**values: Any) -> TransactionRow:
    at = {"first_offset": 4, "start_ms": NOW_MS - 5 * HOUR, "last_append_ms": NOW_MS - 6 * HOUR, "holds_offsets": 7}
    return TransactionRow(broker=1, topic="t", partition=0, **{"producer_id": 2, "producer_epoch": 3, "verdict": "open"} | at | values)


def read(**values: Any) -> GroupPartition:
    return GroupPartition(topic="t", partition=0, **READ | values)


def cells(listing: Listing, row: PublicMessage) -> dict[str, Cell]:
    return {each.heading: each.cell_in(row, TIMES) for each in listing.columns}


def texts(listing: Listing, row: PublicMessage) -> dict[str, str]:
    return {heading: cell.text for heading, cell in cells(listing, row).items()}


def test_each_column_of_partitions_shows_its_own_value() -> None:
    assert texts(PARTITIONS, partition()) == {
        "Partition": "t-0",
        "Verdict": "-",
        "Bytes/s": "2.0 KiB",
        "Records/s": "3.5",
        "Held back": "5",
        "Last append": "7h ago",
        "Size": "4.0 MiB",
        "Last hour": " ▁█",
        "Open": "6",
        "Broker": "1",
        "Next deletion": "in 8h by time",
        "End offset": "15",
        "Hanging": "0",
        "Oldest record": "9h ago",
        "Segments": "10",
    }


def test_each_column_of_transactions_shows_its_own_value() -> None:
    assert texts(TRANSACTIONS, transaction(coordinator_state="Ongoing", no_command="wait", held_groups=["r"], groups=["g", "h i"])) == {
        "Partition": "t-0",
        "Verdict": "open",
        "Open since": "5h ago",
        "Holds back": "7",
        "Transactional id": "-",
        "Last append": "6h ago",
        "Producer": "2, epoch 3",
        "First offset": "4",
        "Coordinator": "Ongoing",
        "Broker": "1",
        "Groups that wait": "r",
        "Commits that wait": 'g, "h i"',
        "What to do": "wait",
    }


def test_each_column_of_retention_shows_its_own_value() -> None:
    assert texts(RETENTION, kept(retention_blocked="remote_copy", retention_blocked_why="because", kind="retention_blocked")) == {
        "Partition": "t-0",
        "Verdict": "retention blocked",
        "Blocked": "remote copy",
        "Overdue": "7h",
        "Reclaimable": "8.0 MiB",
        "Size": "1.0 MiB",
        "Next deletion": "in 9h by time",
        "Oldest record": "3h ago",
        "Time limit": "4h",
        "Size limit": "5.0 MiB",
        "Kept too long": "6h",
        "Segments": "2",
        "Policy": "delete",
        "Broker": "1",
        "Why": "because",
    }


def test_each_column_of_a_group_s_partitions_shows_its_own_value() -> None:
    assert texts(GROUP_PARTITIONS, read(verdict="held", since_ms=NOW_MS - 2 * HOUR, loss_ms=NOW_MS + 9 * HOUR)) == {
        "Partition": "t-0",
        "Verdict": "held",
        "Records left": "4",
        "Oldest unread": "1h ago",
        "Next loss": "in 9h",
        "Bytes": "6.0 MiB",
        "Offsets": "5",
        "Committed": "7",
        "High watermark": "12",
        "Read/s": "2.5",
        "Appended/s": "3.5",
        "Last commit": "3h ago",
    }


@each_row(
    ("changes", "note"),
    [
        ({"last_stable_offset": 9}, "up to 6 more wait for open transactions"),
        ({"last_stable_offset": 12}, "6 more if it reads with read_uncommitted"),  # the difference is aborted
        ({"last_stable_offset": -1}, "6 more if it reads with read_uncommitted"),
        ({"last_stable_offset": 12, "lag_records_read_committed": 6}, ""),
        ({"last_stable_offset": 9, "isolation": "read_uncommitted"}, "as read with read_uncommitted"),
        ({"last_stable_offset": 9, "lag_records_read_committed": -1}, ""),
    ],
)
def test_what_waits_and_what_another_isolation_reads_is_shown_beside_what_can_be_read(changes: dict[str, Any], note: str) -> None:
    of = {"high_watermark": 12, "lag_records_read_committed": 0, "lag_records_read_uncommitted": 6} | changes
    assert cells(GROUP_PARTITIONS, read(**of))["Records left"].note == note


def test_a_group_s_partition_has_why_its_lag_is_not_known_when_it_began_and_doubts_where_limits_are_assumed() -> None:
    left = cells(GROUP_PARTITIONS, read(lag_records_read_committed=-1, unknown="topic_gone"))["Records left"]
    assert left == Cell(text="-", note="topic gone")
    assert cells(GROUP_PARTITIONS, read(next_append_ms=-1))["Oldest unread"] == Cell(text="6h ago", at_ms=NOW_MS - 6 * HOUR)
    since = cells(GROUP_PARTITIONS, read(verdict="held", severity=WARNING, since_ms=NOW_MS - HOUR))["Verdict"]
    assert since == Cell(text="held", note="1h ago", at_ms=NOW_MS - HOUR)
    doubted = texts(GROUP_PARTITIONS, read(verdict="fine", limits_assumed=True, loss_ms=NOW_MS + HOUR))
    assert (doubted["Verdict"], doubted["Next loss"]) == ("fine?", "in 1h?")


@pytest.mark.parametrize(
    ("about", "text"),
    [
        ({"topic": "t", "partition": 0, "group": "g", "broker": 1}, "t-0"),
        ({"topic": "t", "group": "g"}, "topic t"),
        ({"group": "g", "broker": 1}, "group g"),
        ({"log_dir": "/d", "broker": 1}, "log dir /d"),
        ({"agent": "a", "broker": 1}, "agent a"),
        ({"broker": 0}, "broker 0"),
        ({}, "-"),
    ],
)
def test_a_problem_is_about_the_smallest_thing_that_it_names(about: dict[str, Any], text: str) -> None:
    found = texts(PROBLEMS, Problem(kind="k", severity=WARNING, what="w", since_ms=NOW_MS - HOUR, **about))
    assert found == {"Severity": "warning", "What": "w", "Since": "1h ago", "About": text}


def test_an_incident_is_one_line_with_what_follows_from_it_and_when_something_is_lost() -> None:
    follows = [Consequence(text=f"group g{each}: held up", severity=WARNING) for each in range(3)]
    given = {"kind": "k", "severity": WARNING, "worst": CRITICAL, "what": "A: b", "summary": "A", "since_ms": NOW_MS - HOUR}
    row = Problem(**given, consequences=follows, more_consequences=2, deadline_ms=NOW_MS + HOUR)  # type: ignore[arg-type]
    assert texts(PROBLEMS, row) == {
        "Severity": "critical",
        "What": "A -> group g0: held up; group g1: held up; and 3 more",
        "Since": "due in 1h",
        "About": "-",
    }
    assert texts(PROBLEMS, dataclasses.replace(row, deadline_ms=NOW_MS - 1))["Since"] == "due now"
    assert severity_of(row) == CRITICAL


def test_what_is_not_known_is_a_dash_and_zero_is_not() -> None:
    nothing = texts(PARTITIONS, PartitionRow(broker=1, topic="t", partition=0))
    assert {text for heading, text in nothing.items() if heading not in ("Partition", "Broker", "Last hour")} == {"-"}
    assert texts(RETENTION, kept(retention_lag_ms=0, segments=0, size_bytes=0))["Kept too long"] == "0s"


def test_a_transaction_that_hangs_is_noted_beside_what_it_holds_back() -> None:
    assert cells(PARTITIONS, partition(hanging_transactions=1))["Held back"] == Cell(text="5", note="1 transaction hanging")


def test_a_deletion_is_blocked_due_or_later() -> None:
    for listing, row in ((PARTITIONS, partition), (RETENTION, kept)):
        stays = [cells(listing, row(retention_blocked="high_watermark", next_deletion_ms=at))["Next deletion"] for at in (-1, NOW_MS)]
        assert stays == [Cell(text="blocked", note="high watermark")] * 2
        later = row(retention_blocked="future_timestamp", next_deletion_ms=NOW_MS + HOUR)
        assert texts(listing, later)["Next deletion"] == "in 1h by time", "then it goes"
        found = [texts(listing, row(next_deletion_ms=NOW_MS + later))["Next deletion"] for later in (-1, 0, HOUR)]
        assert found == ["due by time", "due by time", "in 1h by time"]
        assert texts(listing, row(next_deletion_ms=NOW_MS, next_deletion_by_size=True))["Next deletion"] == "due by size"


def test_a_narrow_list_of_retention_keeps_what_is_asked_for() -> None:
    heading = text_table(RETENTION, [kept("orders.by-customer", kind="retention_blocked")], TIMES, 80)[0]
    assert re.split(r"\s{2,}", heading)[:4] == ["Partition", "Verdict", "Size", "Next deletion"]


def test_what_is_not_overdue_has_no_time_for_that_however_long_it_is_kept() -> None:
    found = [texts(RETENTION, kept(retention_blocked=word, retention_overdue_ms=ms))["Overdue"] for word in ("", "x") for ms in (0, HOUR)]
    assert found == ["-", "1h", "-", "1h"]


def test_space_is_freed_later_than_its_deletion_and_has_another_heading() -> None:
    for listing in (DISK["topic"], DISK["partition"], DISK["dir"]):
        (heading,) = (each.heading for each in listing.columns if each.name == "next_ms")
        assert heading == "Next freed"


def test_what_a_broker_without_a_process_would_delete_has_no_time_in_any_list() -> None:
    text = "after broker 3 starts"
    for listing, row in ((PARTITIONS, partition), (RETENTION, kept), (TOPICS, partial(TopicRow, topic="t"))):
        assert cells(listing, row(next_deletion_ms=-1, next_deletion_start_of=3))["Next deletion"] == Cell(text=text)
    assert texts(TOPICS, TopicRow(topic="t", next_deletion_ms=NOW_MS + HOUR, next_deletion_start_of=3))["Next deletion"] == "in 1h by time"
    for lists, lost in ((GROUP_PARTITIONS, read), (GROUPS, partial(GroupSummary, group="g"))):
        assert cells(lists, lost(loss_start_of=3))["Next loss"] == Cell(text=text)
        assert texts(lists, lost(loss_ms=NOW_MS + HOUR, loss_start_of=3))["Next loss"] == "in 1h"
        assert texts(lists, lost(loss_start_of=3, limits_assumed=True))["Next loss"] == f"{text}?"


@each_row(
    ("values", "text"),
    [
        ({"verdict": "hanging", "stuck": True}, "hanging, stuck"),
        ({"verdict": "two_phase"}, "two phase"),
        ({"verdict": ""}, "not known"),
    ],
)
def test_a_stuck_transaction_says_so_beside_its_verdict(values: dict[str, Any], text: str) -> None:
    assert texts(TRANSACTIONS, transaction(**values))["Verdict"] == text


def test_what_is_to_be_done_is_a_command_or_why_there_is_none() -> None:
    assert cells(TRANSACTIONS, transaction(command="kafka-transactions.sh", no_command="no"))["What to do"] == Cell(
        text="", command="kafka-transactions.sh"
    )
    assert cells(TRANSACTIONS, transaction())["What to do"] == Cell(text="-")
    found = cells(TRANSACTIONS, transaction(command="kafka-transactions.sh", advice="first look"))["What to do"]
    assert found == Cell(text="", command="kafka-transactions.sh", note="First look.")


def test_of_many_groups_some_are_named() -> None:
    found = cells(TRANSACTIONS, transaction(held_groups=["a", "b", "c", "d", "e"]))["Groups that wait"]
    assert (found.text, found.groups, found.note) == ("a, b, c and 2 more", ("a", "b", "c"), "and 2 more")


def test_limits_that_are_missing_or_assumed_say_so() -> None:
    none = texts(RETENTION, kept(retention_limit_ms=-1, retention_limit_bytes=-1, limits_assumed=True))
    assert (none["Time limit"], none["Size limit"]) == ("-", "-")
    assumed = texts(RETENTION, kept(retention_limit_ms=0, retention_limit_bytes=0, limits_assumed=True))
    assert (assumed["Time limit"], assumed["Size limit"]) == ("0s?", "0 B?")


@pytest.mark.parametrize("listing", LISTS, ids=lambda each: each.name)
def test_a_row_looks_as_severe_as_it_was_judged_and_no_face_judges_it_again(listing: Listing) -> None:
    """Whatever else is in it."""
    worst = {"verdict": "hanging", "stuck": True, "hanging_transactions": 3, "retention_blocked": "remote_copy"}
    required = {"broker": 1, "topic": "t", "partition": 0, "producer_id": 1, "kind": "k", "what": "w", "group": "g"}
    names = {each.name for each in dataclasses.fields(listing.row)}
    values: dict[str, Any] = {name: value for name, value in (worst | required).items() if name in names}
    (toned,) = (column.head for column, field in zip(columns_of(listing.columns), listing.columns, strict=True) if field.toned)
    for severity in ("", WARNING, CRITICAL):
        row = listing.row(**values | {"severity": severity})
        tones = {column.head: column.cell(row, NOW_MS).tone for column in columns_of(listing.columns)}
        assert {head: tone for head, tone in tones.items() if tone} == ({toned: severity} if severity else {})


def test_each_column_of_topics_brokers_and_log_dirs_shows_its_own_value() -> None:
    sums = {"bytes_rate": 2048.0, "records_rate": 3.5, "size_bytes": 4 << 20, "unread_offsets": 5, "open_transactions": 6, "out_of_sync": 7}
    times = {"last_append_ms": NOW_MS - HOUR, "oldest_record_ms": NOW_MS - 9 * HOUR, "next_deletion_ms": NOW_MS + 2 * HOUR}
    limits = {"retention_limit_ms": 4 * HOUR, "retention_limit_bytes": 5 << 20, "cleanup_policy": "delete", "next_deletion_by_size": True}
    skews = {"size_skew": 1.5, "records_skew": 2.25}
    costs = {"replica_bytes": 9 << 20, "replica_more": True, "growth_day": 1 << 20, "partition_bytes": 2 << 20, "batch_bytes": 3 << 10}
    uses = {
        "codecs": ["lz4", "none"],
        "last_commit_ms": NOW_MS - 2 * HOUR,
        "readers": ["g"],
        "quiet_ms": NOW_MS - 3 * HOUR,
        "used": "unknown",
    }
    skews |= {**costs, **uses, "used_why": "w", "advised": "a"}  # type: ignore[dict-item]
    row = TopicRow(topic="t", partitions=2, groups=8, **skews, rates=[-1.0, 1.0, 8.0], **sums, **times, **limits)  # type: ignore[arg-type]
    assert list(texts(TOPICS, row).values()) == [
        *("t", "-", "2", "2.0 KiB", "3.5", "4.0 MiB", "8", "7", "5", " ▁█", "1h ago", "6", "4h", "in 2h by size", "9h ago", "5.0 MiB"),
        *(
            "delete",
            "1.50",
            "2.25",
            "9.0 MiB+",
            "1.0 MiB",
            "2.0 MiB",
            "3.0 KiB",
            "lz4, none",
            "2h ago",
            "g",
            "3h ago",
            "not known",
            "-",
            "a",
        ),
    ]
    assert cells(TOPICS, row)["Used"].note == "w"
    held = {"leaders": 2, "replicas": 4, "out_of_sync": 5, "size_bytes": 6 << 20, "log_dirs": 7}
    broker = BrokerRow(broker=3, phase="down", phase_ms=NOW_MS - HOUR, agent="a", behind_ms=1000, bytes_rate=2048.0, **held)
    assert list(texts(BROKERS, broker).values()) == ["3", "-", "down", "2", "5", "4", "a", "2.0 KiB", "6.0 MiB", "1s", "7", "-"]
    assert (cells(BROKERS, broker)["Phase"].note, cells(BROKERS, broker)["Agent"].note) == ("1h ago", "does not answer")
    disk = LogDirUse(broker=1, log_dir="/d", taken=2 << 20, replicas=3, free=4 << 20, capacity=5 << 20, growth_day=6 << 20)
    disk = dataclasses.replace(disk, growth_unknown=7, frees_now=8 << 20, checkpoint_ms=NOW_MS - HOUR)
    assert list(texts(LOG_DIRS, disk).values()) == [
        *("/d", "-", "1", "4.0 MiB", "6.0 MiB", "2.0 MiB", "5.0 MiB", "3", "8.0 MiB", "1h ago"),
    ]
    assert cells(LOG_DIRS, disk)["Growth a day"].note == "without 7 replicas"


@pytest.mark.parametrize(
    ("values", "cell"),
    [
        ({"up": False, "problem": "agent a does not answer"}, Cell(text="cannot be read", note="agent a does not answer")),
        ({"outlook": FULL, "full_ms": NOW_MS + HOUR}, Cell(text="in 1h", at_ms=NOW_MS + HOUR)),
        ({"outlook": NEVER}, Cell(text="not within a year")),
        ({}, Cell(text="-", note="its growth is not known")),
    ],
)
def test_when_a_log_dir_is_full_or_why_that_is_not_known(values: dict[str, Any], cell: Cell) -> None:
    assert cells(LOG_DIRS, LogDirUse(broker=1, log_dir="/d", **values))["Full"] == cell


@pytest.mark.parametrize("listing", [TOPICS, PARTITIONS, RETENTION, BROKERS], ids=lambda each: each.name)
def test_what_is_wrong_is_the_column_after_the_name_in_words_with_its_beginning(listing: Listing) -> None:
    names = {each.name for each in dataclasses.fields(listing.row)}
    where: dict[str, Any] = {name: value for name, value in (("broker", 1), ("topic", "t"), ("partition", 0)) if name in names}
    row = listing.row(**where, kind="retention_blocked", severity=WARNING, since_ms=NOW_MS - HOUR)  # type: ignore[call-arg]
    assert listing.columns[1].cell_in(row, TIMES) == Cell(text="retention blocked", note="1h ago", at_ms=NOW_MS - HOUR)
    assert listing.default == listing.columns[1].name


@pytest.mark.parametrize("listing", [*LISTS, LOG_DIRS], ids=lambda each: each.name)
def test_a_declaration_is_whole(listing: Listing) -> None:
    for name in ("key", "rank", "heading"):
        twice = [value for value, count in Counter(getattr(each, name) for each in listing.columns).items() if value and count > 1]
        assert not twice, f"two columns have the {name} {twice[0]}: {[getattr(each, name) for each in listing.columns]}"
    for each in listing.fields:
        assert bool(each.heading) == bool(each.rank)
        assert bool(each.key) == bool(each.sort and each.rank)
        assert not each.key or each.key.lower() in each.heading.lower()
    assert listing.default in ("", *listing.sortable)
    assert {*listing.off_page} <= {each.name for each in listing.columns}
    assert [each.rank < WIDE for each in listing.columns] == [each in listing.text_columns for each in listing.columns]


def test_a_field_that_is_declared_for_no_row_is_refused() -> None:
    with pytest.raises(TypeError, match="TransactionRow of t has no size, topics"):
        Listing(name="t", noun="t", row=TransactionRow, cells={"topics": of_partition, "topic": of_partition}, heads={"size": "Size"})


@each_row("listing", [*LISTS_WITH_PATHS.values()])
def test_the_page_of_a_list_holds_its_rows(listing: Listing) -> None:
    assert get_type_hints(listing.page)["rows"] == list[listing.row]  # type: ignore[name-defined]
    assert listing.path == f"/api/v1/{listing.name}"
