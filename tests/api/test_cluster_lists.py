"""Topics and brokers: what they come to, what is not known of them, and who reads a topic."""

from typing import Any

import numpy as np
import pytest

from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.group_json import GroupPartition
from streaming.cluster.consumers.group_snapshot import GroupBoard
from streaming.cluster.verdicts.circumstances import thresholds_of
from streaming.cluster.view.observer import AgentStatus, Observer
from streaming.cluster.view.table import Table
from streaming.common.log_key import LogKey
from streaming.common.rows import SEGMENTS
from streaming.common.settings import Settings
from streaming.errors import NotYetError, UsageError
from streaming.pages.api.state import State
from streaming.pages.listings.declared_lists import GROUPS
from streaming.pages.listings.listing import Times
from streaming.pages.site.judged_looks import JudgedLooks, Looks
from tests.exposition.reading import named
from tests.group_snapshots import Group, snapshot_of
from tests.view.reported import Facts
from tests.view.rows import log, new_observer, new_table, states
from tests.worlds.hosts import agent, broker, log_dir
from tests.worlds.retention import facts as facts_of

NOW = 1_800_000_000_000
MINUTE, DAY = 60_000, 86_400_000
LED: dict[str, Any] = {"leader": 1, "leader_epoch": 5, "facts": Facts(replicas=(1, 2), isr=(1, 2)).encode()}
LACKING = LED | {"facts": Facts(replicas=(1, 2), isr=(1,)).encode()}


class Watched:
    """A job that has looked at a table at several times."""

    def __init__(self, table: Table, *groups: Group, agents: tuple[AgentStatus, ...] = (), reads_groups: bool = True) -> None:
        self.table, self.now_ms = table, NOW
        self.observer: Observer = new_observer()
        self.observer.know(agents)
        self.board = board = GroupBoard() if reads_groups else None
        if board is not None and groups:
            board.publish(snapshot_of(*groups, now_ms=NOW))
        self.looks = Looks(table, lambda: self.now_ms / 1000)
        judged = JudgedLooks(table, self.observer, self.looks, board, lambda _: None, thresholds_of(Settings()), redacted=False)
        self.state = State(judged.look)

    def later(self, *rows: Any, minutes: int = 1) -> State:
        self.table.apply(states(*rows))
        self.now_ms += minutes * MINUTE
        self.looks.new()
        return self.state


def reads(topic: str, partition: int, **values: Any) -> GroupPartition:
    left = {"committed": 3, "lag_offsets": 9, "lag_records_read_committed": 7, "next_batch_bytes": 900}
    return GroupPartition(topic=topic, partition=partition, **left | values)


def watched() -> Watched:
    rows = [
        log("orders", 0, topic_id="o", size_bytes=10, appended_bytes=0, appended_records=0, last_append_ms=NOW - 500, **LED),
        log("orders", 1, topic_id="o", appended_bytes=0, appended_records=0, last_append_ms=NOW - 900, **LACKING),
        log("bills", 0, topic_id="b", appended_bytes=0, appended_records=0, corrupt_batches=1, **LED),
    ]
    late = reads("orders", 1, loss_ms=NOW + DAY, lag_records_read_committed=500)
    groups = (
        Group(name="ledger", partitions=[reads("orders", 0), late]),
        Group(name="audit", partitions=[reads("orders", 0, lag_records_read_committed=-1, unknown="filling")]),
        Group(name="bystander", partitions=[reads("bills", 0)]),
    )
    return Watched(new_table(*rows), *groups, agents=(agent("a1", broker(1), log_dirs=(log_dir(free=10_000),)),))


def test_a_topic_is_the_sum_of_its_partitions_and_the_worst_of_them_come_first() -> None:
    job = watched()
    job.looks.new()
    state = job.later(log("orders", 0, topic_id="o", appended_bytes=600, appended_records=60, last_append_ms=NOW - 500, **LED))
    page = state.topics()
    assert (page.rows[0].topic, page.rows[0].kind, page.rows[0].severity) == ("bills", "log_corrupt", "critical")
    orders = next(row for row in page.rows if row.topic == "orders")
    assert (orders.partitions, orders.bytes_rate, orders.records_rate, orders.last_append_ms) == (2, 10.0, 1.0, NOW - 500)
    assert (orders.out_of_sync, orders.groups) == (1, 2)
    assert orders.rates[-1] == 10.0
    assert state.topics("sort=bytes_rate").rows[0].topic == "orders"
    assert [row.topic for row in state.topics("filter=BIL").rows] == ["bills"]
    assert (page.total, state.topics("topic=orders").matched, state.topics("limit=1&offset=1").rows) == (2, 1, page.rows[1:])
    with pytest.raises(UsageError, match="sort is not one of topic, partitions, bytes_rate, records_rate, size_bytes and 19 more"):
        state.topics("sort=colour")
    with pytest.raises(UsageError, match="did you mean bytes_rate"):
        state.topics("sort=byte_rate")


