"""One consumer group in detail, with what only its agents know: the next batch of each partition, what is at stake, who holds it up."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from streaming.api.group_pages import group_detail
from streaming.api.group_waits import with_transactions
from streaming.errors import AgentError
from streaming.job.group_calls import Calls
from streaming.metrics.group_losses import leading_items, losses_of, with_limits
from streaming.metrics.group_snapshot import GroupBoard
from streaming.metrics.table import Table
from streaming.metrics.view import View, view
from streaming.protocol.group_json import GroupDetail, GroupPartition, NextBatch
from streaming.protocol.group_messages import POSITIONS_ASKED, BatchCheck, BatchRequest

log = logging.getLogger(__name__)

MOST_LOOKED_AT = 500
"""So many partitions of an answer are looked at in their logs, the first of those with unread records."""

MOST_CHECKED = 20
"""The next batches of so many partitions are checked, of those that have stopped, are damaged or have a large batch before them."""

SECONDS = 5.0
"""How long an answer waits for agents."""

LARGE_BYTES = 1 << 20
"""A batch that is larger may be too large for its consumers: `max.partition.fetch.bytes` is a MiB by default."""

_KNOWN = "KNOWN"
_DAMAGED = "damaged"

TopicPartition = tuple[str, int]


class Agent(Protocol):
    """The calls of an agent's client that an answer needs."""

    def positions(self, asked: pa.Table) -> pa.Table:
        """See `streaming.client.agent_client.AgentClient.positions`."""

    def batch(self, request: BatchRequest) -> BatchCheck:
        """See `streaming.client.agent_client.AgentClient.batch`."""


class GroupDetails:
    """Makes answers, from any thread; none waits long for an agent.

    Args:
        server: where clients reach the cluster, HOST:PORT, "" if that is not known.
        redacted: names of groups and transactional ids are not Kafka's own.
    """

    def __init__(
        self,
        table: Table,
        board: GroupBoard,
        agents: Callable[[], Mapping[str, Agent]],
        clock: Callable[[], float],
        *,
        server: str = "",
        redacted: bool,
    ) -> None:
        self._table = table
        self._board = board
        self._agents = agents
        self._clock = clock
        self._server = server
        self._redacted = redacted

    def of(self, name: str) -> GroupDetail | None:
        """The group with this name; None if there is none, or if nothing is known of groups."""
        now = self._clock()
        groups = self._board.latest(round(now * 1000))
        detail = None if groups is None else group_detail(groups, name)
        if groups is None or detail is None:
            return None
        snapshot = self._table.snapshot(now)
        shown = view(replace(snapshot, context=replace(snapshot.context, deletable=None)))
        logs = list(zip(groups.logs.topics, groups.logs.partition.tolist(), strict=True))  # twice, if commits name it by name and by id
        agents = dict(zip(logs, groups.logs.agents, strict=True))
        judged = with_transactions(detail.partitions, shown, snapshot.topic_names)
        growth = dict(zip(logs, groups.byte_rate.tolist(), strict=True))
        looked_at = self._looked_at(judged, agents, shown, groups.at_ms, growth)
        return replace(
            detail,
            partitions=self._checked(self._with_lost(looked_at, agents), agents),
            server=self._server,
            redacted=self._redacted,
        )

    def _looked_at(
        self,
        partitions: Sequence[GroupPartition],
        agents: Mapping[TopicPartition, str],
        shown: View,
        now_ms: int,
        growth: Mapping[TopicPartition, float],
    ) -> list[GroupPartition]:
        """The partitions with their next batches, their limits, and what retention will delete with the next record."""
        items = leading_items(shown)
        some = [each for each in partitions if each.next_offset >= 0 and _log(each) in items][:MOST_LOOKED_AT]
        if not some:
            return list(partitions)
        of = np.array([items[_log(each)] for each in some], np.int64)
        rates = np.full(len(shown.observed.names), -1.0)
        rates[of] = [growth[_log(each)] for each in some]
        losses = losses_of(shown.observed, shown.kept, of, np.array([each.next_offset for each in some], np.int64), now_ms, rates)
        ends = [min(end, each.high_watermark) for end, each in zip(losses.end_offset.tolist(), some, strict=True)]
        answers = self._positions([(each, _offsets(each, end)) for each, end in zip(some, ends, strict=True)], agents)
        found = {
            _log(each): _with_stake(with_limits(_with_next(each, answers), shown.kept, item, by_size=by_size), end, answers)
            for each, item, end, by_size in zip(some, of.tolist(), ends, losses.by_size.tolist(), strict=True)
        }
        return [found.get(_log(each), each) for each in partitions]

    def _with_lost(self, partitions: Sequence[GroupPartition], agents: Mapping[TopicPartition, str]) -> list[GroupPartition]:
        """The partitions; those with offsets below the log start with the records there, as far as these are on disk still."""
        some = [each for each in partitions if each.lost_offsets > 0 and each.log_start >= 0][:MOST_LOOKED_AT]
        answers = self._positions([(each, {each.committed, each.log_start}) for each in some], agents) if some else {}
        return [_with_lost(each, answers) if each.lost_offsets > 0 else each for each in partitions]

    def _positions(
        self, wanted: Sequence[tuple[GroupPartition, Collection[int]]], agents: Mapping[TopicPartition, str]
    ) -> dict[tuple[str, int, int], dict[str, Any]]:
        """The positions that are needed, by topic, partition and offset; those of agents that do not answer are left out."""
        rows: dict[str, list[dict[str, Any]]] = {}
        for each, offsets in wanted:
            log = {"broker": each.broker, "topic": each.topic, "topic_id": each.topic_id, "partition": each.partition}
            rows.setdefault(agents[_log(each)], []).extend(log | {"offset": offset, "upto": each.high_watermark} for offset in offsets)
        clients = self._agents()
        asked = {
            agent: partial(clients[agent].positions, pa.Table.from_pylist(some, POSITIONS_ASKED))
            for agent, some in rows.items()
            if agent in clients
        }
        answers: Calls[pa.Table] = Calls("details")
        found, errors = answers.call(asked, SECONDS)
        answers.close()
        _log_errors(errors)
        return {
            (row["topic"], row["partition"], row["offset"]): row
            for table in found.values()
            for row in table.to_pylist()
            if row["state"].upper() == _KNOWN
        }

    def _checked(self, partitions: Sequence[GroupPartition], agents: Mapping[TopicPartition, str]) -> list[GroupPartition]:
        """The partitions; those that may have stopped because of their next batch, with a check of it."""
        suspects = [each for each in partitions if _is_suspect(each)][:MOST_CHECKED]
        clients = self._agents()
        asked = {
            f"{each.topic}-{each.partition}": partial(clients[agents[_log(each)]].batch, _request(each))
            for each in suspects
            if agents[_log(each)] in clients
        }
        calls: Calls[BatchCheck] = Calls("batches")
        found, errors = calls.call(asked, SECONDS)
        calls.close()
        _log_errors(errors)
        batches = {name: _next_batch(check) for name, check in found.items()}
        return [replace(each, batch=batches.get(f"{each.topic}-{each.partition}", each.batch)) for each in partitions]


