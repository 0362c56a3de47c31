"""A log that was cut off: find how far back, also when it has already grown past the place again.

A follower truncates when the leader changes (`ReplicaFetcherThread`, `UnifiedLog.truncateTo`): at a batch boundary, and what follows carries a later leader
epoch. The size alone cannot show it, so the header of the last batch read (the anchor) is looked at again before anything behind it is believed.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from streaming.disk.segments import OpenSegment, Segment, list_segments, read_leader_epochs
from streaming.kafka.walk import Bytes
from streaming.rows import Kind
from streaming.watcher.events import Event, Place
from streaming.watcher.locate import Spot, find_offset
from streaming.watcher.tail import Tail, moved

log = logging.getLogger(__name__)


def holds_anchor(file: OpenSegment, place: Place) -> bool:
    """Whether the last batch read still stands where it was read."""
    return not place.anchor or file.read(place.anchor_position, len(place.anchor)) == place.anchor


def rewind(tail: Tail, buffer: Bytes) -> Event:
    """Set the tail back to the last batch that the log still shares with what was read, and tell what was cut off.

    Raises:
        OSError: the directory cannot be read.
    """
    before, listed = tail.place, tail.segments
    segments = list_segments(tail.partition.path)
    if not segments:
        raise FileNotFoundError(f"no segment in {tail.path}")
    spot = _shared(tail, segments, buffer)
    cut = _bytes_between(spot, before, listed)
    tail.close()
    tail.segments = segments
    tail.place = replace(moved(before, spot), frontier=min(before.frontier, spot.next_offset))
    log.warning(
        "log truncated",
        extra={"log": str(before.log), "path": str(spot.segment.path), "position": spot.position, "offset": spot.next_offset,
               "was_offset": before.next_offset, "bytes": cut},
    )  # fmt: skip
    return tail.event(Kind.TRUNCATED, segment=spot.segment.base_offset, end_position=spot.position, next_offset=spot.next_offset, bytes=cut)


def _shared(tail: Tail, segments: Sequence[Segment], buffer: Bytes) -> Spot:
    """The end of what the log still has of what was read."""
    place = tail.place
    later = [entry.start_offset for entry in read_leader_epochs(tail.partition.path) if entry.epoch > place.log_epoch]
    limit = min([place.next_offset, *later[:1]])
    spot = find_offset(segments, limit, buffer)
    if later or spot.next_offset < place.next_offset or _anchored(spot, place):
        return spot
    # cut off and grown again without a new epoch to tell where: the batch that was read last is certainly gone
    return find_offset(segments, _first_offset(place), buffer)


def _anchored(spot: Spot, place: Place) -> bool:
    return not place.anchor or spot.anchor == place.anchor


def _first_offset(place: Place) -> int:
    return int.from_bytes(place.anchor[:8], "big") if place.anchor else place.next_offset


def _bytes_between(spot: Spot, place: Place, listed: Sequence[Segment]) -> int:
    if spot.segment.base_offset == place.segment:
        return max(0, place.position - spot.position)
    lost = [segment for segment in listed if spot.segment.base_offset <= segment.base_offset < place.segment]
    return max(0, sum(segment.size for segment in lost) - spot.position) + place.position
