"""Reads all batches of a log from one offset to another, across its segments."""

from collections.abc import Iterator, Sequence

from streaming.broker.disk.locate import find_offset, scan_on, walk_on
from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.errors import FormatError
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes


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

    They are in ``buffer`` until the next ones are requested. If a batch is larger than the buffer, only its header is there.

    Raises:
        FormatError: there is something else than a batch before ``end``. An incomplete batch at the end of the log is no error.
        OSError: a segment is gone or cannot be read.
    """
    if begin >= end:
        return
    current = without_replaced(segments, buffer)
    boundary = find_offset(current, begin, buffer)
    for cursor, segment in enumerate(segments):
        if segment not in current:
            continue
        if segment.base_offset < boundary.segment.base_offset or segment.base_offset >= end:
            continue
        position, next_offset = (boundary.position, boundary.next_offset) if segment is boundary.segment else (0, segment.base_offset)
        file = OpenSegment(segment.path, segment.base_offset)
        try:
            if file.identity != segment.identity:  # of two cleanings, the second may have removed what the first left of a deletion
                raise FileNotFoundError(f"{segment.path} is another file than the one that was listed")
            for start, scanned in walk_on(file, position, next_offset, buffer, spare_cache=True):
                whole = scanned.batches.last_offset < end
                batches = scanned.batches if whole.all() else scanned.batches.take(whole)
                if len(batches):
                    yield batches, cursor
                if len(batches) < len(whole):
                    return
                position, next_offset = start + scanned.end, int(batches.last_offset[-1]) + 1
            if position < file.size():
                flaw = scan_on(file, position, next_offset, buffer).flaw
                if flaw is not None or segment is not segments[-1]:
                    raise FormatError(f"{segment.path.name}: {flaw or 'no whole batch'}", position)
        finally:
            file.close()
