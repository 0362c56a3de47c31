"""A log that was cut off: find how far back, also when it has already grown past the place again.

A follower truncates when the leader changes (`ReplicaFetcherThread`, `UnifiedLog.truncateTo`): at a batch boundary, and what follows
carries a later leader epoch. The size alone cannot show it, so the header of the last batch read (the anchor) is looked at again before
anything behind it is believed.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from streaming.disk.segments import OpenSegment, Segment, read_leader_epochs
from streaming.kafka.walk import Bytes
from streaming.rows import Kind
from streaming.watcher.carrying import carry_over
from streaming.watcher.events import Event, Place
from streaming.watcher.heeded import pack, parted_at, unpack
from streaming.watcher.locate import Spot, beginning, find_offset
from streaming.watcher.tail import Tail, moved

log = logging.getLogger(__name__)


def holds_anchor(file: OpenSegment, place: Place) -> bool:
    """Whether the last batch read still stands where it was read."""
    return not place.anchor or file.read(place.anchor_position, len(place.anchor)) == place.anchor


def epoch_below(tail: Tail) -> int | None:
    """Where another leader epoch begins than was read there, before the place; None if there is no such."""
    place, told = tail.place, read_leader_epochs(tail.partition.path)
    if told and told == tail.parted_by and place.log_epoch <= told[-1].epoch:
        return None  # these set the log back already, and where they disagree with the batches they would do so for ever
    if place.epochs:
        return parted_at(unpack(place.epochs), told, place.next_offset)
    if place.log_epoch < 0:
        return None
    later = [entry.start_offset for entry in told if entry.epoch > place.log_epoch]
    return later[0] if later and later[0] < place.next_offset else None


def epoch_before(tail: Tail, spot: Spot) -> int:
    """The leader epoch of what lies before a spot of the tail's log, -1 if nobody knows."""
    if spot.anchor:
        return spot.log_epoch
    return max((entry.epoch for entry in read_leader_epochs(tail.partition.path) if entry.start_offset < spot.next_offset), default=-1)


def rewind(tail: Tail, segments: Sequence[Segment], buffer: Bytes) -> Event:
    """Set the tail back to the last batch that the log still shares with what was read, and tell what was cut off.

    Args:
        segments: a listing of now.

    Raises:
        OSError: a segment cannot be read.
    """
    before = tail.place
    spot = _shared(tail, segments, buffer)
    cut = _bytes_between(spot, tail)
    # all epochs that are told by now have been heeded: none of them sets the log back once more
    below, told = epoch_before(tail, spot), read_leader_epochs(tail.partition.path)
    epoch = max((entry.epoch for entry in told), default=below)
    epochs = pack(entry for entry in told or unpack(before.epochs) if entry.start_offset < spot.next_offset)
    tail.parted_by = told
    tail.close()
    tail.settle(segments)
    tail.place = replace(moved(before, spot), log_epoch=epoch, epochs=epochs, frontier=min(before.frontier, spot.next_offset))
    log.warning(
        "log truncated",
        extra={
            "log": str(before.log),
            "path": str(spot.segment.path),
            "position": spot.position,
            "offset": spot.next_offset,
            "was_offset": before.next_offset,
            "bytes": cut,
        },
    )
    return tail.event(
        Kind.TRUNCATED,
        end_position=spot.position,
        next_offset=spot.next_offset,
        log_epoch=below,
        bytes=cut,
        transactions=carry_over(tail),
    )


def _shared(tail: Tail, segments: Sequence[Segment], buffer: Bytes) -> Spot:
    """The end of what the log still has of what was read."""
    if not tail.place.log.topic_id and not any(tail.is_at(segment) for segment in segments):
        return beginning(segments[0])  # without topic ids nothing else tells that the topic was deleted and made anew
    place, parted = tail.place, epoch_below(tail)
    spot = find_offset(segments, place.next_offset if parted is None else parted, buffer)
    if parted is not None or spot.next_offset < place.next_offset or not place.anchor or spot.anchor == place.anchor:
        return spot
    # cut off and grown again without a new epoch to tell where: the batch that was read last is certainly gone
    return find_offset(segments, int.from_bytes(place.anchor[:8], "big"), buffer)


def _bytes_between(spot: Spot, tail: Tail) -> int:
    place, first = tail.place, spot.segment.base_offset
    if first >= place.segment:
        return max(0, place.position - spot.position)
    return max(0, sum(size for base, size in tail.sizes.items() if first <= base < place.segment) - spot.position) + place.position
