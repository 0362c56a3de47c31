"""All batches of a log from one offset to another, whatever segments they stand in."""

from collections.abc import Iterator, Sequence

from streaming.disk.segments import OpenSegment, Segment
from streaming.errors import FormatError
from streaming.kafka.headers import Batches
from streaming.kafka.walk import Bytes
from streaming.watcher.locate import find_offset, scan_on, walk_on


def batches_between(segments: Sequence[Segment], begin: int, end: int, buffer: Bytes) -> Iterator[tuple[Batches, int]]:
    """The batches from ``begin`` to ``end``, both batch boundaries, some at a time, and the place of their segment among ``segments``.

    They stand in ``buffer`` until the next ones are asked for; of one that is larger than the buffer only its header does.

    Raises:
        FormatError: something else than a batch stands before ``end``; what is not all there at the end of the log is no more than that.
        OSError: a segment is gone or cannot be read.
    """
    if begin >= end:
        return
    spot = find_offset(segments, begin, buffer)
    for place, segment in enumerate(segments):
        if segment.base_offset < spot.segment.base_offset or segment.base_offset >= end:
            continue
        position, next_offset = (spot.position, spot.next_offset) if segment is spot.segment else (0, segment.base_offset)
        file = OpenSegment(segment.path, segment.base_offset)
        try:
            for start, scanned in walk_on(file, position, next_offset, buffer, spare_cache=True):
                whole = scanned.batches.last_offset < end
                batches = scanned.batches if whole.all() else scanned.batches.take(whole)
                if len(batches):
                    yield batches, place
                if len(batches) < len(whole):
                    return
                position, next_offset = start + scanned.end, int(batches.last_offset[-1]) + 1
            if position < file.size():
                flaw = scan_on(file, position, next_offset, buffer).flaw
                if flaw is not None or segment is not segments[-1]:
                    raise FormatError(f"{segment.path.name}: {flaw or 'no whole batch'}", position)
        finally:
            file.close()
