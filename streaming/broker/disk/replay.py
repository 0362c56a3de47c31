"""Reads all batches of a log from one offset to another, across its segments."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from streaming.broker.disk.locate import beginning, find_offset, scan_on, walk_on
from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.errors import FormatError
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes

LARGEST_BATCH_BYTES = 256 << 20
"""The most that who reads a log whole makes room for at once."""

_MOST_OPEN = 128
"""So many segments are opened before the first is read: then it does not matter what a cleaner does to their names meanwhile."""


def without_replaced(segments: Sequence[Segment], buffer: Bytes) -> Sequence[Segment]:
    """Those of a listing that hold the log: while a compaction swaps segments in, its listing may have what they replace, too.

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


def _batches_in(file: OpenSegment, at: tuple[int, int], end: int, buffer: Bytes, *, last: bool) -> Iterator[tuple[Batches, bool]]:
    """The batches of a segment that end before ``end``, and whether all of a piece do; ``at``: a position, and the offset that is there."""
    position, next_offset = at
    for start, scanned in walk_on(file, position, next_offset, buffer, spare_cache=True):
        whole = scanned.batches.last_offset < end
        batches = scanned.batches if whole.all() else scanned.batches.take(whole)
        yield batches, len(batches) == len(whole)
        position, next_offset = start + scanned.end, int(scanned.batches.last_offset[-1]) + 1
    if position < file.size():
        flaw = scan_on(file, position, next_offset, buffer).flaw
        if flaw is not None or not last:
            raise FormatError(f"{file.path.name}: {flaw or 'no whole batch'}", position)
