"""Cursors: of a log that is new, at another boundary, after a range that was read, where it is read on; whether one still fits its file."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from streaming.broker.disk.locate import BatchBoundary
from streaming.broker.disk.logdirs import Partition
from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.broker.journal.cursor import TIMES_UNKNOWN, Cursor
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind
from streaming.kafka.formats.checkpoint_files import EpochEntry
from streaming.kafka.scan.pieces import Scanned
from streaming.kafka.scan.producer_states import Producers
from streaming.kafka.scan.sums import Sums

MOST_EPOCHS = 64
"""How many of the latest epochs of a log are remembered."""

_ENTRY = struct.Struct("<iq")

EVERYTHING = 2**63 - 1
"""A frontier with the meaning that any offset may have been published before."""

BROUGHT_ALONG = EVERYTHING - 1
"""A frontier with the meaning that any offset may have been published by another agent, and none by this one."""


def cursor_at(log: LogKey, boundary: BatchBoundary, segments: Sequence[Segment], frontier: int) -> Cursor:
    """The cursor of a log whose reading begins at ``boundary``; its first backlog reaches to the end of what is listed now."""
    return Cursor(
        log=log,
        segment=boundary.segment.base_offset,
        device=boundary.segment.identity.device,
        inode=boundary.segment.identity.inode,
        position=boundary.position,
        next_offset=boundary.next_offset,
        log_epoch=boundary.log_epoch,
        anchor=boundary.anchor,
        anchor_position=boundary.anchor_position,
        frontier=max(frontier, boundary.next_offset),
        stopped="",
        skipped=0,
        backlog_segment=segments[-1].base_offset,
        backlog_position=segments[-1].size,
        **_times_at(boundary),
    )


def _times_at(boundary: BatchBoundary) -> dict[str, Any]:
    time = TIMES_UNKNOWN if boundary.position else -1
    return {"first_timestamp": time, "largest_timestamp": time}


def pack(entries: Iterable[EpochEntry]) -> bytes:
    """Epochs with the first offset that was read of each, ascending, as a cursor stores them."""
    packed = b"".join(_ENTRY.pack(entry.epoch, entry.start_offset) for entry in entries)
    return packed[-MOST_EPOCHS * _ENTRY.size :]


def unpack(packed: bytes) -> list[EpochEntry]:
    """The same as entries."""
    return [EpochEntry(epoch, start) for epoch, start in _ENTRY.iter_unpack(packed)]


def parted_at(read: Sequence[EpochEntry], stored: Sequence[EpochEntry], next_offset: int) -> int | None:
    """The first offset below ``next_offset`` where the stored epoch is not the one that was read, None if there is none.

    Args:
        read: epochs with the first offset that was read of each, at least one. Compaction may have removed offsets before it.
        stored: the log's ``leader-epoch-checkpoint``.
    """
    if not stored:
        return None
    common = {entry.epoch for entry in read} & {entry.epoch for entry in stored}
    first = stored[0]
    if common:
        last = max(common)
        later = [entry.start_offset for entry in (*read, *stored) if entry.epoch > last]
    else:  # the first epochs that were read may have been deleted at the beginning of the log; the log may begin before the reading
        later = [entry.start_offset for entry in read if entry.epoch > first.epoch] + [first.start_offset] * (read[0].epoch < first.epoch)
    parted = min(later, default=next_offset)
    return parted if parted < next_offset else None


def log_id(partition: Partition) -> LogKey:
    """The log that a directory contains."""
    return LogKey(partition.log_dir.broker, partition.topic, partition.partition, partition.topic_id)


def moved(cursor: Cursor, boundary: BatchBoundary) -> Cursor:
    """The cursor of the same log at another boundary."""
    read = cursor.next_offset - cursor.segment
    return cursor._replace(
        offset_bytes=cursor.position // read if read > 0 and cursor.position else cursor.offset_bytes,
        segment=boundary.segment.base_offset,
        device=boundary.segment.identity.device,
        inode=boundary.segment.identity.inode,
        position=boundary.position,
        next_offset=boundary.next_offset,
        log_epoch=boundary.log_epoch if boundary.anchor else cursor.log_epoch,
        anchor=boundary.anchor,
        anchor_position=boundary.anchor_position,
        stopped="",
        skipped=0,
        **_times_at(boundary),
    )


def advanced(before: Cursor, start: int, scanned: Scanned, sums: Sums) -> Cursor:
    """The cursor after a range that was scanned from ``start`` of a buffer.

    The leader epochs that were read of a log, and the offset where the stored epochs differ from them. A leader epoch has one leader,
    and so one beginning: two logs that both contain a part of it are equal before it (KIP-101). The batches that were read of epochs
    after the last common one are gone, whether higher or lower epochs have replaced them.
    """
    first = before.first_timestamp
    if before.largest_timestamp != TIMES_UNKNOWN and before.position == 0:
        first = max(int(scanned.batches.max_timestamp[0]), -1)
    return before._replace(
        position=before.position + scanned.end - start,
        next_offset=sums.next_offset,
        anchor=scanned.anchor,
        anchor_position=before.position + scanned.anchor_position - start,
        frontier=max(before.frontier, sums.next_offset),
        first_timestamp=first,
        largest_timestamp=_largest(before, sums.max_timestamp),
        log_epoch=max(before.log_epoch, sums.leader_epoch),
        epochs=with_epoch(before.epochs, sums.leader_epoch, sums.base_offset),
    )


def _largest(before: Cursor, newest: int) -> int:
    """The largest timestamp of a segment after batches the newest of whose timestamps is ``newest``."""
    largest = before.largest_timestamp
    return largest if largest == TIMES_UNKNOWN else max(largest, newest)


def with_epoch(packed: bytes, epoch: int, base_offset: int) -> bytes:
    """The epochs together with the epoch of batches that are read from ``base_offset`` on (-1: they have none)."""
    last = _ENTRY.unpack_from(packed, len(packed) - _ENTRY.size)[0] if packed else -1
    return packed if epoch <= last else (packed + _ENTRY.pack(epoch, base_offset))[-MOST_EPOCHS * _ENTRY.size :]


def went_on(before: Cursor, size: int, next_offset: int, newest: int, anchor: bytes, anchor_position: int) -> Cursor:
    """The cursor after a range of ``size`` bytes, the newest of whose timestamps is ``newest``.

    It is of the same leader epoch and not the first of its segment, and everything before it was published once.
    """
    return before._replace(
        position=before.position + size,
        next_offset=next_offset,
        anchor=anchor,
        anchor_position=anchor_position,
        frontier=max(before.frontier, next_offset),
        largest_timestamp=_largest(before, newest),
    )


def holds_anchor(file: OpenSegment, cursor: Cursor) -> bool:
    """Whether the last batch read is still at its position."""
    return not cursor.anchor or file.read(cursor.anchor_position, len(cursor.anchor)) == cursor.anchor


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """The transactions that are open at a cursor.

    Where a log is read on, what is open there, and what of it is lost: the values that searches return, and that a tail applies.

    ``transactions``: the open ones, as a column of the event that publishes the cursor; None if they are not known yet. ``producers``:
    those at the cursor; None if a replay has to find both. ``doubts``: how many files were not understood. ``whole``: whether the log was
    understood up to the cursor, None if it was not read.
    """

    transactions: bytes | None
    producers: Producers | None
    doubts: int = 0
    whole: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LossColumns:
    """The columns of a TRUNCATED or SKIPPED event; ``opened``: what is open at the cursor after it."""

    kind: Kind
    opened: Open
    next_offset: int
    bytes: int
    base_offset: int = -1
    end_position: int = -1
    log_epoch: int = -1
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Relocation:
    """A log is read on at ``cursor``, which is in one of ``segments``, after any flaw.

    ``loss``: what has to be published about it, None for nothing. ``parted_by``: the stored leader epochs by which the log was set back,
    None if it was not.
    """

    cursor: Cursor
    segments: tuple[Segment, ...]
    loss: LossColumns | None = None
    parted_by: tuple[EpochEntry, ...] | None = None