def test_what_is_not_known_of_one_partition_is_not_known_of_its_topic() -> None:
    job = watched()
    job.looks.new()
    state = job.later(log("orders", 2, topic_id="o", settled=False))
    orders = state.topics("topic=orders").rows[0]
    assert (orders.partitions, orders.bytes_rate, orders.out_of_sync) == (3, -1.0, -1)
    assert orders.rates[-1] == 0.0


def test_the_skew_of_a_topic_is_its_largest_partition_against_the_mean_of_all_that_it_has() -> None:
    sizes = enumerate((600, 100, 50, 50))
    led: dict[str, Any] = {"leader": 1, "leader_epoch": 5}
    sized = [log("orders", number, facts=facts_of((0, size, 10)), **led) for number, size in sizes]
    table = new_table(*sized, log("bills", 0), log("empty", 0, facts=facts_of((0, 0, 10)), **led))
    keys = [LogKey(1, "orders", number, "") for number in range(4)]
    table.set_records(keys, np.array([[4, 4, 4, 8], [0] * 4, [0] * 4]))

    def skews(counts: dict[str, int] | None) -> dict[str, tuple[float, float]]:
        table.set_context(topic_partitions=counts)
        return {row.topic: (row.size_skew, row.records_skew) for row in Watched(table).state.topics("sort=size_skew").rows}

    unknown = (-1.0, -1.0)
    assert skews({"orders": 4, "bills": 1, "empty": 1}) == {"orders": (3.0, 1.6), "bills": unknown, "empty": unknown}
    of_orders = frozenset({("topic", "orders")})
    assert named(table, "segtail_topic_size_skew_ratio", now=NOW / 1000) == {of_orders: 3.0}
    assert named(table, "segtail_topic_records_skew_ratio", now=NOW / 1000) == {of_orders: 1.6}
    assert skews({"orders": 5})["orders"] == unknown, "one partition has no log here"
    assert skews(None)["orders"] == unknown
    table.set_records(keys, np.array([[4, 4, 4, -1], [0] * 4, [0] * 4]))
    assert skews({"orders": 4})["orders"] == (3.0, -1.0)


def test_a_topic_that_a_group_in_use_reads_is_used_however_long_nobody_has_appended() -> None:
    long_ago = NOW - 40 * DAY
    table = new_table(*(log(topic, 0, last_append_ms=long_ago, **LED) for topic in ("orders", "bills", "dues", "left")))
    table.set_context(topic_partitions=dict.fromkeys(("orders", "bills", "dues", "left", "__consumer_offsets"), 1))
    old = {"commit_ms": long_ago}
    groups = (
        Group(name="ledger", partitions=[reads("orders", 0, **old)]),
        Group(name="audit", partitions=[reads("bills", 0, **old)], facts={"members": 0, "state": "Empty", "state_ms": long_ago}),
        Group(name="waits", partitions=[GroupPartition(topic="dues", partition=0, unknown="not_committed")]),
    )
    rows = {row.topic: row for row in Watched(table, *groups).state.topics().rows}
    assert {name: (row.used, row.readers) for name, row in rows.items()} == {
        "orders": ("yes", ["ledger"]),
        "bills": ("unknown", []),
        "dues": ("yes", ["waits"]),
        "left": ("unknown", []),
    }
    assert (rows["bills"].last_commit_ms, rows["left"].last_commit_ms) == (long_ago, -1)
    assert "not all coordinators' logs are read" in rows["left"].used_why


def test_with_all_replicas_a_partition_counts_once() -> None:
    rows = [log("orders", 0, topic_id="o", broker=each, agent=f"a{each}", **LED) for each in (1, 2)]
    state = Watched(new_table(*rows, replicas="all")).state
    assert (state.partitions().total, state.topics().rows[0].partitions) == (2, 1)