def _log(of: GroupPartition) -> TopicPartition:
    return of.topic, of.partition


def _with_next(of: GroupPartition, answers: Mapping[tuple[str, int, int], Mapping[str, Any]]) -> GroupPartition:
    found = answers.get((of.topic, of.partition, of.next_offset))
    if found is None:
        return of
    return replace(
        of,
        next_batch_bytes=found["next_batch_bytes"],
        next_segment=found["next_segment"],
        next_position=found["next_position"],
    )


def _with_lost(of: GroupPartition, answers: Mapping[tuple[str, int, int], Mapping[str, Any]]) -> GroupPartition:
    first, last = (answers.get((of.topic, of.partition, offset)) for offset in (of.committed, of.log_start))
    if first is None or last is None or first["edition"] != last["edition"]:
        return of
    return replace(of, lost_records=max((last["data"] - last["aborted"]) - (first["data"] - first["aborted"]), 0))


def _offsets(of: GroupPartition, end: int) -> set[int]:
    """The offsets whose positions are needed of the next record, and of what is deleted with it, up to ``end``, -1 for nothing."""
    return {of.next_offset, *((end, _readable_end(of, end)) if end >= 0 else ())}


def _readable_end(of: GroupPartition, end: int) -> int:
    """Up to where what goes with the next record can be read with ``read_committed``."""
    return max(of.next_offset, min(end, of.last_stable_offset))


def _with_stake(of: GroupPartition, end: int, answers: Mapping[tuple[str, int, int], Mapping[str, Any]]) -> GroupPartition:
    """The partition with the records and bytes from the next record on that are deleted with it: up to ``end``, -1 if none are."""
    if end < 0:
        return of
    first, stable, last = (answers.get((of.topic, of.partition, offset)) for offset in (of.next_offset, _readable_end(of, end), end))
    if first is None or stable is None or last is None or len({each["edition"] for each in (first, stable, last)}) > 1:
        return of
    readable = (stable["data"] - stable["aborted"]) - (first["data"] - first["aborted"])
    undecided = last["data"] - stable["data"]  # of transactions that are open there: it would be lost, too
    return replace(of, loss_records=max(readable + undecided, 0), loss_bytes=max(last["bytes"] - first["bytes"], 0))


def _is_suspect(of: GroupPartition) -> bool:
    return of.unknown == _DAMAGED or of.next_batch_bytes > LARGE_BYTES or of.stopped_since_ms >= 0


def _request(of: GroupPartition) -> BatchRequest:
    offset = of.next_offset if of.next_offset >= 0 else max(of.committed, of.log_start)
    return BatchRequest(broker=of.broker, topic=of.topic, topic_id=of.topic_id, partition=of.partition, offset=offset)


def _next_batch(check: BatchCheck) -> NextBatch:
    return NextBatch(
        sound=check.sound,
        error=check.error,
        size=check.size,
        codec=check.codec,
        records=check.records,
        producer_id=check.producer_id,
        position=check.position,
        segment=check.segment,
        last_offset=check.last_offset,
    )


def _log_errors(errors: Mapping[str, AgentError]) -> None:
    for name, error in errors.items():
        log.info("a consumer group is shown without what an agent knows", extra={"of": name, "error": str(error)})
