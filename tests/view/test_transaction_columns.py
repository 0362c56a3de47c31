"""What pages say of transactions, as the clock moves and nothing is appended."""

from typing import Any

import pytest

from streaming.cluster.view.recalled import RECALLED_MS
from streaming.cluster.view.table import Table
from streaming.common.log_key import LogKey
from tests.exposition.reading import named
from tests.tables import each_row
from tests.view.reported import Facts
from tests.view.rows import log, new_table, states
from tests.worlds.transactions import ALONE, LATE, MS, NOW, OMITTED, coordinator, late, orders, transaction, verdict

ELSEWHERE = Facts(replicas=(1, 2), isr=(2,)).encode()
P = "segtail_partition_"
OPEN, HANGING, STUCK = f"{P}open_transactions", f"{P}hanging_transactions", f"{P}stuck_transactions"
STALLED = f"{P}last_stable_offset_stalled"
LSO, LAG, LAG_BYTES = f"{P}last_stable_offset", f"{P}last_stable_offset_lag", f"{P}last_stable_offset_lag_bytes"
STARTED, APPENDED = f"{P}oldest_open_transaction_start_timestamp_seconds", f"{P}oldest_open_transaction_last_append_timestamp_seconds"


def only(table: Table, name: str, *, after: float = 0) -> float | None:
    """The value of the one series of a name for orders-0, None where it is absent."""
    found = [value for labels, value in named(table, name, now=NOW + after).items() if ("topic", "orders") in labels]
    assert len(found) <= 1
    return found[0] if found else None


# --- series of partitions


def test_a_log_without_transactions_has_no_series_of_them() -> None:
    table = new_table(log())
    assert [only(table, name) for name in (OPEN, HANGING, f"{P}committed_transactions_total", STARTED)] == [None] * 4


def test_a_log_that_had_one_shows_zeros() -> None:
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


def test_of_a_partition_with_nobody_in_sync_it_is_known_that_nobody_is() -> None:
    """As brokers with eligible leader replicas (KIP-966) leave it."""
    table = new_table(orders(facts=Facts(replicas=(1, 2), isr=()).encode()))
    assert (only(table, f"{P}in_sync_replicas"), only(table, f"{P}replicas")) == (0, 2)


@pytest.mark.parametrize(("assumed", "high_watermark"), [(False, 30), (True, 100)])
def test_without_metadata_the_checkpoint_counts_unless_all_is_taken_as_replicated(assumed: bool, high_watermark: int) -> None:
    table = new_table(orders(facts=None, leader=-2, leader_epoch=-1, high_watermark=30), assume_replicated=assumed)
    assert only(table, f"{P}high_watermark") == high_watermark
    assert only(table, f"{P}high_watermark_checkpoint") == 30


# --- verdicts


ONGOING = {"transactional_id": "pay-1", "producer_id": 7, "state": "Ongoing", "start_ms": MS - 50_000}


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


