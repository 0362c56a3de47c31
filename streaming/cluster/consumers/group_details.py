"""What only the agents of a group's partitions know: what is deleted with the next record, and whether its batch is sound."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from streaming.broker.protocol.group_json import BatchCheck, GroupPartition
from streaming.broker.protocol.group_messages import POSITIONS_ASKED, BatchRequest
from streaming.cluster.consumers.group_logs import TopicPartition
from streaming.cluster.consumers.group_partitions import GroupPartitions

MOST_LOOKED_AT = 500
"""So many partitions of an answer are looked at in their logs, the first of those with unread records."""

MOST_CHECKED = 20
"""The next batches of so many partitions are checked, of those that have stopped, are damaged or have a large batch before them."""

LARGE_BYTES = 1 << 20
"""A batch that is larger may be too large for its consumers: `max.partition.fetch.bytes` is a MiB by default."""

_KNOWN = "KNOWN"
_DAMAGED = "damaged"

A = TypeVar("A")

Position = tuple[str, int, int]
"""Topic, partition and offset."""


class GroupDetails:
    """Asks agents for what an answer has besides the snapshot: what is deleted with the next record, and checks of next batches.

    It is made for one answer. ``messages``: of the snapshot that the partitions are of. ``agents``: those that answer, by name.
    """

    def __init__(self, messages: GroupPartitions, agents: Mapping[str, GroupAgent], ask: AgentCall) -> None:
        self._agent = messages.agents
        self._messages, self._agents, self._ask = messages, agents, ask

    def staked(self, partitions: Sequence[GroupPartition]) -> list[GroupPartition]:
        """The partitions; those that will lose records with what is deleted with the next one."""
        watermarks = [each.high_watermark for each in partitions]
        firsts, lasts = (np.minimum(ends, watermarks).tolist() for ends in self._messages.lost_with(partitions))
        some = {_log(each): (first, last) for each, first, last in zip(partitions, firsts, lasts, strict=True) if first >= 0}
        some = dict(list(some.items())[:MOST_LOOKED_AT])
        answers = self._positions([(each, _stake(each, some[_log(each)])) for each in partitions if _log(each) in some])
        return [_with_stake(each, some[_log(each)], answers) if _log(each) in some else each for each in partitions]

    def checked(self, partitions: Sequence[GroupPartition]) -> list[GroupPartition]:
        """The partitions; those that may have stopped because of their next batch, with a check of it."""
        suspects = [
            each for each in partitions if each.unknown == _DAMAGED or each.next_batch_bytes > LARGE_BYTES or each.stopped_since_ms >= 0
        ][:MOST_CHECKED]
        calls = {
            f"{each.topic}-{each.partition}": partial(self._agents[agent].batch, _request(each))
            for each in suspects
            if (agent := self._agent.get(_log(each), "")) in self._agents
        }
        batches: Mapping[str, BatchCheck] = self._ask(calls) if calls else {}
        return [replace(each, batch=batches.get(f"{each.topic}-{each.partition}", each.batch)) for each in partitions]

    def _positions(self, wanted: Sequence[tuple[GroupPartition, Collection[int]]]) -> dict[Position, dict[str, Any]]:
        """The positions that are needed; those of agents that do not answer are left out."""
        rows: dict[str, list[dict[str, Any]]] = {}
        for each, offsets in wanted:
            log = {"broker": each.broker, "topic": each.topic, "topic_id": each.topic_id, "partition": each.partition}
            rows.setdefault(self._agent[_log(each)], []).extend(
                log | {"offset": offset, "upto": each.high_watermark, "reads_uncommitted": 0} for offset in offsets
            )
        calls = {
            agent: partial(self._agents[agent].positions, pa.Table.from_pylist(some, POSITIONS_ASKED))
            for agent, some in rows.items()
            if agent in self._agents
        }
        tables: Mapping[str, pa.Table] = self._ask(calls) if calls else {}
        return {
            (row["topic"], row["partition"], row["offset"]): row
            for table in tables.values()
            for row in table.to_pylist()
            if row["state"].upper() == _KNOWN
        }


class GroupAgent(Protocol):
    """The calls that an answer about a group needs of each agent."""

    def positions(self, question: pa.Table) -> pa.Table:
        """See `streaming.spark.client.agent_client.AgentClient.positions`."""

    def batch(self, request: BatchRequest) -> BatchCheck:
        """See `streaming.spark.client.agent_client.AgentClient.batch`."""


class AgentCall(Protocol):
    """Calls agents, and waits a moment at most; returns the answers that have come, by the names of the calls."""

    def __call__(self, calls: Mapping[str, Callable[[], A]]) -> Mapping[str, A]:
        """Make the calls."""


def _log(partition: GroupPartition) -> TopicPartition:
    return partition.topic, partition.partition


def _stake(partition: GroupPartition, ends: tuple[int, int]) -> set[int]:
    """The offsets whose positions are needed to know what goes with the next record, up to each of these."""
    known = [end for end in ends if end >= 0]
    return {partition.next_offset, *known, *(_readable_end(partition, end) for end in known)}


def _readable_end(partition: GroupPartition, end: int) -> int:
    """Up to where what goes with the next record can be read with ``read_committed``."""
    return max(partition.next_offset, min(end, partition.last_stable_offset))


def _with_stake(partition: GroupPartition, ends: tuple[int, int], answers: Mapping[Position, Mapping[str, Any]]) -> GroupPartition:
    first, last = (_between(partition, end, answers) for end in ends)
    if last is not None:
        most = min(last[0], partition.lag_offsets) if partition.lag_offsets >= 0 else last[0]
        partition = replace(partition, loss_records=most, loss_bytes=last[1])
    if first is not None:
        # how many offsets after the next record a share group is done with: what it has left is less than what lies there
        done = max(partition.high_watermark - partition.next_offset - partition.lag_offsets, 0) if partition.lag_offsets >= 0 else 0
        least = (max(first[0] - done, 0), 0 if done else first[1])
        partition = replace(partition, loss_records_least=least[0], loss_bytes_least=least[1])
    return partition


def _between(partition: GroupPartition, end: int, answers: Mapping[Position, Mapping[str, Any]]) -> tuple[int, int] | None:
    """The records and bytes from the next record to an offset; None if they are not known."""
    first, stable, last = (
        answers.get((partition.topic, partition.partition, offset))
        for offset in (partition.next_offset, _readable_end(partition, end), end)
    )
    if end < 0 or first is None or stable is None or last is None or len({each["edition"] for each in (first, stable, last)}) > 1:
        return None
    if partition.reads_uncommitted:
        readable = stable["data"] - first["data"]
    else:
        readable = (stable["data"] - stable["aborted"]) - (first["data"] - first["aborted"])
    undecided = last["data"] - stable["data"]  # of transactions that are open there: it would be lost, too
    return max(readable + undecided, 0), max(last["bytes"] - first["bytes"], 0)


def _request(partition: GroupPartition) -> BatchRequest:
    offset = partition.next_offset if partition.next_offset >= 0 else max(partition.committed, partition.log_start)
    return BatchRequest(
        broker=partition.broker, topic=partition.topic, topic_id=partition.topic_id, partition=partition.partition, offset=offset
    )
