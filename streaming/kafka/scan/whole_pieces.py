"""The batches of many small pieces, each of another log: only of those pieces that end with a whole batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.kafka.formats.layout import (
    CONTROL_BIT,
    CURRENT_MAGIC,
    HEADER,
    HEADER_BYTES,
    OPAQUE_HEADER,
    PREFIX_BYTES,
    TRANSACTIONAL_BIT,
)
from streaming.kafka.scan.headers import Batches, columns_of, find_flaws, raw_headers
from streaming.kafka.scan.walk import Bytes, Positions, Stop, walk_lanes

_UNUSUAL = TRANSACTIONAL_BIT | CONTROL_BIT

_PLAIN = Struct(">8xi4xb4xh")
"""Length, magic and attributes of a header: three fields by one call, as one is read for each batch."""

_LEAST_LENGTH = HEADER_BYTES - PREFIX_BYTES


def plain_size(header: bytes) -> int:
    """The size of the batch with this header if it is of the present format, and neither transactional nor a control batch; else 0."""
    if len(header) < HEADER_BYTES:
        return 0
    length, magic, attributes = _PLAIN.unpack_from(header)
    return length + PREFIX_BYTES if magic == CURRENT_MAGIC and not attributes & _UNUSUAL and length >= _LEAST_LENGTH else 0


def batches_of(headers: Sequence[bytes]) -> Batches:
    """Batches of the present format that follow each other, by their headers; positions count from the first one."""
    opaque = np.frombuffer(b"".join(headers), OPAQUE_HEADER)
    fields = opaque.view(HEADER)
    return columns_of(_in_files(fields, np.zeros(1, np.intp), np.array([len(fields)]), np.zeros(1, np.int64)), fields)


@dataclass(frozen=True, slots=True)
class PieceHeaders:
    """The headers of some pieces, piece after piece, and how many each piece has: none where it does not end with a whole batch.

    They are opaque, because numpy turns the bytes of numbers into its own order where it joins arrays, and an anchor is bytes.
    """

    headers: NDArray[np.void]
    counts: Longs


def headers_of_whole(buffer: Bytes, starts: Positions, ends: Positions) -> PieceHeaders:
    """The headers of the pieces ``[start, end)`` of a buffer, ascending and not overlapping; each begins with a batch."""
    lanes = walk_lanes(buffer, starts, ends)
    positions = lanes.positions
    counts = np.diff(np.append(np.searchsorted(positions, starts), len(positions)))
    whole = (lanes.reached == ends) & (lanes.stops == Stop.END)
    if not whole.all():
        positions, counts = positions[np.repeat(whole, counts)], np.where(whole, counts, 0)
    return PieceHeaders(raw_headers(buffer, positions).view(OPAQUE_HEADER), counts)


@dataclass(frozen=True, slots=True, eq=False)
class PlainRanges:
    """Ranges of several logs. ``kept``: which pieces they are, by number; ``firsts``: the index of the first batch of each."""

    kept: NDArray[np.intp]
    batches: Batches
    firsts: NDArray[np.intp]

    def of(self, item: int) -> Batches:
        """The batches of one range."""
        end = self.firsts[item + 1] if item + 1 < len(self.firsts) else len(self.batches)
        return self.batches.take(slice(self.firsts[item], end))


def plain_ranges(pieces: PieceHeaders, positions: Positions, expected_offsets: Longs, epochs: Longs) -> PlainRanges:
    """The ranges in which nothing is unusual: whole and sound batches of the present format and of one leader epoch, no transactions.

    Args:
        positions: of each piece in its file; those of the batches are in the file, too.
        expected_offsets: the smallest offset at which each piece may begin.
        epochs: the leader epoch of each.
    """
    kept = np.flatnonzero(pieces.counts)
    counts = pieces.counts[kept]
    firsts = np.cumsum(counts) - counts
    headers = pieces.headers.view(HEADER)
    batches = columns_of(_in_files(headers, firsts, counts, positions[kept]), headers)
    if not len(kept):
        return PlainRanges(kept, batches, firsts)
    unusual = (batches.magic != CURRENT_MAGIC) | (batches.attributes & _UNUSUAL != 0)
    sound = ~np.logical_or.reduceat(unusual, firsts)
    lasts = firsts + counts - 1
    for ends in (firsts, lasts):  # epochs only rise along a log
        sound &= batches.leader_epoch[ends] == epochs[kept]
    for flaw in find_flaws(batches, firsts, expected_offsets[kept]):
        sound[np.searchsorted(firsts, flaw.item, side="right") - 1] = False
    if sound.all():
        return PlainRanges(kept, batches, firsts)
    sound_batches, counts = np.repeat(sound, counts), counts[sound]
    headers = pieces.headers[sound_batches].view(HEADER)
    return PlainRanges(kept[sound], columns_of(batches.positions[sound_batches], headers), np.cumsum(counts) - counts)


def _in_files(headers: NDArray[np.void], firsts: NDArray[np.intp], counts: Longs, positions: Positions) -> Positions:
    """The position of each batch in its file; ``positions``: where each piece begins."""
    sizes = headers["batch_length"].astype(np.int64) + PREFIX_BYTES
    ends = np.cumsum(sizes)
    begins: Positions = ends - sizes
    return begins + np.repeat(positions - begins[firsts], counts)
