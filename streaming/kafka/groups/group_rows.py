"""The rows about consumer groups, which go from an agent to the job: committed offsets, pending commits, groups, which are values, too.

Units: offsets are Kafka's own, times are Unix milliseconds, -1 means "none".
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.kafka.groups.offset_moves import OffsetMove

_TEXT, _INT, _LONG, _TEXTS = pa.string(), pa.int32(), pa.int64(), pa.list_(pa.string())
_LONGS = pa.list_(_LONG)
_OF_MOVES = {"topic": _TEXT, "topic_id": _TEXT, "partition": _INT, "presence": _INT}
_MOVES = pa.list_(pa.struct([(each.name, _OF_MOVES.get(each.name, _LONG)) for each in fields(OffsetMove)]))

LATER = b"later"
"""Marks a column that agents of earlier versions do not send: then a number is -1, which means "none", and a list is null."""


def _later(name: str, column: pa.DataType = _LONG) -> pa.Field:
    return pa.field(name, column, metadata={LATER: b""})


REMOVED = -1
"""Used instead of a committed offset, or of a number of members: the coordinator has deleted it."""

NOT_UNDERSTOOD = -2
"""Used instead of a committed offset: its record is damaged, or of a later version."""

NOT_REPLICATED = -3
"""Used instead of a committed offset, or of a number of members, of which only what is above the high watermark is known. Never sent."""

COMMITS = pa.schema(
    [
        ("group", _TEXT),
        ("topic", _TEXT),
        ("topic_id", _TEXT),  # "" before version 4 of the record
        ("partition", _INT),
        ("coordinator", _INT),  # the partition of the coordinator's log
        ("offset", _LONG),  # the next one that the group reads; REMOVED, or NOT_UNDERSTOOD
        ("commit_ms", _LONG),
        ("expire_ms", _LONG),  # only in version 1 of the record
        ("record_offset", _LONG),  # of the record in the coordinator's log
        ("effective_offset", _LONG),  # of the record that made it count: its own, or the COMMIT marker of its transaction
        ("share", pa.bool_()),  # the start offset of a share group
        ("delivered", _LONG),  # of a share group: how many offsets after that one it is done with
        _later("done", _LONGS),  # which ones: the first and the last of each range, ascending; null of other groups
        _later("leader_epoch"),  # of the record before the offset, as its consumer knew it
        _later("former_ms"),  # when a commit of this partition was made that was deleted since, or of another topic of that name
    ]
)
"""One row for each group, topic and partition."""

PENDING = pa.schema(
    [
        ("group", _TEXT),
        ("topic", _TEXT),
        ("topic_id", _TEXT),
        ("partition", _INT),
        ("coordinator", _INT),
        ("producer_id", _LONG),
        ("offset", _LONG),
        ("record_offset", _LONG),
        _later("commit_ms"),  # by the coordinator's clock
    ]
)
"""Offsets that were committed in transactions which are open."""

GROUPS = pa.schema(
    [
        ("group", _TEXT),
        ("coordinator", _INT),
        ("effective_offset", _LONG),
        ("type", _TEXT),  # Classic, Consumer, Share, Streams: the words of kafka-groups.sh
        ("protocol", _TEXT),  # as kafka-groups.sh: consumer, share, streams, connect, or what a classic group has
        ("state", _TEXT),  # as `GroupState`
        ("members", _INT),  # REMOVED: the group is deleted
        ("epoch", _INT),  # of a classic group its generation
        ("state_ms", _LONG),  # since when the group is in its state; of the newer protocols only of an empty one
        ("clients", _TEXTS),  # client ids of its first members
        ("hosts", _TEXTS),
        ("topics", _TEXTS),  # that it subscribes to, where that is stored
        _later("interval_ms"),  # the usual one between two of its commits
        _later("assigned", _TEXTS),  # the partitions of its members, as `assignments.packed`; null: not known
        _later("moves", _MOVES),  # of its committed offsets within a day, as `OffsetMove`, in the order of the log; null: not known
        _later("raised"),  # its generation or epoch without a sign: how often it has rebalanced; none of a group without records of its own
        _later("raised_by_metadata"),  # how many of these are known to be so, of the records that are there
        _later("raised_unfinished"),
        _later("rebalance_ms"),  # when it last rebalanced
        _later("rebalance_minutes", _LONGS),  # as `RebalanceLog.minutes`, one after the other
        _later("rebalances", pa.binary()),  # its last ones, and whom they name: as `packed_rebalances`
        _later("rebalance_clients", _TEXTS),
        _later("rebalance_hosts", _TEXTS),
    ]
)
"""One row for each group."""


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


def batch_of(schema: pa.Schema, **columns: object) -> pa.RecordBatch:
    """Rows of a schema by their columns; without columns none."""
    return pa.RecordBatch.from_arrays([pa.array(columns.get(field.name, ()), field.type) for field in schema], schema=schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """A group; columns and units as `GROUPS`. ``moves``: None where they are not known."""

    group: str
    coordinator: int
    effective_offset: int
    type: str
    protocol: str
    state: str
    members: int
    epoch: int
    state_ms: int
    clients: tuple[str, ...]
    hosts: tuple[str, ...]
    topics: tuple[str, ...]
    interval_ms: int = -1
    assigned: tuple[str, ...] = ()
    moves: tuple[OffsetMove, ...] | None = None
    raised: int = -1
    raised_by_metadata: int = -1
    raised_unfinished: int = -1
    rebalance_ms: int = -1
    rebalance_minutes: tuple[int, ...] = ()
    rebalances: bytes = b""
    rebalance_clients: tuple[str, ...] = ()
    rebalance_hosts: tuple[str, ...] = ()

    @property
    def removed(self) -> bool:
        """Whether the group is deleted."""
        return self.members == REMOVED


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCommit:
    """An offset that was committed in a transaction which is open; columns and units as `PENDING`."""

    group: str
    topic: str
    topic_id: str
    partition: int
    coordinator: int
    producer_id: int
    offset: int
    record_offset: int
    commit_ms: int = -1


def group_facts(groups: pa.RecordBatch) -> list[GroupFacts]:
    """The rows of `GROUPS`."""
    columns = [_moves(groups[name]) if name == "moves" else _values(groups[name]) for name in GROUPS.names]
    return [GroupFacts(**dict(zip(GROUPS.names, row, strict=True))) for row in zip(*columns, strict=True)]


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


def pending_commits(pending: pa.RecordBatch) -> tuple[PendingCommit, ...]:
    """The rows of `PENDING`."""
    return tuple(PendingCommit(**row) for row in pending.to_pylist())
