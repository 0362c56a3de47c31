"""Find a place in a log: its beginning, the position of an offset, its end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from streaming.disk.segments import OpenSegment, Segment
from streaming.kafka.layout import HEADER_BYTES
from streaming.kafka.scan import Piece, Scanned, batch_size_at, scan, scan_header
from streaming.kafka.walk import Bytes, Stop

WINDOW_BYTES = 8 << 20
"""How much of a segment is read at once: what stays in the processor's cache is walked twice as fast as what does not."""

StartFrom = Literal["earliest", "active", "latest"]


@dataclass(frozen=True, slots=True)
class Spot:
    """A batch boundary: ``next_offset`` is the first offset behind it. ``anchor`` is the header of the batch before it in the segment, or empty."""

    segment: Segment
    position: int
    next_offset: int
    log_epoch: int
    anchor: bytes
    anchor_position: int


def window() -> Bytes:
    """A buffer to scan through."""
    return np.empty(WINDOW_BYTES, np.uint8)


def scan_on(file: OpenSegment, position: int, next_offset: int, buffer: Bytes, *, spare_cache: bool = False) -> Scanned:
    """Scan what fits into ``buffer`` of a segment from ``position``; positions in the result count from there.

    Raises:
        OSError: the file cannot be read.
    """
    size = file.read_into(buffer, position, spare_cache=spare_cache)
    seeds = file.seeds(position, position + size) - position if size >= SEEDED_BYTES else None
    scanned = scan(buffer, [Piece(0, size, next_offset, seeds)])[0]
    if scanned.sums is None and scanned.stop is Stop.SHORT and scanned.flaw is None and size == len(buffer):
        return _scan_large(file, position, next_offset, buffer)
    return scanned


SEEDED_BYTES = 1 << 20
"""Below this the plain walk is as fast as looking into the index."""


def _scan_large(file: OpenSegment, position: int, next_offset: int, buffer: Bytes) -> Scanned:
    """One batch that is larger than the buffer: its header tells all that is counted, as soon as the file reaches to its end."""
    head = buffer[:HEADER_BYTES].tobytes()
    nothing = scan(buffer[:0], [Piece(0, 0, next_offset)])[0]
    if position + batch_size_at(head) > file.size():
        return Scanned(0, Stop.SHORT, None, nothing.batches, None)
    return scan_header(head, next_offset)


def walk_on(file: OpenSegment, position: int, next_offset: int, buffer: Bytes) -> Iterator[tuple[int, Scanned]]:
    """Scan a segment window by window to its last whole and sound batch; yields (position of the window in the file, what it holds)."""
    while True:
        scanned = scan_on(file, position, next_offset, buffer)
        if scanned.sums is None:
            return
        yield position, scanned
        position, next_offset = position + scanned.end, scanned.sums.next_offset


def start_spot(segments: Sequence[Segment], start_from: StartFrom, buffer: Bytes) -> Spot:
    """Where a new reader begins: the first byte on disk, the beginning of the active segment, or the end of the log."""
    if start_from == "latest":
        return end_spot(segments, buffer)
    segment = segments[0 if start_from == "earliest" else -1]
    return beginning(segment)


def beginning(segment: Segment) -> Spot:
    """The first byte of a segment."""
    return Spot(segment, 0, segment.base_offset, -1, b"", 0)


def end_spot(segments: Sequence[Segment], buffer: Bytes) -> Spot:
    """The end of the last whole batch of the log."""
    return find_offset(segments, None, buffer)


def find_offset(segments: Sequence[Segment], offset: int | None, buffer: Bytes) -> Spot:
    """Behind the last batch that ends at or before ``offset`` (None: the last one of the log).

    An offset before the first segment finds its beginning.
    """
    held = [segment for segment in segments if offset is None or segment.base_offset <= offset]
    segment = held[-1] if held else segments[0]
    spot = beginning(segment)
    file = OpenSegment(segment.path, segment.base_offset)
    try:
        for position, scanned in walk_on(file, 0, segment.base_offset, buffer):
            ends = scanned.batches.last_offset
            count = len(ends) if offset is None else int(np.searchsorted(ends, offset))  # those that end before offset
            if count:
                spot = _behind(segment, position, scanned, count - 1)
            if count < len(ends):
                break
    finally:
        file.close()
    return spot


def _behind(segment: Segment, position: int, scanned: Scanned, item: int) -> Spot:
    batches = scanned.batches
    return Spot(
        segment,
        position + int(batches.positions[item] + batches.size[item]),
        int(batches.last_offset[item]) + 1,
        int(batches.leader_epoch[item]),
        batches.headers[item].tobytes(),
        position + int(batches.positions[item]),
    )
