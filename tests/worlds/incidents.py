"""Problems that stay, and groups that wait."""

from typing import Any

from streaming.broker.protocol.group_json import GroupPartition
from streaming.cluster.verdicts.group_judge import JudgedGroups, judge_groups
from streaming.cluster.view.table import Table
from tests.group_snapshots import Group, snapshot_of
from tests.view.rows import new_table
from tests.worlds.problems import HOUR, NOW_MS
from tests.worlds.transactions import coordinator, orders, transaction


def stuck(*partitions: int, producer: int = 9, offsets: bool = False, **values: Any) -> Table:
    """Logs of orders with a transaction that has been silent for half an hour, and of __consumer_offsets with its commits."""
    logs = [orders(transaction(producer, 40, age=1800), partition=each, **values) for each in partitions]
    entry = {"transactional_id": "pay", "producer_id": producer, "state": "Ongoing", "timeout_ms": 86_400_000}
    known = {"start_ms": NOW_MS - 1_800_000, "partitions": [*(f"orders-{each}" for each in partitions), "__consumer_offsets-0"]}
    more = [orders(transaction(producer, 50, age=1800), topic="__consumer_offsets", partition=0)] if offsets else []
    return new_table(*logs, *more, coordinator(entry | known))


def waiting(partition: int, **values: Any) -> GroupPartition:
    given = {"committed": 40, "next_offset": 40, "lag_offsets": 60, "lag_records_read_committed": 0, "next_append_ms": NOW_MS - 2 * HOUR}
    return GroupPartition(topic="orders", partition=partition, broker=1, **{"held": True} | given | values)


def groups(*of: GroupPartition, name: str = "ledger") -> JudgedGroups:
    return judge_groups(snapshot_of(Group(name=name, partitions=of), now_ms=NOW_MS), NOW_MS)