@each_row(
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
    assert (only(table, HANGING), verdict(table)) == (0, "unclaimed")  # the page is the first to see it
    assert (only(table, HANGING, after=61), verdict(table, after=61)) == (0, "unclaimed")
    assert (only(table, HANGING, after=801), verdict(table, after=801)) == (1, "hanging")


def test_after_a_restart_nothing_is_stated_until_all_logs_were_read_once_more() -> None:
    table = new_table(orders(transaction(7, 40, age=1300)), coordinator(), coordinator_partitions=1)
    table.set_reading({"a1": NOW})
    assert (only(table, HANGING), only(table, STUCK), verdict(table)) == (None, None, "unknown")
    table.set_reading({"a1": NOW + 29})
    assert (only(table, HANGING, after=30), only(table, STUCK, after=30)) == (None, None)
    table.set_reading({"a1": NOW + 30})
    assert (only(table, HANGING, after=31), only(table, STUCK, after=31), verdict(table, after=31)) == (1, 0, "hanging")


def test_another_append_is_another_beginning() -> None:
    table = new_table(orders(transaction(7, 40, age=2000)), coordinator(), coordinator_partitions=1)
    assert only(table, HANGING) == 1
    table.apply(states(orders(transaction(7, 40, age=2000, last_ms=MS + 1000))))
    assert (only(table, HANGING, after=99), verdict(table, after=99)) == (0, "unclaimed")


def read_upto(table: Table, *, data: float, coordinators: float) -> None:
    """Say up to when the agents of two brokers were taken in, seconds from NOW on."""
    table.set_reading({"a1": NOW + data, "a2": NOW + coordinators})


def rows_of_two(age: float) -> list[dict[str, Any]]:
    there = coordinator(broker=2, agent="a2", leader=2, facts=Facts(replicas=(2,), isr=(2,)).encode())
    return [orders(transaction(7, 40, age=int(age))), there]


def two_agents(age: float) -> Table:
    table = new_table(*rows_of_two(age), coordinator_partitions=1)
    read_upto(table, data=0, coordinators=0)
    assert only(table, HANGING) is None  # seen for the first time
    return table


@each_row(
    ("data", "coordinators", "hangs", "stated"),
    [
        (99, 99, 1, "hanging"),
        (99, 10, None, "unknown"),  # the log of the coordinator is behind
        (10, 99, None, "unknown"),  # that of the data is: the marker may be there
        (41, 41, 1, "hanging"),
        (99, 39, None, "unknown"),  # more than a minute ago
        (39, 99, None, "unknown"),
    ],
)
def test_hanging_is_stated_only_by_looks_that_began_when_it_had_been_seen_and_are_not_long_ago(
    data: float, coordinators: float, hangs: int | None, stated: str
) -> None:
    table = two_agents(1000)
    read_upto(table, data=data, coordinators=coordinators)
    assert (only(table, HANGING, after=100), verdict(table, after=100)) == (hangs, stated)
    readable = 1 if coordinators >= 40 else 0
    assert named(table, "segtail_coordinator_partitions_readable", now=NOW + 100) == {frozenset(): readable}


def test_a_look_that_began_before_the_append_was_seen_says_nothing_of_it() -> None:
    table = two_agents(1000)
    read_upto(table, data=29, coordinators=29)
    assert only(table, HANGING, after=62) is None
    read_upto(table, data=30, coordinators=30)
    assert only(table, HANGING, after=62) == 1


@pytest.mark.parametrize("behind", ["a2", "a3"])
def test_of_several_coordinators_the_one_whose_log_was_read_first_decides(behind: str) -> None:
    logs = [
        coordinator(
            partition=number, broker=broker, agent=f"a{broker}", leader=broker, facts=Facts(replicas=(broker,), isr=(broker,)).encode()
        )
        for number, broker in enumerate((2, 3))
    ]
    table = new_table(orders(transaction(7, 40, age=1000)), *logs, coordinator_partitions=2)
    table.set_reading(dict.fromkeys(("a1", "a2", "a3"), NOW))
    assert only(table, HANGING) is None
    for seconds, hangs in ((29, None), (30, 1)):
        table.set_reading(dict.fromkeys(("a1", "a2", "a3"), NOW + 59) | {behind: NOW + seconds})
        assert only(table, HANGING, after=62) == hangs


def test_an_agent_that_shows_nothing_of_its_reading_makes_it_unknown() -> None:
    table = two_agents(1000)
    table.set_reading({"a1": NOW + 100})
    assert only(table, HANGING, after=100) is None


def test_no_read_is_awaited_of_a_log_that_is_not_read() -> None:
    table = two_agents(1300)
    for agent in ("a1", "a2"):
        table.set_reading({agent: NOW + 99})
        (one,) = late(table, after=100)
        assert (one["verdict"], one["stuck"]) == ("unknown", "true")


def test_logs_that_cannot_be_read_and_log_dirs_that_are_away_make_it_unknown() -> None:
    table = two_agents(1000)
    read_upto(table, data=99, coordinators=99)
    table.set_unreadable([LogKey(2, "__transaction_state", 0, "")])
    assert only(table, HANGING, after=100) is None
    table.set_unreadable([])
    table.set_unread_dirs([(1, "/data")])
    assert only(table, HANGING, after=100) is None
    table.set_unread_dirs([])
    assert only(table, HANGING, after=100) == 1


@each_row("blind", [{"data": 10, "coordinators": 199}, {"data": 199, "coordinators": 10}, {"data": 10, "coordinators": 10}, None])
def test_what_hangs_goes_on_while_nobody_looks_until_its_end_is_seen(blind: dict[str, float] | None) -> None:
    table = two_agents(1300)
    read_upto(table, data=99, coordinators=99)
    assert (only(table, HANGING, after=100), verdict(table, after=100)) == (1, "hanging")
    if blind is None:
        table.set_reading({})
    else:
        read_upto(table, **blind)
    assert (only(table, HANGING, after=200), verdict(table, after=200)) == (1, "hanging")
    ended = orders(transaction(7, 40, age=1300, marker=50))
    table.apply(states(ended))
    assert only(table, HANGING, after=201) == 0
    table.apply(states(orders(transaction(8, 60, age=1300))))
    assert only(table, HANGING, after=202) is None, "another one of which nothing was certain"


def test_what_hangs_hangs_for_the_next_job_too_before_it_can_be_sure() -> None:
    before = two_agents(1300)
    read_upto(before, data=99, coordinators=99)
    assert only(before, HANGING, after=100) == 1
    kept = before.transactions.kept()
    after = new_table(coordinator_partitions=1)
    after.transactions.recall(kept)
    assert (only(after, HANGING, after=150), after.transactions.kept()) == (None, kept), "nothing is read yet, and nothing forgotten"
    after.apply(states(*rows_of_two(1300)))
    after.set_reading({})
    assert (only(after, HANGING, after=200), verdict(after, after=200)) == (1, "hanging")
    assert after.transactions.kept() == kept
    read_upto(after, data=199, coordinators=199)
    assert only(after, HANGING, after=200) == 1, "no coordinator has had it since before"
    after.apply(states(orders(transaction(7, 40, age=1300, marker=50))))
    assert (only(after, HANGING, after=201), after.transactions.kept()) == (0, [])


def test_what_was_kept_and_does_not_come_again_is_forgotten() -> None:
    before = two_agents(1300)
    read_upto(before, data=99, coordinators=99)
    only(before, HANGING, after=100)
    after = new_table()
    after.transactions.recall(before.transactions.kept())
    for seconds in (0, RECALLED_MS // 1000):
        only(after, HANGING, after=seconds)
        assert after.transactions.kept()
    only(after, HANGING, after=RECALLED_MS // 1000 + 1)
    assert not after.transactions.kept()


def test_what_hangs_is_no_more_what_hangs_once_a_coordinator_has_it() -> None:
    table = two_agents(1000)
    read_upto(table, data=99, coordinators=99)
    assert only(table, HANGING, after=100) == 1
    read_upto(table, data=99, coordinators=10)
    there = coordinator(ONGOING | {"start_ms": MS}, broker=2, agent="a2", leader=2, facts=Facts(replicas=(2,), isr=(2,)).encode())
    table.apply(states(there))
    assert verdict(table, after=110) == "open"


def test_what_a_deposed_leader_wrote_counts_for_nothing_beside_a_current_replica() -> None:
    entry = ONGOING | {"start_ms": MS}
    both = Facts(replicas=(1, 2), isr=(1,)).encode()
    leads = coordinator(entry | {"state": "CompleteCommit", "offset": 1000}, facts=both)
    deposed = coordinator(entry | {"offset": 1004}, broker=2, agent="a2", facts=both)
    table = new_table(orders(transaction(7, 40, age=1000)), leads, deposed, coordinator_partitions=1)
    assert (only(table, HANGING), verdict(table)) == (1, "hanging")


def test_stuck_is_counted_and_labelled_alike() -> None:
    table = new_table(orders(transaction(7, 40, age=1201), transaction(8, 50, age=1200)), coordinator_partitions=None)
    assert (only(table, STUCK), only(table, HANGING)) == (1, None)
    assert [(each["producer_id"], each["verdict"], each["stuck"]) for each in late(table)] == [
        ("7", "unknown", "true"),
        ("8", "unknown", ""),
    ]
    table.set_reading({})
    assert only(table, STUCK) == 1  # of the second its marker may be there by now
    assert only(table, STUCK, after=10) == 1, "another one has been silent for as long since, and nobody has looked"
    unseen = new_table(orders(transaction(7, 40, age=1201)), coordinator_partitions=None)
    unseen.set_reading({})
    assert only(unseen, STUCK) is None


def test_readers_are_stalled_by_what_has_been_open_for_long_whether_it_writes_or_not() -> None:
    table = new_table(orders(transaction(7, 40, age=901, last_ms=MS)), coordinator_partitions=None)
    assert (only(table, STALLED), only(table, STUCK)) == (1, 0)
    assert only(new_table(orders(transaction(7, 40, age=900)), coordinator_partitions=None), STALLED) == 0
    assert only(new_table(orders(transaction(7, 40, age=9000), log_end_offset=40), coordinator_partitions=None), STALLED) == 0
    assert only(new_table(orders()), STALLED) == 0


def test_what_coordinators_should_have_ended_is_counted_by_their_broker_unless_they_are_behind() -> None:
    overdue = "segtail_coordinator_overdue_transactions"
    entries = [ONGOING | {"start_ms": MS - 121_000}, ONGOING | {"transactional_id": "b", "producer_id": 8, "start_ms": MS - 120_000}]
    others = [{"state": "CompleteCommit"}, {"state": "PrepareAbort"}, {"timeout_ms": 2**31 - 1}, {"start_ms": -1}]
    entries += [
        ONGOING | {"transactional_id": f"other {number}", "producer_id": 90 + number, "start_ms": 1000} | other
        for number, other in enumerate(others)
    ]
    table = new_table(orders(), coordinator(*entries), coordinator_partitions=1)
    assert named(table, overdue, now=NOW) == {frozenset({("broker", "1")}): 1}
    assert named(table, overdue, now=NOW + 2) == {frozenset({("broker", "1")}): 2}
    table.set_reading({})
    assert named(table, overdue, now=NOW) == {}


def test_an_entry_that_is_overdue_in_a_log_that_is_behind_is_not_called_so() -> None:
    table = two_agents(1000)
    entry = ONGOING | {"start_ms": MS - 1000_000}
    there = coordinator(entry, broker=2, agent="a2", leader=2, facts=Facts(replicas=(2,), isr=(2,)).encode())
    table.apply(states(there))
    assert verdict(table) == "overdue"
    read_upto(table, data=99, coordinators=10)
    assert verdict(table, after=99) == "unknown"


def test_a_single_look_at_logs_that_were_read_to_their_ends_needs_no_earlier_one() -> None:
    table = new_table(orders(transaction(7, 40, age=1000)), coordinator(), coordinator_partitions=1, once=True)
    assert (only(table, HANGING), verdict(table)) == (1, "hanging")
    table.set_reading({"a1": NOW - 1001})  # read before it was written
    assert (only(table, HANGING), verdict(table)) == (None, "unknown")


BESIDE = Facts(replicas=(1, 2), isr=(1, 2)).encode()


@each_row(
    ("facts", "written", "stated"),
    [
        (ALONE, NOW - 61, "hanging"),  # all that are in sync are watched: nobody can have gone on without them
        (BESIDE, NOW - 60, "hanging"),
        (BESIDE, NOW - 61, "unknown"),  # the other one may lead by now
        (BESIDE, None, "hanging"),  # nothing tells how old it is
    ],
)
def test_by_metadata_that_is_old_a_replica_is_current_only_where_all_that_are_in_sync_are_watched(
    facts: bytes, written: int | None, stated: str
) -> None:
    table = new_table(orders(transaction(7, 40, age=1000), facts=facts), coordinator(facts=facts), coordinator_partitions=1, once=True)
    table.set_context(metadata_ms=None if written is None else written * 1000)
    assert verdict(table) == stated


@each_row(
    ("eligible", "age_s", "stated"),
    [
        ((1,), 61, "hanging"),  # it was the last one in sync when it was stopped
        ((1, 2), 60, "hanging"),
        ((1, 2), 61, "unknown"),  # the other one may lead by now
        ((2,), 60, "unknown"),  # it may lack the end
        ((), 60, "unknown"),
        (None, 60, "unknown"),  # nothing is known of them
    ],
)
def test_where_none_is_in_sync_a_replica_that_is_eligible_to_lead_is_current(
    eligible: tuple[int, ...] | None, age_s: int, stated: str
) -> None:
    stopped = {"facts": Facts(replicas=(1, 2), isr=(), eligible=eligible).encode(), "leader": -1}
    hung = orders(transaction(7, 40, age=1000), **stopped)
    table = new_table(hung, coordinator(**stopped), coordinator_partitions=1, once=True)
    table.set_context(metadata_ms=(NOW - age_s) * 1000)
    assert verdict(table) == stated
    assert only(table, "segtail_partition_in_sync_replicas") == 0


@pytest.mark.parametrize(("facts", "stated"), [(ALONE, "open"), (BESIDE, "unknown")])
def test_what_a_replica_says_that_others_may_have_gone_on_without_counts_for_nothing(facts: bytes, stated: str) -> None:
    entry = ONGOING | {"start_ms": MS - 100_000}
    table = new_table(orders(transaction(7, 40, age=100), facts=facts), coordinator(entry, facts=facts), coordinator_partitions=1)
    assert verdict(table) == "open"
    table.set_context(metadata_ms=MS - 61_000)
    assert verdict(table) == stated


def test_where_no_such_topic_exists_nobody_will_end_it() -> None:
    table = new_table(orders(transaction(7, 40, age=1000)), coordinator_partitions=0)
    assert only(table, HANGING) == 1


@each_row(
    ("partitions", "values"),
    [
        (None, {}),
        (2, {}),  # one of them is not observed
        (1, {"settled": False}),
        (1, {"log_end_offset": 9, "coordinator_upto": 8}),
        (1, {"coordinator_upto": -1}),
        (1, {"coordinator": None}),  # its row tells something else that has changed
        (1, {"leader": 2, "facts": ELSEWHERE}),  # this replica is not in sync
    ],
)
def test_nothing_hangs_where_not_every_coordinator_could_be_asked(partitions: int | None, values: dict[str, Any]) -> None:
    table = new_table(orders(transaction(7, 40, age=9000)), coordinator(**values), coordinator_partitions=partitions)
    assert only(table, HANGING, after=99) is None
    assert verdict(table, after=99) == "unknown"


def test_what_a_coordinators_log_has_lost_once_counts_no_more_when_it_was_read_again() -> None:
    again = coordinator(skipped_bytes=[1, 2, 3], corrupt_batches=1, truncations=1, log_end_offset=9, coordinator_upto=9)
    table = new_table(orders(transaction(7, 40, age=9000)), again, coordinator_partitions=1)
    assert only(table, HANGING) == 1


@pytest.mark.parametrize(("state", "counted", "stated"), [("?", 1, "unknown"), ("Empty", 0, "hanging")])
def test_what_is_not_understood_of_a_coordinator_may_be_anybody_s(state: str, counted: int, stated: str) -> None:
    entry = {"transactional_id": "new", "state": state, "producer_id": 99}
    table = new_table(orders(transaction(7, 40, age=9000)), coordinator(entry), coordinator_partitions=1)
    assert verdict(table, after=99) == stated
    assert named(table, "segtail_coordinator_entries_not_understood", now=NOW) == {frozenset(): counted}
    assert named(table, "segtail_coordinator_partitions_readable", now=NOW) == {frozenset(): 1 - counted}
    assert named(table, "segtail_coordinator_partitions", now=NOW) == {frozenset(): 1}


def test_what_is_not_understood_in_one_partition_leaves_what_others_know_as_it_is() -> None:
    entry = {"transactional_id": "new", "state": "?", "producer_id": 99}
    found = [transaction(7, 40, age=5), transaction(8, 50, age=1000)]
    table = new_table(orders(*found), coordinator(entry, partition=1), coordinator(ONGOING), coordinator_partitions=2)
    assert {each["producer_id"]: each["verdict"] for each in late(table, after=61)} == {"7": "open", "8": "unknown"}
    assert named(table, "segtail_coordinator_partitions_readable", now=NOW) == {frozenset(): 1}


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


def test_durations_and_counters_are_reported() -> None:
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
