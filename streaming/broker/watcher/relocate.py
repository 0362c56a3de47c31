"""Finds the cursor of a log again when its file is not the one to read on in: rolled, compacted, deleted, truncated, moved.

The open file is read to its end before any of this is called.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from streaming.broker.disk.locate import BatchBoundary, beginning, find_offset
from streaming.broker.disk.logdirs import Partition, read_topic_id
from streaming.broker.disk.segment_files import FileIdentity, OpenSegment, Segment, deleted_segments, list_segments, read_leader_epochs
from streaming.broker.journal.cursor import Cursor
from streaming.broker.journal.known_producers import KnownProducers
from streaming.broker.watcher.cursors import LossColumns, Relocation, holds_anchor, moved, pack, parted_at, unpack
from streaming.broker.watcher.log_listing import ListedSizes, Listing
from streaming.broker.watcher.open_at import open_at
from streaming.broker.watcher.tail import Tail
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.kafka.formats.layout import PREFIX_BYTES, read_base_offset
from streaming.kafka.formats.names import FileKind, FileStage, segment_file_name
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)


def relocate(tail: Tail, segments: tuple[Segment, ...], buffer: Bytes) -> Relocation:
    """Find the offset of the cursor among the segments that are there now. Raises OSError: a segment cannot be read."""
    cursor = tail.cursor
    if segments[0].base_offset > cursor.next_offset or epoch_below(tail) is not None:
        return set_back(tail, segments, buffer)
    boundary = find_offset(segments, cursor.next_offset, buffer)
    if boundary.next_offset < cursor.next_offset and (boundary.last or _begins_below(boundary, cursor.next_offset)):
        return rewind(tail, segments, buffer)
    # compaction makes an offset gap before the next batch: the offset of the cursor stays
    after = moved(cursor, boundary)._replace(next_offset=cursor.next_offset, log_epoch=max(cursor.log_epoch, boundary.log_epoch))
    return Relocation(after, segments)


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


def set_back(tail: Tail, segments: tuple[Segment, ...], buffer: Bytes) -> Relocation:
    """Set the cursor back, because a part of what was read is gone: the log is read on after the part that is still there.

    Args:
        segments: a current listing.

    Raises:
        OSError: a segment cannot be read.
    """
    return rewind(tail, segments, buffer) if segments[0].base_offset <= tail.cursor.next_offset else _skip_to(tail, segments, buffer)


def rewind(tail: Tail, segments: tuple[Segment, ...], buffer: Bytes) -> Relocation:
    """The way back to the last batch that was read and that the log still has, with the bytes that were cut.

    Finds where a log was truncated, also when it has already grown past the cursor again. A follower truncates when the leader
    changes (`ReplicaFetcherThread`, `UnifiedLog.truncateTo`): at a batch boundary, and the batches that follow have a later leader
    epoch. The size alone cannot show it, so the header of the last batch read (the anchor) is read again before anything after it is
    believed.

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
        return beginning(segments[0])  # without topic ids nothing else shows that the topic was deleted and made again
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


def epoch_before(tail: Tail, boundary: BatchBoundary) -> int:
    """The leader epoch of the batches before a boundary of the tail's log, -1 if it is not known."""
    if boundary.anchor:
        return boundary.log_epoch
    return max((entry.epoch for entry in read_leader_epochs(tail.partition.path) if entry.start_offset < boundary.next_offset), default=-1)


def _skip_to(tail: Tail, segments: tuple[Segment, ...], buffer: Bytes) -> Relocation:
    """Go on at the first segment: the offsets before it were deleted unread, or were never there.

    If a leader does not have a follower's next offsets any more, the follower deletes its whole log and begins at the leader's log start
    (`UnifiedLog.truncateFullyAndStartAt`): it never had the offsets between.
    """
    before, first = tail.cursor, segments[0]
    lost = bytes_lost(tail, tail.joined(segments), segments, buffer)
    log.log(
        logging.WARNING if lost else logging.INFO,
        "segments were deleted before they were read" if lost else "log begins anew further on, and all that it held was read",
        extra={"log": str(before.log), "path": tail.path, "offset": before.next_offset, "next_offset": first.base_offset, "bytes": lost},
    )
    after = moved(before, beginning(first))._replace(frontier=max(before.frontier, first.base_offset))
    loss = LossColumns(
        kind=Kind.SKIPPED,
        opened=open_at(tail, after, segments),
        reason="deleted",
        base_offset=before.next_offset,
        next_offset=first.base_offset,
        end_position=0,
        bytes=lost,
    )
    return Relocation(after, segments, loss)


def bytes_lost(tail: Tail, listed: ListedSizes, segments: Sequence[Segment], buffer: Bytes) -> int:
    """The bytes after the cursor that were deleted unread. Of segments that were neither listed nor are there under their deleted names
    it is an estimate, by the mean size of an offset in the others; at least 1, so that a loss of unknown size is published too.

    Args:
        listed: all listings, up to that of the ``segments`` that are there.

    Raises:
        OSError: a segment cannot be read.
    """
    first, last, cursor = segments[0].base_offset, segments[-1], tail.cursor
    listed = listed.with_deleted(_deleted_after(cursor, tail.partition.path, first))
    if not any(end > cursor.next_offset for _, end in listed.gaps):
        return tail.bytes_left_unread(listed, first)
    end = find_offset(segments, None, buffer)
    return max(1, tail.bytes_left_unread(listed, first, (end.position, end.next_offset - last.base_offset)))


