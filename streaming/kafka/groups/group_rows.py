"""The rows about consumer groups, which go from an agent to the job: committed offsets, pending commits, groups, which are values, too.

Units: offsets are Kafka's own, times are Unix milliseconds, -1 means "none".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.common.column_types import Flag, Int, Long, Text, columns_of
from streaming.kafka.groups.offset_moves import OffsetMove

Texts = Annotated[tuple[str, ...], pa.list_(pa.string())]
Longs = Annotated[tuple[int, ...], pa.list_(pa.int64())]
Ranges = Annotated[tuple[int, ...] | None, pa.list_(pa.int64())]
Moves = Annotated[tuple[OffsetMove, ...] | None, pa.list_(pa.struct(columns_of(OffsetMove)))]

REMOVED = -1
"""Used instead of a committed offset, or of a number of members: the coordinator has deleted it."""

NOT_UNDERSTOOD = -2
"""Used instead of a committed offset: its record is damaged, or of a later version."""

NOT_REPLICATED = -3
"""Used instead of a committed offset, or of a number of members, of which only what is above the high watermark is known. Never sent."""


def group_facts(groups: pa.RecordBatch) -> list[GroupFacts]:
    """The rows of `GROUPS`."""
    columns = [_moves(groups[name]) if name == "moves" else _values(groups[name]) for name in GROUPS.names]
    return [GroupFacts(**dict(zip(GROUPS.names, row, strict=True))) for row in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupColumns:
    """What is known of a group by its own records and those of its members, with short names."""

    type: Text  # Classic, Consumer, Share, Streams: the words of kafka-groups.sh
    protocol: Text  # as kafka-groups.sh: consumer, share, streams, connect, or what a classic group has
    state: Text  # as `GroupState`
    members: Int  # REMOVED: the group is deleted
    epoch: Int  # of a classic group its generation
    state_ms: Long = -1  # since when the group is in its state; of the newer protocols only of an empty one
    clients: Texts = ()  # client ids of its first members
    hosts: Texts = ()
    topics: Texts = ()  # that it subscribes to, where that is stored
    assigned: Texts = ()  # the partitions of its members, as `assignments.packed`

    def facts(self, group: str, coordinator: int, effective_offset: int) -> GroupFacts:
        """It as a row, of which nothing else is known."""
        values = {name: getattr(self, name) for name in GroupColumns.__slots__}
        return GroupFacts(group=group, coordinator=coordinator, effective_offset=effective_offset, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts(GroupColumns):
    """A group."""

    group: Text
    coordinator: Int
    effective_offset: Long
    last_topics: Texts = ()  # of one without members, those that its last members subscribed to, where that is on disk
    interval_ms: Long = -1  # the usual one between two of its commits
    moves: Moves = None  # of its committed offsets within a day, in the order of the log; None: not known
    raised: Long = -1  # its generation or epoch without a sign: how often it has rebalanced; none of a group without records of its own
    raised_by_metadata: Long = -1  # how many of these are known to be so, of the records that are there
    raised_unfinished: Long = -1
    rebalance_ms: Long = -1  # when it last rebalanced
    rebalance_minutes: Longs = ()  # as `RebalanceLog.minutes`, one after the other
    rebalances: Annotated[bytes, pa.binary()] = b""  # its last ones, and whom they name: as `packed_rebalances`
    rebalance_clients: Texts = ()
    rebalance_hosts: Texts = ()

    @property
    def removed(self) -> bool:
        """Whether the group is deleted."""
        return self.members == REMOVED


def _moves(column: pa.Array) -> Sequence[tuple[OffsetMove, ...] | None]:
    """The moves of each group; None where they are not known."""
    return [None if moves is None else tuple(OffsetMove(**move) for move in moves) for moves in column.to_pylist()]


def _values(column: pa.Array) -> Sequence[Any]:
    """The values of a column; of lists tuples, of a list or bytes that are not known empty ones."""
    if pa.types.is_list(column.type):
        values, ends = (
            column.flatten().to_pylist(),
            np.cumsum(pc.fill_null(column.value_lengths(), 0).to_numpy(zero_copy_only=False)).tolist(),
        )
        return [tuple(values[begin:end]) for begin, end in pairwise([0, *ends])]
    found: list[Any] = (pc.fill_null(column, b"") if pa.types.is_binary(column.type) else column).to_pylist()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """What counts of a group, topic and partition."""

    group: Text
    topic: Text
    topic_id: Text  # "" before version 4 of the record
    partition: Int
    coordinator: Int  # the partition of the coordinator's log
    offset: Long  # the next one that the group reads; REMOVED, or NOT_UNDERSTOOD
    commit_ms: Long
    expire_ms: Long = -1  # only in version 1 of the record
    record_offset: Long  # of the record in the coordinator's log
    effective_offset: Long  # of the record that made it count: its own, or the COMMIT marker of its transaction
    share: Flag = False  # the start offset of a share group
    delivered: Long = 0  # of a share group: how many offsets after that one it is done with
    done: Ranges = None  # which ones: the first and the last of each range, ascending; null of other groups
    leader_epoch: Long = -1  # of the record before the offset, as its consumer knew it
    former_ms: Long = -1  # when a commit of this partition was made that was deleted since, or of another topic of that name
    resumed: Long = -1  # the offset of both that one and the first one since, where they are the same
    moved_ms: Long = -1  # when this offset was first committed, after another one, as far as that is on disk
    presence: Long = 0  # who was in the group when it was committed: a `GroupPresence`


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCommit:
    """An offset that was committed in a transaction which is open."""

    group: Text
    topic: Text
    topic_id: Text
    partition: Int
    coordinator: Int
    producer_id: Long
    offset: Long
    record_offset: Long
    commit_ms: Long = -1  # by the coordinator's clock


COMMITS, PENDING, GROUPS = pa.schema(columns_of(CommittedOffset)), pa.schema(columns_of(PendingCommit)), pa.schema(columns_of(GroupFacts))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupChanges:
    """What changed in one coordinator's log since a version that the reader has.

    ``topic``: ``__consumer_offsets`` or ``__share_group_state``; ``coordinator``: its partition, on ``broker``. ``edition`` is different
    whenever the log was read from its beginning again. ``whole``: these are all rows, and what was known before is out of date; so it is of
    another edition, and for a reader that was too far behind. ``upto``: the offset up to which it is read. ``pending`` are always all of
    them. ``unreadable``: records that were not understood since the beginning. ``omitted``: the number of groups beyond the limit.
    """

    broker: int
    topic: str
    topic_id: str
    coordinator: int
    edition: str
    version: int
    whole: bool
    upto: int
    commits: pa.RecordBatch
    pending: pa.RecordBatch
    groups: pa.RecordBatch
    unreadable: int = 0
    omitted: int = 0


def batch_of_rows(schema: pa.Schema, rows: Sequence[CommittedOffset | PendingCommit | GroupFacts]) -> pa.RecordBatch:
    """Rows of the class that the schema is of."""
    columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in rows] for name in schema.names}
    if "moves" in columns:
        columns["moves"] = [None if moves is None else list(map(_spelled, moves)) for moves in columns["moves"]]
    return batch_of(schema, **columns)


def _spelled(move: OffsetMove) -> dict[str, object]:
    return {name: getattr(move, name) for name in OffsetMove.__slots__}


def batch_of(schema: pa.Schema, **columns: object) -> pa.RecordBatch:
    """Rows of a schema by their columns; without columns none."""
    return pa.RecordBatch.from_arrays([pa.array(columns.get(field.name, ()), field.type) for field in schema], schema=schema)


def pending_commits(pending: pa.RecordBatch) -> tuple[PendingCommit, ...]:
    """The rows of `PENDING`."""
    return tuple(PendingCommit(**row) for row in pending.to_pylist())
