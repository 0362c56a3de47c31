"""What pages say of reassignments that are under way."""

import re

import numpy as np

from streaming.broker.protocol.cluster_messages import Reassignment
from streaming.cluster.view.family import Export
from streaming.cluster.view.table import Table
from streaming.common.rows import SEGMENTS
from tests.exposition.reading import named
from tests.view.reported import Facts
from tests.view.rows import Row, log, new_table, states

P = "segtail_partition_"
MOVING = Reassignment(topic="orders", partition=3, leader=1, adding=[4, 5], removing=[1])


def replica(broker: int, end: int, **values: object) -> Row:
    """Segments of a hundred offsets and a thousand bytes."""
    listed = np.array([(base, 1_000, -1, -1) for base in range(0, max(end, 1), 100)], SEGMENTS)
    facts = Facts(segments=listed, replicas=(1, 2, 3), isr=(1, 2, 3)).encode()
    active = int(listed["base_offset"][-1])
    where = {"active_segment": active, "active_position": 1_000, "facts": facts}
    return log(
        "orders", 3, broker=broker, agent=f"a{broker}", topic_id="t", log_end_offset=end, leader=1, leader_epoch=0, **where, **values
    )


def values(table: Table, name: str, *labels: str, now: float = 0.0) -> dict[tuple[str, ...], float]:
    return {tuple(dict(found)[each] for each in labels): value for found, value in named(table, f"{P}{name}", now=now).items()}


def test_what_is_added_and_removed_is_counted_and_what_is_left_to_copy_is_reported_each_broker() -> None:
    table = new_table(replica(1, 1_000), replica(2, 1_000), replica(4, 300))
    assert values(table, "reassigning_replicas", "change") == {}
    table.set_context(reassignments=(MOVING,))
    assert values(table, "reassigning_replicas", "topic", "partition", "change") == {
        ("orders", "3", "adding"): 2,
        ("orders", "3", "removing"): 1,
    }
    assert values(table, "reassignment_remaining_bytes", "broker") == {("4",): 7_000, ("5",): 10_000}
    assert values(table, "reassignment_remaining_seconds", "broker") == {}


def test_how_long_it_takes_is_distinguished_from_page_to_page_and_forgotten_when_it_is_through() -> None:
    table = new_table(replica(1, 1_000), replica(4, 300), replica(5, 1_000))
    table.set_context(reassignments=(MOVING,))
    values(table, "reassignment_remaining_seconds", now=1_000.0)
    table.apply(states(replica(4, 500)))
    assert values(table, "reassignment_remaining_seconds", "broker", now=1_020.0) == {("4",): 50, ("5",): 0}
    table.set_context(reassignments=())
    assert values(table, "reassignment_remaining_bytes", now=1_030.0) == {}
    table.set_context(reassignments=(MOVING,))
    assert values(table, "reassignment_remaining_seconds", "broker", now=1_040.0) == {("5",): 0}


def test_where_the_leader_s_log_is_not_watched_nobody_knows_what_is_left() -> None:
    table = new_table(replica(4, 300))
    table.set_context(reassignments=(MOVING,))
    assert values(table, "reassigning_replicas", "change") == {("adding",): 2, ("removing",): 1}
    assert values(table, "reassignment_remaining_bytes") == {}


def test_no_limit_leaves_it_out_and_a_topic_that_nobody_wants_is() -> None:
    rows = [replica(1, 1_000)]
    for export, expected in ((Export(partitions=False), 2), (Export(exclude=re.compile("orders")), 0)):
        table = new_table(*rows, series_limit=0, export=export)
        table.set_context(reassignments=(MOVING,))
        assert len(values(table, "reassigning_replicas", "change")) == expected