def _deleted_after(cursor: Cursor, directory: Path, first: int) -> dict[int, int]:
    """The sizes of the segments before offset ``first`` that were deleted unread and are not unlinked yet, by base offset.

    Kafka renames a file to delete it, and unlinks it ``file.delete.delay.ms`` later. So while one exists under its new name, all files that
    were deleted after it exist too.
    """
    found, before = deleted_segments(directory), None
    while found != before:  # they may be unlinked while they are listed
        found, before = deleted_segments(directory), found
    sizes = {base_offset: size for base_offset, (_, size) in found.items() if cursor.segment < base_offset < first}
    identity, size = found.get(cursor.segment, (None, 0))
    if identity == FileIdentity(cursor.device, cursor.inode):
        path = directory / f"{segment_file_name(cursor.segment, FileKind.LOG)}.{FileStage.DELETED}"
        with suppress(FileNotFoundError):  # it has been unlinked
            with OpenSegment(path, cursor.segment) as file:
                ends = not any(file.read(cursor.position, PREFIX_BYTES))  # or goes on with the zeros of a preallocated file
            sizes[cursor.segment] = cursor.position if ends else size
    return sizes


def _begins_below(boundary: BatchBoundary, offset: int) -> bool:
    """Whether the batch at a boundary begins below an offset that lies in it: no compaction leaves that, so it is written again."""
    with boundary.segment.open() as file:
        prefix = file.read(boundary.position, PREFIX_BYTES)
    return len(prefix) == PREFIX_BYTES and read_base_offset(prefix) < offset


def has_open_file_of(tail: Tail, segments: Sequence[Segment]) -> bool:
    """Whether one of these files is the open one: while it is open, no other file can have its inode. Raises OSError."""
    return tail.file is not None and not tail.file.unlinked() and any(segment.identity == tail.file.identity for segment in segments)


def holds_cursor(directory: Path, cursor: Cursor) -> bool:
    """Whether the batch before a cursor is still at its position in the same file. Raises OSError.

    Decides whether a directory contains the log that was read in it before, if its topic id does not show it. A broker writes
    ``partition.metadata`` again when it starts, for a log from before topics had ids, or after an admin has removed the file, as
    people do because of an InconsistentTopicId. The files stay the same, and so does the log.
    """
    for segment in list_segments(directory):
        if segment.identity == FileIdentity(cursor.device, cursor.inode) and segment.base_offset == cursor.segment:
            with segment.open() as file:
                return bool(cursor.anchor) and segment.size >= cursor.position and holds_anchor(file, cursor)
    return False


def resume(
    partition: Partition, segments: tuple[Segment, ...], cursor: Cursor, producers: KnownProducers, buffer: Bytes
) -> tuple[Tail, list[Event]]:
    """A tail at a cursor of an earlier process or of another log dir, and the events to publish about the time between.

    Raises:
        OSError: a segment cannot be read.
    """
    tail = Tail(partition, cursor, Listing(tuple(segments)), producers)
    if cursor.stopped:
        return tail, []  # every rescan checks whether it can be read on
    same = next((segment for segment in segments if tail.is_at(segment)), None)
    if same is None:
        tail.doubt_times()
        return tail, tail.relocate(relocate(tail, segments, buffer))
    if same.size >= cursor.position and holds_anchor(tail.open(), cursor):
        return tail, []
    return tail, tail.relocate(set_back(tail, segments, buffer))


def follow(tail: Tail, buffer: Bytes) -> Relocation | None:
    """Where the log goes on: the open file has been read to its end, and an earlier listing has later files.

    Returns:
        None if the file ends inside a batch although the log goes on after it.

    Raises:
        OSError: the directory or a segment cannot be read.
    """
    segments, cursor = list_again(tail), tail.cursor
    if not any(tail.is_at(segment) for segment in segments):
        return relocate(tail, segments, buffer)
    later = [segment for segment in segments if segment.base_offset > cursor.segment]
    if not later:
        return Relocation(cursor, segments)  # it is the last one after all
    if later[0].base_offset < cursor.next_offset:  # compaction is running, or the log was truncated and rolled again
        return relocate(tail, segments, buffer)
    if any(tail.open().read(cursor.position, PREFIX_BYTES)):
        return None
    return Relocation(moved(cursor, beginning(later[0]))._replace(log_epoch=cursor.log_epoch), segments)


def list_again(tail: Tail) -> tuple[Segment, ...]:
    """The segments of the tail's directory, after two equal listings: a listing while files are renamed may lack one.

    Raises:
        OSError: the directory is gone, cannot be read, or holds another topic by now.
    """
    segments, before = list_segments(tail.partition.path), None
    while before is None or [segment.identity for segment in segments] != [segment.identity for segment in before]:
        segments, before = list_segments(tail.partition.path), segments
    topic_id = read_topic_id(tail.partition.path)
    is_same = topic_id == tail.cursor.log.topic_id or (topic_id == "" and has_files_of(tail, segments))
    if not segments or not is_same:
        raise FileNotFoundError(f"{tail.path} does not hold this log any more")
    return segments


def has_files_of(tail: Tail, segments: Sequence[Segment]) -> bool:
    """Whether one of these files was listed for a log before, and the file of its cursor is not shorter than the part that was read."""
    identities = {segment.identity for segment in tail.segments} | {FileIdentity(tail.cursor.device, tail.cursor.inode)}
    cut_off = any(tail.is_at(segment) and segment.size < tail.cursor.position for segment in segments)
    return not cut_off and any(segment.identity in identities for segment in segments)
