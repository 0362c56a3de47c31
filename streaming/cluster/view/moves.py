"""Reassignments that are under way: how many replicas move, what they still have to copy, and how long that will take.

The newest copy of the metadata log lists the partitions that move. A replica's own log and the leader's log show how far it has come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from streaming.broker.protocol.cluster_messages import Reassignment
from streaming.cluster.view.exported import Observed
from streaming.cluster.view.family import Family, family_of, labels
from streaming.common.definitions import replica_metrics
from streaming.rules.copying import Paces, bytes_behind

MOST_EXPORTED = 1_000
"""The most reassignments that are exported."""

_Items = dict[tuple[str, int, int], int]


def moves_of(reassignments: Sequence[Reassignment], observed: Observed, paces: Paces, now_ms: int) -> tuple[Move, ...]:
    """The reassignments that are under way, in the given order."""
    items = _items(reassignments, observed) if reassignments else {}
    paces.keep((each.topic, each.partition, broker) for each in reassignments for broker in each.adding)
    return tuple(
        Move(
            topic=each.topic,
            partition=each.partition,
            adding=len(each.adding),
            removing=len(each.removing),
            copies=tuple(_copy(each, broker, items, observed, paces, now_ms) for broker in each.adding),
        )
        for each in reassignments
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A partition that gets replicas on more brokers, or loses replicas on some."""

    topic: str
    partition: int
    adding: int
    removing: int
    copies: tuple[Copy, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """What ``broker`` still has to copy: bytes, and how long that takes; -1 not known."""

    broker: int
    remaining_bytes: int
    remaining_ms: int


def _items(reassignments: Iterable[Reassignment], observed: Observed) -> _Items:
    """Indexes of the logs of these partitions' topics in the observed columns."""
    topics = {each.topic for each in reassignments}
    columns = observed.columns
    wanted = np.flatnonzero(np.array([name in topics for name in observed.names], np.bool_)).tolist()
    return {(observed.names[item], int(columns["partition"][item]), int(columns["broker"][item])): item for item in wanted}


def _copy(each: Reassignment, broker: int, items: _Items, observed: Observed, paces: Paces, now_ms: int) -> Copy:
    key = (each.topic, each.partition, broker)
    remaining = _remaining(observed, items.get((each.topic, each.partition, each.leader)), items.get(key))
    if remaining < 0:
        return Copy(broker, -1, -1)
    pace = paces.of(key)
    pace.saw(now_ms, remaining)
    return Copy(broker, remaining, pace.milliseconds_left)


def _remaining(observed: Observed, leader: int | None, copy: int | None) -> int:
    """Bytes that a replica still has to copy, -1 if the leader's log is not known. A replica that is not there yet has to copy all."""
    segments = None if leader is None else observed.carried[leader].segments
    if leader is None or segments is None or observed.replica_offsets["size_bytes"][leader] < 0:
        return -1
    offset = -1 if copy is None else int(observed.columns["log_end_offset"][copy])
    end = int(observed.columns["log_end_offset"][leader])
    return bytes_behind(segments, int(observed.replica_offsets["size_bytes"][leader]), offset, end)


def families(moves: Sequence[Move]) -> Iterator[Family]:
    """One family per metric."""
    where = [(move, labels(topic=move.topic, partition=str(move.partition))) for move in moves[:MOST_EXPORTED]]
    counted = [(f"{at},{labels(change=change)}", getattr(move, change)) for move, at in where for change in ("adding", "removing")]
    yield family_of(replica_metrics.REASSIGNING, [(spelled, count) for spelled, count in counted if count])
    copies = [(f"{at},{labels(broker=str(copy.broker))}", copy) for move, at in where for copy in move.copies]
    known = [(spelled, copy.remaining_bytes) for spelled, copy in copies if copy.remaining_bytes >= 0]
    yield family_of(replica_metrics.REASSIGNMENT_BYTES, known)
    timed = [(spelled, copy.remaining_ms) for spelled, copy in copies if copy.remaining_ms >= 0]
    yield family_of(replica_metrics.REASSIGNMENT_SECONDS, timed)
