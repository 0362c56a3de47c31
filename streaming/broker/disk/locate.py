"""Finds a boundary in a log (its beginning, the position of an offset, its end), and reads all batches from one to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from errno import ENOENT

import numpy as np

from streaming.broker.disk.scanning import SEEDED_BYTES as SEEDED_BYTES
from streaming.broker.disk.scanning import WINDOW_BYTES as WINDOW_BYTES
from streaming.broker.disk.scanning import scan_on as scan_on
from streaming.broker.disk.scanning import window as window
from streaming.broker.disk.scanning import without_half_written
from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.common.start_from import StartFrom
from streaming.errors import FormatError
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.pieces import Scanned
from streaming.kafka.scan.walk import Bytes, Stop

NEAR_BYTES = 256 << 10
"""How many bytes are read at once to find an offset from its index entry on: the entry is some kilobytes before it."""

LARGEST_BATCH_BYTES = 256 << 20
"""The most that who reads a log whole makes room for at once."""

_MOST_OPEN = 128
"""So many segments are opened before the first is read: then it does not matter what a cleaner does to their names meanwhile."""


def batches_between(segments: Sequence[Segment], begin: int, end: int, buffer: Bytes) -> Iterator[tuple[Batches, int]]:
    """The batches from ``begin`` to ``end``, both batch boundaries, some at a time, and the index of their segment in ``segments``.

    They are in ``buffer`` until the next ones are requested. If a batch is larger than the buffer, only its header is there. All files are
    those of the listing: of two cleanings, the second removes the tombstone of what the first has removed before it, so a file from before
    the first and one from after the second bring back what was deleted.

    Raises:
        FormatError: there is something else than a batch before ``end``. An incomplete batch at the end of the log is no error.
        OSError: a segment is gone, is another file than the one that was listed, or cannot be read.
    """
    if begin >= end:
        return
    current = without_replaced(segments, buffer)
    begun = next((segment for segment in current if segment.base_offset == begin), None)
    boundary = find_offset(current, begin, buffer) if begun is None else beginning(begun)
    cursors = {segment: cursor for cursor, segment in enumerate(segments)}
    there = [segment for segment in current if boundary.segment.base_offset <= segment.base_offset < end]
    with ExitStack() as opened:
        files = [opened.enter_context(segment.open()) for segment in there[:_MOST_OPEN]]
        for number, segment in enumerate(there):
            at = (boundary.position, boundary.next_offset) if segment is boundary.segment else (0, segment.base_offset)
            cursor, file = cursors[segment], files[number] if number < len(files) else opened.enter_context(segment.open())
            for batches, whole in _batches_in(file, at, end, buffer, last=segment is segments[-1]):
                if len(batches):
                    yield batches, cursor
                if not whole:
                    return


def without_replaced(segments: Sequence[Segment], buffer: Bytes) -> Sequence[Segment]:
    """Those of a listing that hold the log: while a compaction swaps segments in, its listing may have what they replace, too.

    Reads all batches of a log from one offset to another, across its segments.

    Old files go when all new ones have their ``.swap`` names, in the order of their offsets. So of two segments that overlap the first
    holds everything. A broker that was killed meanwhile leaves them so until it starts.

    Raises:
        OSError: a segment is gone or cannot be read.
    """
    if not any(segment.swap for segment in segments):
        return segments
    left: list[Segment] = []
    for segment in segments:
        overlaps = bool(left) and (segment.swap or left[-1].swap) and find_offset(left[-1:], None, buffer).next_offset > segment.base_offset
        if not overlaps:
            left.append(segment)
    return left


def find_offset(segments: Sequence[Segment], offset: int | None, buffer: Bytes) -> BatchBoundary:
    """The boundary after the last batch that ends at or before ``offset`` (None: after the last batch of the log).

    For an offset before the first segment it is the beginning of that segment.

    Raises:
        OSError: a segment cannot be read, or there is none.
    """
    if not segments:
        raise FileNotFoundError(ENOENT, "none of its segments is there")
    held = [segment for segment in segments if offset is None or segment.base_offset <= offset]
    segment = held[-1] if held else segments[0]
    boundary, passed = beginning(segment), False
    with segment.open() as file:
        start = start_near(file, offset)
        pieces = _walk_near if offset is not None and start[0] else walk_on
        for position, scanned in pieces(file, *start, buffer):
            ends = scanned.batches.last_offset
            count = len(ends) if offset is None else int(np.searchsorted(ends, offset))  # those that end before offset
            if count:
                boundary = _after(segment, position, scanned, count - 1)
            passed = count < len(ends)
            if passed:
                break
    return replace(boundary, last=segment is segments[-1] and not passed)


@dataclass(frozen=True, slots=True)
class BatchBoundary:
    """A batch boundary: ``next_offset`` is the first offset after it. ``anchor`` is the header of the batch before it in the segment, or
    empty. ``last``: no whole batch of the log lies after it."""

    segment: Segment
    position: int
    next_offset: int
    log_epoch: int
    anchor: bytes
    anchor_position: int
    last: bool = False


def beginning(segment: Segment) -> BatchBoundary:
    """The first byte of a segment."""
    return BatchBoundary(segment, 0, segment.base_offset, -1, b"", 0)


def start_near(file: OpenSegment, offset: int | None) -> tuple[int, int]:
    """A (position, base offset) to walk from: by the index if its entry is a batch that ends before ``offset``, else the beginning.

    The index alone is never believed: see `OpenSegment.proven_at`.
    """
    return _proven(file, file.indexed(offset))


def _proven(file: OpenSegment, entry: tuple[int, int] | None) -> tuple[int, int]:
    """The batch at an entry of the index, else the beginning of the segment."""
    base_offset = None if entry is None else file.proven_at(entry[1], entry[0], WINDOW_BYTES)
    return (0, file.base_offset) if entry is None or base_offset is None else (entry[1], base_offset)


def _walk_near(file: OpenSegment, position: int, next_offset: int, buffer: Bytes) -> Iterator[tuple[int, Scanned]]:
    """`walk_on` in small windows, until a batch is larger than one of them."""
    small = buffer[:NEAR_BYTES]
    for at, scanned in walk_on(file, position, next_offset, small):
        if scanned.end > len(small):
            break
        yield at, scanned
        assert scanned.sums is not None
        position, next_offset = at + scanned.end, scanned.sums.next_offset
    else:
        return
    yield from walk_on(file, position, next_offset, buffer)


def walk_on(
    file: OpenSegment, position: int, next_offset: int, buffer: Bytes, *, spare_cache: bool = False
) -> Iterator[tuple[int, Scanned]]:
    """Scan a segment window by window to its last whole and sound batch; yields (position of the window in the file, what it holds)."""
    while True:
        scanned = scan_on(file, position, next_offset, buffer, spare_cache=spare_cache)
        scanned = without_half_written(file, position, buffer, 0, scanned, plain=False)
        if scanned.sums is None:
            return
        yield position, scanned
        if _ends_there(scanned, buffer):
            return
        position, next_offset = position + scanned.end, scanned.sums.next_offset


def _ends_there(scanned: Scanned, buffer: Bytes) -> bool:
    """Whether what a window shows after its last batch is the end of the log: of the file, or of what is written or sound in it."""
    at_end_of_file = scanned.stop is Stop.END and scanned.end < len(buffer)
    return at_end_of_file or scanned.stop is Stop.ZEROS or scanned.flaw is not None


def _after(segment: Segment, position: int, scanned: Scanned, item: int) -> BatchBoundary:
    batches = scanned.batches
    return BatchBoundary(
        segment,
        position + int(batches.positions[item] + batches.size[item]),
        int(batches.last_offset[item]) + 1,
        int(batches.leader_epoch[item]),
        batches.anchor(item),
        position + int(batches.positions[item]),
    )


def _batches_in(file: OpenSegment, at: tuple[int, int], end: int, buffer: Bytes, *, last: bool) -> Iterator[tuple[Batches, bool]]:
    """The batches of a segment that end before ``end``, and whether all of a piece do; ``at``: a position, and the offset that is there."""
    position, next_offset = at
    for start, scanned in walk_on(file, position, next_offset, buffer, spare_cache=True):
        whole = scanned.batches.last_offset < end
        batches = scanned.batches if whole.all() else scanned.batches.take(whole)
        yield batches, len(batches) == len(whole)
        position, next_offset = start + scanned.end, int(scanned.batches.last_offset[-1]) + 1
    if next_offset < end and position < file.size():
        flaw = scan_on(file, position, next_offset, buffer).flaw
        if flaw is not None or not last:
            raise FormatError(f"{file.path.name}: {flaw or 'no whole batch'}", position)


def start_boundary(segments: Sequence[Segment], start_from: StartFrom, buffer: Bytes) -> BatchBoundary:
    """Where a new consumer begins: the first byte on disk, the beginning of the active segment, or the end of the log."""
    if start_from == StartFrom.LATEST:
        return find_offset(segments, None, buffer)
    return beginning(segments[0 if start_from == StartFrom.EARLIEST else -1])


def start_at(file: OpenSegment, position: int) -> tuple[int, int]:
    """The same by a position: a batch that begins there or before, as near as the index leads to one."""
    return _proven(file, file.indexed_upto(position))
