"""Take up a log again where an earlier process left it."""

from collections.abc import Sequence
from dataclasses import replace

from streaming.disk.logdirs import Partition
from streaming.disk.segments import Segment
from streaming.kafka.walk import Bytes
from streaming.rows import Kind
from streaming.watcher.events import Event, Place
from streaming.watcher.locate import Spot, end_spot, find_offset
from streaming.watcher.tail import Tail, moved
from streaming.watcher.truncation import holds_anchor, rewind


def resume(partition: Partition, segments: Sequence[Segment], place: Place, buffer: Bytes) -> tuple[Tail, list[Event]]:
    """A tail at the place that was kept, and what must be told about the time between.

    The files may be others by now: compacted, copied to another disk, deleted from the front, truncated.

    Raises:
        OSError: a segment cannot be read.
    """
    tail = Tail(partition, place, segments)
    if any(tail.is_at(segment) and segment.size >= place.position for segment in segments):
        if holds_anchor(tail.open(), place):
            return tail, []
        return tail, [rewind(tail, buffer)]
    if segments[0].base_offset > place.next_offset:
        return tail, [skip_to(tail, segments[0], lost_bytes(place, (), segments))]
    spot = find_offset(segments, place.next_offset, buffer)
    if spot.next_offset < place.next_offset and _is_end(spot, segments, buffer):
        return tail, [rewind(tail, buffer)]
    # an offset gap before the next batch is compaction's: what was read stays read
    tail.place = replace(moved(place, spot), next_offset=place.next_offset)
    return tail, []


def _is_end(spot: Spot, segments: Sequence[Segment], buffer: Bytes) -> bool:
    end = end_spot(segments, buffer)
    return (end.segment.base_offset, end.position) <= (spot.segment.base_offset, spot.position)


def skip_to(tail: Tail, segment: Segment, lost: int) -> Event:
    """Go on at the beginning of ``segment``: what lay before it was deleted unread."""
    before = tail.place
    tail.close()
    tail.place = replace(
        moved(before, Spot(segment, 0, segment.base_offset, -1, b"", 0)), frontier=max(before.frontier, segment.base_offset)
    )
    return tail.event(
        Kind.SKIPPED, reason="deleted", base_offset=before.next_offset, next_offset=segment.base_offset, end_position=0, bytes=lost
    )


def lost_bytes(place: Place, listed: Sequence[Segment], segments: Sequence[Segment]) -> int:
    """How many unread bytes of the log went with its first segments: by the sizes that were seen, else by the mean size of an offset.

    Args:
        listed: the segments as they were known before.
        segments: the segments that are left.
    """
    gone = [segment for segment in listed if place.segment <= segment.base_offset < segments[0].base_offset]
    if gone:
        return max(0, sum(segment.size for segment in gone) - (place.position if gone[0].base_offset == place.segment else 0))
    offset_count = segments[-1].base_offset - segments[0].base_offset
    held = sum(segment.size for segment in segments[:-1])
    missing = segments[0].base_offset - place.next_offset
    return missing * held // offset_count if offset_count else 0