def test_who_reads_a_topic_is_there_with_what_is_left_and_the_worst_verdict() -> None:
    detail = watched().state.topic("orders")
    assert detail is not None
    assert detail.readers is not None
    assert [(each.group, each.partitions, each.lag_records, each.lag_offsets, each.verdict) for each in detail.readers] == [
        ("ledger", 2, 507, 18, "will_lose"),
        ("audit", 1, -1, 9, "unknown"),
    ]
    with pytest.raises(NotYetError):  # it is starting: perhaps it has not read of that yet
        watched().state.topic("nosuch")
    alone = Watched(new_table(log("orders", 0)), reads_groups=False).state
    none = alone.topic("orders")
    assert none is not None
    assert (none.readers, none.row.groups) == (None, -1)


def test_a_broker_has_what_it_leads_and_holds_and_its_own_problems_alone() -> None:
    job = watched()
    (row,) = job.state.brokers().rows
    assert (row.broker, row.agent, row.agent_up, row.log_dirs) == (1, "a1", True, 1)
    assert (row.leaders, row.replicas, row.out_of_sync) == (3, 3, 0)
    assert row.kind != "log_corrupt"
    down = Watched(new_table(log("orders", 0)), agents=(agent("a7", broker(7), up=False),)).state.brokers()
    assert {each.broker: (each.agent_up, each.kind) for each in down.rows}[7] == (False, "agent_down")
    assert down.rows[0].broker == 7
    assert [each.broker for each in job.state.brokers("filter=broker 1 ").rows] == [1]


def test_a_broker_that_writes_nothing_is_not_known_to_run() -> None:
    """Its own copy of the metadata log has it as it was left."""
    registered = [Registered(broker=1, fenced=False, epoch=3, phase="running", since_ms=NOW - DAY)]

    def phase(written_ms: int) -> str:
        of = broker(1, registered=registered, metadata_offset=9, appended_ms=written_ms)
        disk = log_dir(broker=1, checkpoint_ms=written_ms)
        return Watched(new_table(log("orders", 0)), agents=(agent("a1", of, log_dirs=(disk,)),)).state.brokers().rows[0].phase

    assert phase(NOW - 1_000) == "running"
    assert phase(NOW - 2 * MINUTE) == ""


def test_what_only_brokers_that_are_away_would_delete_has_no_time_but_the_broker() -> None:
    segment = np.array([(0, 500, NOW - DAY, NOW - DAY)], SEGMENTS)
    packed = Facts(replicas=(1,), isr=(1,), segments=segment, configs='{"topic":{"retention.ms":"3600000"}}').encode()
    rows = [log("orders", number, topic_id="o", broker=1 + number, agent=f"a{1 + number}", **LED | {"facts": packed}) for number in (0, 1)]
    job = Watched(new_table(*rows), Group(name="ledger", partitions=[reads("orders", 0, loss_start_of=1)]))
    before = job.state.topics().rows[0]
    assert (before.next_deletion_ms > 0, before.next_deletion_start_of) == (True, -1)
    job.table.set_context(away=frozenset({1}))
    one = job.later(minutes=0)
    assert [(each.next_deletion_ms > 0, each.next_deletion_start_of) for each in one.topics().rows] == [(True, 1)]
    job.table.set_context(away=frozenset({1, 2}))
    both = job.later(minutes=0)
    assert [(each.next_deletion_ms, each.next_deletion_start_of) for each in both.topics().rows] == [(-1, 1)]
    for page in (both.partitions("sort=partition"), both.retention("sort=partition")):
        assert [(each.next_deletion_ms, each.next_deletion_start_of) for each in page.rows] == [(-1, 1), (-1, 2)]


def test_the_list_of_groups_says_whose_loss_nobody_misses() -> None:
    used = Group(name="ledger", partitions=[reads("orders", 0, commit_ms=NOW - 5_000, loss_ms=NOW + DAY)], facts={})
    left = reads("orders", 0, commit_ms=NOW - 2 * DAY, loss_ms=NOW + 4 * MINUTE)
    gone = Group(name="gone", partitions=[left], facts={"members": 0, "state": "Empty"})
    thrown = Group(name="console-consumer-7", partitions=[left], facts={"members": 1})
    loss_of = next(each for each in GROUPS.fields if each.name == "loss_ms")
    for groups in ((used, gone, thrown), (gone, thrown)):
        job = Watched(new_table(log("orders", 0, topic_id="o", **LED)), *groups).state
        notes = {row.group: loss_of.cell_in(row, Times(NOW)).note for row in job.groups().rows}
        assert notes == {each.name: "" if each is used else "nobody misses it" for each in groups}
