"""The transaction steps of a scanned piece, which ends before the first marker that is not understood."""

from collections.abc import Callable
from dataclasses import replace

from streaming.errors import FormatError
from streaming.kafka.formats.layout import TRANSACTIONAL_BIT
from streaming.kafka.scan.pieces import Piece, Scanned, scan
from streaming.kafka.scan.transaction_steps import NO_STEPS, AppendTimes, Steps, steps_of
from streaming.kafka.scan.walk import Bytes, Stop


def understood_steps(
    scanned: Scanned, buffer: Bytes, start: int, times: Callable[[], AppendTimes], *, singly: bool = False
) -> tuple[Scanned, Steps]:
    """The piece up to there, whose ``flaw`` says what is not understood, and its steps.

    Args:
        scanned: its batches begin at ``start`` of the buffer.
        times: the limits for when they were appended; asked for if there are transactional batches.
        singly: a row for every batch, so that a consumer can cut the range at any of them.
    """
    if not (scanned.batches.attributes & TRANSACTIONAL_BIT).any():
        return scanned, NO_STEPS
    limits = times()
    try:
        return scanned, steps_of(scanned.batches, buffer, limits, singly=singly)
    except FormatError as error:
        before = _before(scanned, buffer, start, start if error.position is None else error.position)
        return replace(before, flaw=error.what), steps_of(before.batches, buffer, limits, singly=singly)


def _before(scanned: Scanned, buffer: Bytes, start: int, position: int) -> Scanned:
    if position == start:
        return Scanned(start, Stop.END, None, scanned.batches.take(slice(0, 0)), None)
    return scan(buffer, [Piece(start, position, int(scanned.batches.base_offset[0]))])[0]
