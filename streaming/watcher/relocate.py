"""Find the place of a log again when the file it stood in is not the one to read on in: rolled, compacted, deleted, truncated, moved.

What is in the open file is read to its end before any of this is asked.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from streaming.disk.logdirs import Partition, read_topic_id
from streaming.disk.segments import Identity, OpenSegment, Segment, deleted_segments, list_segments
from streaming.kafka.layout import PREFIX_BYTES
from streaming.kafka.names import FileKind, FileStage, segment_file_name
from streaming.kafka.walk import Bytes
from streaming.rows import Kind
from streaming.watcher.carrying import carry_over
from streaming.watcher.events import Event, Place
from streaming.watcher.locate import beginning, find_offset
from streaming.watcher.producers import KnownProducers
from streaming.watcher.same_log import has_files_of
from streaming.watcher.tail import Tail, moved
from streaming.watcher.truncation import epoch_below, holds_anchor, rewind

log = logging.getLogger(__name__)


def list_again(tail: Tail) -> tuple[Segment, ...]:
    """The segments of the tail's directory, seen twice alike: a listing while files are renamed may lack one.

    Raises:
        OSError: the directory is gone, cannot be read, or holds another topic by now.
    """
    segments, before = list_segments(tail.partition.path), None
    while before is None or [segment.identity for segment in segments] != [segment.identity for segment in before]:
        segments, before = list_segments(tail.partition.path), segments
    topic_id = read_topic_id(tail.partition.path)
    is_same = topic_id == tail.place.log.topic_id or (topic_id == "" and has_files_of(tail, segments))
    if not segments or not is_same:
        raise FileNotFoundError(f"{tail.path} does not hold this log any more")
    return segments


def resume(
    partition: Partition, segments: Sequence[Segment], place: Place, producers: KnownProducers, buffer: Bytes
) -> tuple[Tail, list[Event]]:
    """A tail at a place that an earlier process kept, or that stood in another log dir, and what must be told about the time between.

    Raises:
        OSError: a segment cannot be read.
    """
    tail = Tail(partition, place, segments, producers)
    if place.stopped:
        return tail, []  # whether it can be read on is looked at with every rescan
    same = next((segment for segment in segments if tail.is_at(segment)), None)
    if same is None:
        return tail, relocate(tail, segments, buffer)
    if same.size >= place.position and holds_anchor(tail.open(), place):
        return tail, []
    return tail, [set_back(tail, segments, buffer)]


def follow(tail: Tail, buffer: Bytes) -> list[Event] | None:
    """The open file has been read to its end and an earlier listing knows later ones: go on where the log goes on.

    Returns:
        What must be told, or None if the file ends inside a batch although the log goes on behind it.

    Raises:
        OSError: the directory or a segment cannot be read.
    """
    segments, place = list_again(tail), tail.place
    if not any(tail.is_at(segment) for segment in segments):
        return relocate(tail, segments, buffer)
    later = [segment for segment in segments if segment.base_offset > place.segment]
    if not later:
        tail.settle(segments)  # it is the last one after all
        return []
    if later[0].base_offset < place.next_offset:  # compaction is at work, or the log was cut off and rolled again
        return relocate(tail, segments, buffer)
    if any(tail.open().read(place.position, PREFIX_BYTES)):
        return None
    tail.close()
    tail.settle(segments)
    tail.place = replace(moved(place, beginning(later[0])), log_epoch=place.log_epoch)
    return []


def relocate(tail: Tail, segments: Sequence[Segment], buffer: Bytes) -> list[Event]:
    """Find the offset of the place among the segments that are there now.

    Raises:
        OSError: a segment cannot be read.
    """
    place = tail.place
    if segments[0].base_offset > place.next_offset or epoch_below(tail) is not None:
        return [set_back(tail, segments, buffer)]
    spot = find_offset(segments, place.next_offset, buffer)
    if spot.last and spot.next_offset < place.next_offset:
        return [rewind(tail, segments, buffer)]
    tail.close()
    tail.settle(segments)
    # an offset gap before the next batch is compaction's: what was read stays read
    tail.place = replace(moved(place, spot), next_offset=place.next_offset, log_epoch=max(place.log_epoch, spot.log_epoch))
    return []


def set_back(tail: Tail, segments: Sequence[Segment], buffer: Bytes) -> Event:
    """What was read of the log is not all there any more: go on behind what is.

    Args:
        segments: a listing of now.

    Raises:
        OSError: a segment cannot be read.
    """
    return rewind(tail, segments, buffer) if segments[0].base_offset <= tail.place.next_offset else _skip_to(tail, segments, buffer)


def _skip_to(tail: Tail, segments: Sequence[Segment], buffer: Bytes) -> Event:
    """Go on at the first segment: what lay before it was deleted unread, or was never there.

    A follower of whose next offsets its leader has none any more drops all that it holds and begins at the leader's start
    (`UnifiedLog.truncateFullyAndStartAt`): it never held the offsets between.
    """
    before, first = tail.place, segments[0]
    lost = _bytes_deleted(tail, first.base_offset)
    if lost is None:
        lost = tail.bytes_left_unread(before=first.base_offset) or _bytes_by_density(before, segments, buffer)
    log.log(
        logging.WARNING if lost else logging.INFO,
        "segments were deleted before they were read" if lost else "log begins anew further on, and all that it held was read",
        extra={"log": str(before.log), "path": tail.path, "offset": before.next_offset, "next_offset": first.base_offset, "bytes": lost},
    )
    tail.close()
    tail.settle(segments)
    tail.place = replace(moved(before, beginning(first)), frontier=max(before.frontier, first.base_offset))
    return tail.event(
        Kind.SKIPPED,
        reason="deleted",
        base_offset=before.next_offset,
        next_offset=first.base_offset,
        end_position=0,
        bytes=lost,
        transactions=carry_over(tail),
    )


def _bytes_deleted(tail: Tail, first: int) -> int | None:
    """How many bytes of the segments before offset ``first`` were deleted unread, None where nobody can tell any more.

    Kafka renames what it deletes, and unlinks it ``file.delete.delay.ms`` later. So while the file of the place is there under its new
    name, everything that was deleted after it is there too: nothing can have come and gone unseen.
    """
    place, deleted = tail.place, deleted_segments(tail.partition.path)
    identity, size = deleted.get(place.segment, (None, 0))
    if identity != Identity(place.device, place.inode):
        return None
    path = tail.partition.path / f"{segment_file_name(place.segment, FileKind.LOG)}.{FileStage.DELETED}"
    try:
        file = OpenSegment(path, place.segment)
    except FileNotFoundError:  # its time is over
        return None
    try:
        ends = not any(file.read(place.position, PREFIX_BYTES))  # or goes on with the zeros of a preallocated file
    finally:
        file.close()
    later = sum(size for base_offset, (_, size) in deleted.items() if place.segment < base_offset < first)
    return later + (0 if ends else size - place.position)


def _bytes_by_density(place: Place, segments: Sequence[Segment], buffer: Bytes) -> int:
    """How many bytes the offsets before the first segment took, judged by what is left of the log, or by what was read of it.

    At least 1: a loss of which nothing is known is no silent one.
    """
    first, end = segments[0].base_offset, find_offset(segments, None, buffer)
    held, offsets = sum(segment.size for segment in segments[:-1]) + end.position, end.next_offset - first
    if not held:
        held, offsets = place.position, place.next_offset - place.segment
    return max(1, (first - place.next_offset) * held // max(1, offsets))
