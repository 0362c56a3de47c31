"""Finds where a log was truncated, also when it has already grown past the cursor again.

A follower truncates when the leader changes (`ReplicaFetcherThread`, `UnifiedLog.truncateTo`): at a batch boundary, and the batches that
follow have a later leader epoch. The size alone cannot show it, so the header of the last batch read (the anchor) is read again before
anything after it is believed.
"""

from collections.abc import Sequence

from streaming.broker.disk.locate import BatchBoundary, beginning, find_offset
from streaming.broker.disk.segment_files import Segment, read_leader_epochs
from streaming.broker.watcher.carrying import open_at
from streaming.broker.watcher.cursors import moved
from streaming.broker.watcher.relocation import LossColumns, Relocation
from streaming.broker.watcher.seen_epochs import pack, parted_at, unpack
from streaming.broker.watcher.tail import Tail
from streaming.common.rows import Kind
from streaming.kafka.formats.entry_head import read_base_offset
from streaming.kafka.scan.walk import Bytes


def epoch_below(tail: Tail) -> int | None:
    """The offset before the cursor where a leader epoch begins that is not the one that was read there; None if there is none."""
    cursor, stored = tail.cursor, read_leader_epochs(tail.partition.path)
    if stored and stored == tail.parted_by and cursor.log_epoch <= stored[-1].epoch:
        return None  # these epochs have set the log back already; if the batches contradict them, they would do so for ever
    if cursor.epochs:
        return parted_at(unpack(cursor.epochs), stored, cursor.next_offset)
    if cursor.log_epoch < 0:
        return None
    later = [entry.start_offset for entry in stored if entry.epoch > cursor.log_epoch]
    return later[0] if later and later[0] < cursor.next_offset else None


def epoch_before(tail: Tail, boundary: BatchBoundary) -> int:
    """The leader epoch of the batches before a boundary of the tail's log, -1 if it is not known."""
    if boundary.anchor:
        return boundary.log_epoch
    return max((entry.epoch for entry in read_leader_epochs(tail.partition.path) if entry.start_offset < boundary.next_offset), default=-1)


def rewind(tail: Tail, segments: tuple[Segment, ...], buffer: Bytes) -> Relocation:
    """The way back to the last batch that was read and that the log still has, with the bytes that were cut.

    Args:
        segments: a current listing.

    Raises:
        OSError: a segment cannot be read.
    """
    before = tail.cursor
    boundary = _shared(tail, segments, buffer)
    cut = _bytes_between(boundary, tail)
    # all epochs stored by now count as read: none of them sets the log back once more
    below, stored = epoch_before(tail, boundary), read_leader_epochs(tail.partition.path)
    epoch = max((entry.epoch for entry in stored), default=below)
    epochs = pack(entry for entry in stored or unpack(before.epochs) if entry.start_offset < boundary.next_offset)
    after = moved(before, boundary)._replace(log_epoch=epoch, epochs=epochs, frontier=min(before.frontier, boundary.next_offset))
    loss = LossColumns(
        kind=Kind.TRUNCATED,
        opened=open_at(tail, after, segments),
        end_position=boundary.position,
        next_offset=boundary.next_offset,
        log_epoch=below,
        bytes=cut,
    )
    return Relocation(after, segments, loss, stored)


def _shared(tail: Tail, segments: Sequence[Segment], buffer: Bytes) -> BatchBoundary:
    """The end of the part that was read and that the log still has."""
    if not tail.cursor.log.topic_id and not any(tail.is_at(segment) for segment in segments):
        return beginning(segments[0])  # without topic ids nothing else shows that the topic was deleted and made anew
    cursor, parted = tail.cursor, epoch_below(tail)
    boundary = find_offset(segments, cursor.next_offset if parted is None else parted, buffer)
    if parted is not None or boundary.next_offset < cursor.next_offset or not cursor.anchor or boundary.anchor == cursor.anchor:
        return boundary
    # truncated and grown again, and no new epoch shows where: the batch that was read last is certainly gone
    return find_offset(segments, read_base_offset(cursor.anchor), buffer)


def _bytes_between(boundary: BatchBoundary, tail: Tail) -> int:
    cursor, first = tail.cursor, boundary.segment.base_offset
    if first >= cursor.segment:
        return max(0, cursor.position - boundary.position)
    between = sum(size for base, size in tail.listed.sizes.items() if first <= base < cursor.segment)
    return max(0, between - boundary.position) + cursor.position
