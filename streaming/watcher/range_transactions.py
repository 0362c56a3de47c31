"""The transaction steps of a range, with the times of them that the watcher knows."""

from dataclasses import replace

from streaming.errors import FormatError
from streaming.kafka.layout import TRANSACTIONAL_BIT
from streaming.scan.pieces import Piece, Scanned, scan
from streaming.scan.transaction_steps import NO_STEPS, Steps, Times, steps_of
from streaming.scan.walk import Bytes, Stop
from streaming.watcher.tail import Tail

SEEN_WITHIN_MS = 10_000
"""If the last poll that found nothing is at most this old, the batches were appended now, by the watcher's clock."""


def find_steps(tail: Tail, scanned: Scanned, buffer: Bytes, start: int, now_ms: int, *, singly: bool) -> tuple[Scanned, Steps]:
    """The steps of the batches scanned from ``start`` of the buffer, at the tail's cursor; ends before a marker that is not understood.

    Args:
        singly: a row for every batch, so that a consumer can cut the range at any of them.

    Raises:
        OSError: the file is gone.
    """
    if not (scanned.batches.attributes & TRANSACTIONAL_BIT).any():
        return scanned, NO_STEPS
    times = _times(tail, now_ms)
    try:
        return scanned, steps_of(scanned.batches, buffer, times, singly=singly)
    except FormatError as error:
        before = _before(scanned, buffer, start, start if error.position is None else error.position)
        return replace(before, flaw=error.what), steps_of(before.batches, buffer, times, singly=singly)


def _times(tail: Tail, now_ms: int) -> Times:
    if tail.live and 0 <= now_ms - tail.looked_ms <= SEEN_WITHIN_MS:
        return Times.seen(tail.looked_ms, now_ms)
    before = [segment.modified_ms for segment in tail.segments if segment.base_offset < tail.cursor.segment]
    return Times.recorded(before[-1] if before else 0, tail.open().modified_ms())


def _before(scanned: Scanned, buffer: Bytes, start: int, position: int) -> Scanned:
    if position == start:
        return Scanned(start, Stop.END, None, scanned.batches.take(slice(0, 0)), None)
    return scan(buffer, [Piece(start, position, int(scanned.batches.base_offset[0]))])[0]
