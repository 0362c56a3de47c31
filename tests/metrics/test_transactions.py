"""What pages say of transactions, as the clock moves and nothing is appended."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streaming.facts import Facts
from streaming.metrics.table import Table
from streaming.rows import COORDINATOR, TRANSACTIONS, StartSource, pack_rows
from tests.metrics.reading import named
from tests.metrics.rows import Row, log, new_table, states

NOW = 1_700_000_000
MS = NOW * 1000
ALONE = Facts(replicas=(1,), isr=(1,)).encode()
ELSEWHERE = Facts(replicas=(1, 2), isr=(2,)).encode()
P = "segtail_partition_"
OPEN, HANGING = f"{P}open_transactions", f"{P}hanging_transactions"
LSO, LAG, LAG_BYTES = f"{P}last_stable_offset", f"{P}last_stable_offset_lag", f"{P}last_stable_offset_lag_bytes"
STARTED, APPENDED = f"{P}oldest_open_transaction_start_timestamp_seconds", f"{P}oldest_open_transaction_last_append_timestamp_seconds"
LATE, INFO, OMITTED = (
    "segtail_late_transaction_start_timestamp_seconds",
    "segtail_late_transaction_info",
    "segtail_late_transactions_omitted",
)


def transaction(producer: int, first: int, *, age: int, marker: int = -1, **values: Any) -> tuple[Any, ...]:
    """One that began so many seconds before NOW, and was silent since."""
    given = {
        "source": StartSource.SEEN,
        "committed": -1 if marker < 0 else 1,
        "producer_epoch": 3,
        "producer_id": producer,
        "first_offset": first,
        "next_offset": first + 1,
        "marker_offset": marker,
        "bytes": 10,
        "bytes_at": 10 * first,
        "start_ms": MS - age * 1000,
        "last_ms": MS - age * 1000,
        **values,
    }
    return tuple(given[name] for name in TRANSACTIONS.names or ())


def orders(*found: tuple[Any, ...], **values: Any) -> Row:
    made = np.array(list(found), TRANSACTIONS).tobytes() if found else None
    given = {"leader": 1, "leader_epoch": 0, "log_start_offset": 0, "log_end_offset": 100, "appended_bytes": 1000, "facts": ALONE}
    return log(transactional=True, transactions=made, **{**given, **values})


def coordinator(*entries: dict[str, Any], partition: int = 0, **values: Any) -> Row:
    given = {"offset": 1, "producer_epoch": 3, "timeout_ms": 60_000, "start_ms": -1, "last_update_ms": MS, "partitions": ["orders-0"]}
    packed = pack_rows(pa.RecordBatch.from_pylist([given | entry for entry in entries], COORDINATOR))
    told = {"leader": 1, "leader_epoch": 0, "coordinator": packed, "facts": ALONE}
    return log("__transaction_state", partition, **{**told, **values})


def only(table: Table, name: str, *, after: float = 0) -> float | None:
    """The value of the one series of a name for orders-0, None where it is absent."""
    found = [value for labels, value in named(table, name, now=NOW + after).items() if ("topic", "orders") in labels]
    assert len(found) <= 1
    return found[0] if found else None


def late(table: Table, *, after: float = 0) -> list[dict[str, str]]:
    """The labels of the listed ones, joined from both families."""
    infos = [dict(labels) for labels in named(table, INFO, now=NOW + after)]
    starts = [dict(labels) for labels in named(table, LATE, now=NOW + after)]
    shared = ("broker", "topic", "partition", "producer_id", "first_offset")
    assert [{name: each[name] for name in shared} for each in infos] == starts
    return infos


# --- series of partitions


def test_a_log_without_transactions_has_no_series_of_them() -> None:
    table = new_table(log())
    assert [only(table, name) for name in (OPEN, HANGING, f"{P}committed_transactions_total", STARTED)] == [None] * 4


def test_a_log_that_had_one_tells_zeros() -> None:
    table = new_table(orders())
    assert [only(table, name) for name in (OPEN, f"{P}committed_transactions_total", LAG)] == [0, 0, 0]
    assert only(table, STARTED) is None
    assert only(table, LSO) == 100


def test_the_oldest_open_one_holds_the_last_stable_offset() -> None:
    table = new_table(orders(transaction(7, 40, age=5), transaction(8, 60, age=9)))
    assert [only(table, name) for name in (OPEN, LSO, LAG, LAG_BYTES)] == [2, 40, 60, 600]
    assert [only(table, name) for name in (STARTED, APPENDED)] == [NOW - 5, NOW - 5]  # of the lowest first offset


def test_one_that_is_closed_holds_it_until_its_marker_is_replicated() -> None:
    two = Facts(replicas=(1, 2), isr=(1, 2)).encode()
    closed = orders(transaction(7, 40, age=5, marker=90), facts=two, high_watermark=50)
    assert [only(new_table(closed), name) for name in (OPEN, LSO, LAG)] == [0, 40, 10]
    follower = {"broker": 2, "leader": 1, "leader_epoch": 0, "log_start_offset": 0, "facts": two, "agent": "a2"}
    behind = new_table(closed, log(log_end_offset=90, **follower))
    assert [only(behind, name) for name in (LSO, LAG, f"{P}high_watermark")] == [40, 50, 90]
    level = new_table(closed, log(log_end_offset=91, **follower))
    assert [only(level, name) for name in (LSO, LAG, f"{P}high_watermark")] == [91, 0, 91]


@pytest.mark.parametrize(("assumed", "high_watermark"), [(False, 30), (True, 100)])
def test_without_metadata_the_checkpoint_counts_unless_all_is_taken_as_replicated(assumed: bool, high_watermark: int) -> None:
    table = new_table(orders(facts=None, leader=-2, leader_epoch=-1, high_watermark=30), assume_replicated=assumed)
    assert only(table, f"{P}high_watermark") == high_watermark
    assert only(table, f"{P}high_watermark_checkpoint") == 30


# --- verdicts


ONGOING = {"transactional_id": "pay-1", "producer_id": 7, "state": "Ongoing", "start_ms": MS - 50_000}


def verdict(table: Table, *, after: float = 0) -> str:
    (one,) = late(table, after=after)
    return one["verdict"]


def test_what_its_coordinator_has_is_open_then_overdue() -> None:
    table = new_table(orders(transaction(7, 40, age=5)), coordinator(ONGOING), coordinator_partitions=1)
    assert only(table, STARTED) == NOW - 50  # the coordinator knows best
    assert verdict(table, after=11) == "open"
    assert verdict(table, after=71) == "overdue"
    (one,) = late(table, after=71)
    assert (one["transactional_id"], one["coordinator_state"], one["producer_epoch"]) == ("pay-1", "Ongoing", "3")
    assert only(table, HANGING, after=9999) == 0


def test_one_that_waits_for_an_outer_transaction_is_never_overdue() -> None:
    table = new_table(orders(transaction(7, 40, age=5)), coordinator(ONGOING | {"timeout_ms": 2**31 - 1}), coordinator_partitions=1)
    assert verdict(table, after=9_999_999) == "two_phase"


@pytest.mark.parametrize("state", ["PrepareCommit", "PrepareAbort"])
def test_what_is_decided_is_completing(state: str) -> None:
    table = new_table(orders(transaction(7, 40, age=5)), coordinator(ONGOING | {"state": state}), coordinator_partitions=1)
    assert verdict(table, after=9999) == "completing"


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [ONGOING | {"state": "CompleteAbort"}],
        [ONGOING | {"partitions": ["orders-1"]}],
        [ONGOING | {"producer_id": 8}],
    ],
)
def test_what_nobody_will_end_hangs_once_it_has_been_silent_for_long(entries: list[dict[str, Any]]) -> None:
    table = new_table(orders(transaction(7, 40, age=100)), coordinator(*entries), coordinator_partitions=1)
    assert (only(table, HANGING), verdict(table)) == (0, "open")  # the page is the first to see it
    assert (only(table, HANGING, after=61), verdict(table, after=61)) == (0, "hanging")
    assert only(table, HANGING, after=801) == 1


def test_a_single_look_at_logs_that_were_read_to_their_ends_needs_no_earlier_one() -> None:
    table = new_table(orders(transaction(7, 40, age=1000)), coordinator(), coordinator_partitions=1, once=True)
    assert (only(table, HANGING), verdict(table)) == (1, "hanging")


def test_where_no_such_topic_exists_nobody_will_end_it() -> None:
    table = new_table(orders(transaction(7, 40, age=1000)), coordinator_partitions=0)
    assert only(table, HANGING) == 0
    assert only(table, HANGING, after=61) == 1


@pytest.mark.parametrize(
    ("partitions", "values"),
    [
        (None, {}),
        (2, {}),  # one of them is not observed
        (1, {"settled": False}),
        (1, {"skipped_bytes": [1, 0, 0, 0, 0]}),
        (1, {"corrupt_batches": 1}),
        (1, {"leader": 2, "facts": ELSEWHERE}),  # this replica is not in sync
    ],
)
def test_nothing_hangs_where_not_every_coordinator_could_be_asked(partitions: int | None, values: dict[str, Any]) -> None:
    table = new_table(orders(transaction(7, 40, age=9000)), coordinator(**values), coordinator_partitions=partitions)
    assert only(table, HANGING, after=99) is None
    assert verdict(table, after=99) == "unknown"


@pytest.mark.parametrize(("state", "counted", "said"), [("?", 1, "unknown"), ("Empty", 0, "open")])
def test_what_is_not_understood_of_a_coordinator_may_be_anybody_s(state: str, counted: int, said: str) -> None:
    entry = {"transactional_id": "new", "state": state, "producer_id": 99}
    table = new_table(orders(transaction(7, 40, age=9000)), coordinator(entry), coordinator_partitions=1)
    assert verdict(table, after=99) == said
    assert named(table, "segtail_coordinator_entries_not_understood", now=NOW) == {frozenset(): counted}


# --- the list


def test_late_ones_are_listed_hanging_first_then_the_oldest_as_many_as_are_wanted() -> None:
    found = [transaction(7, 40, age=2000), transaction(8, 50, age=3000), transaction(9, 60, age=1000), transaction(10, 70, age=59)]
    entries = [ONGOING | {"transactional_id": f"t{producer}", "producer_id": producer, "start_ms": -1} for producer in (7, 8, 10)]
    table = new_table(orders(*found), coordinator(*entries), coordinator_partitions=1, late_limit=2)
    named(table, LATE, now=NOW - 61)  # a page that saw them first
    assert [each["producer_id"] for each in late(table)] == ["9", "8"]
    assert named(table, OMITTED, now=NOW) == {frozenset(): 1}


def test_what_is_closed_leaves_the_list() -> None:
    table = new_table(orders(transaction(7, 40, age=9000)), coordinator_partitions=0)
    assert len(late(table)) == 1
    table.apply(states(orders()))
    assert late(table) == []
    assert only(table, OPEN) == 0


# --- coordinators


def test_entries_are_counted_by_broker_and_state_once_however_many_replicas_there_are() -> None:
    entries = [ONGOING, ONGOING | {"transactional_id": "b", "state": "Empty"}, ONGOING | {"transactional_id": "c", "state": "Empty"}]
    leads, follows = coordinator(*entries), coordinator(*entries) | {"broker": 2, "agent": "a2"}
    table = new_table(leads, follows, coordinator_partitions=50)
    found = {
        (dict(labels)["broker"], dict(labels)["state"]): value
        for labels, value in named(table, "segtail_coordinator_transactions", now=NOW).items()
    }
    assert {key: value for key, value in found.items() if value} == {("1", "Ongoing"): 1, ("1", "Empty"): 2}
    assert len(found) == 6
    assert named(table, "segtail_coordinator_partitions", now=NOW) == {frozenset(): 50}
    assert named(table, "segtail_coordinator_partitions_readable", now=NOW) == {frozenset(): 1}


def test_durations_and_counters_are_told() -> None:
    buckets = [0] * 15
    buckets[4] = 3
    table = new_table(orders(committed_transactions=3, share_transaction_buckets=buckets, share_transaction_ms=2500))
    assert only(table, f"{P}committed_transactions_total") == 3
    assert named(table, "segtail_topic_transaction_duration_seconds_sum", now=NOW) == {
        frozenset({("broker", "1"), ("topic", "orders")}): 2.5
    }
    assert named(table, "segtail_topic_transaction_duration_seconds_count", now=NOW) == {
        frozenset({("broker", "1"), ("topic", "orders")}): 3
    }
