"""Cursors: of a log that is new, at another boundary, after a range that was read, and whether one still fits its file."""

from collections.abc import Sequence
from typing import Any

from streaming.broker.disk.locate import BatchBoundary
from streaming.broker.disk.logdirs import Partition
from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.broker.journal.cursor import TIMES_UNKNOWN, Cursor
from streaming.broker.watcher.seen_epochs import with_epoch
from streaming.common.log_key import LogKey
from streaming.kafka.scan.pieces import Scanned
from streaming.kafka.scan.sums import Sums

EVERYTHING = 2**63 - 1
"""A frontier with the meaning that any offset may have been published before."""

BROUGHT_ALONG = EVERYTHING - 1
"""A frontier with the meaning that any offset may have been published by another agent, and none by this one."""


def log_id(partition: Partition) -> LogKey:
    """The log that a directory contains."""
    return LogKey(partition.log_dir.broker, partition.topic, partition.partition, partition.topic_id)


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
    """The cursor after a range that was scanned from ``start`` of a buffer."""
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


def _largest(before: Cursor, newest: int) -> int:
    """The largest timestamp of a segment after batches the newest of whose timestamps is ``newest``."""
    largest = before.largest_timestamp
    return largest if largest == TIMES_UNKNOWN else max(largest, newest)


def holds_anchor(file: OpenSegment, cursor: Cursor) -> bool:
    """Whether the last batch read is still at its position."""
    return not cursor.anchor or file.read(cursor.anchor_position, len(cursor.anchor)) == cursor.anchor


def _times_at(boundary: BatchBoundary) -> dict[str, Any]:
    time = TIMES_UNKNOWN if boundary.position else -1
    return {"first_timestamp": time, "largest_timestamp": time}
