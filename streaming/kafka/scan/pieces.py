"""The scan: pieces of several logs in one buffer are walked, checked and summed in one numpy pass.

Only this module parses appended bytes; its results go from here to the metrics.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streaming.kafka.formats.layout import CURRENT_MAGIC, HEADER_BYTES, MAGIC_AT, MIN_LENGTH, PREFIX_BYTES
from streaming.kafka.scan.few_batches import scan_few
from streaming.kafka.scan.headers import find_flaws, read_headers
from streaming.kafka.scan.piece import MAX_SEGMENT_BYTES as MAX_SEGMENT_BYTES
from streaming.kafka.scan.piece import Piece as Piece
from streaming.kafka.scan.piece import Scanned as Scanned
from streaming.kafka.scan.sums import sum_ranges
from streaming.kafka.scan.walk import Bytes, Positions, Stop, batch_size_at, walk, walk_lanes

_CUT = (Stop.SHORT, Stop.BAD_LENGTH)


def scan(buffer: Bytes, pieces: Sequence[Piece]) -> list[Scanned]:
    """Scan pieces that follow each other in ``buffer`` without overlapping; one result for each piece, in order."""
    found = scan_few(buffer, pieces)
    if found is None:
        found = scan_many(buffer, pieces)
    return [_with_rest(buffer, piece, each) for piece, each in zip(pieces, found, strict=True)]


def scan_many(buffer: Bytes, pieces: Sequence[Piece]) -> list[Scanned]:
    """Scan pieces in one numpy pass; what their incomplete batches look like is not checked."""
    positions, ends, stops = _walk(buffer, pieces)
    begins = np.searchsorted(positions, [piece.start for piece in pieces])
    counts = np.diff(np.append(begins, len(positions)))
    batches = read_headers(buffer, positions)
    firsts = begins[counts > 0]
    expected = np.array([piece.expected_offset for piece in pieces], np.int64)[counts > 0]
    flaws = {int(np.searchsorted(begins, flaw.item, side="right")) - 1: flaw for flaw in find_flaws(batches, firsts, expected)}
    whats: list[str | None] = [None] * len(pieces)
    if flaws:
        keep = np.ones(len(batches), bool)
        for piece, flaw in flaws.items():
            whats[piece] = flaw.what
            ends[piece] = int(positions[flaw.item])
            keep[flaw.item : begins[piece] + counts[piece]] = False
            counts[piece] = flaw.item - begins[piece]
        batches = batches.take(keep)
        begins = np.cumsum(counts) - counts
        firsts = begins[counts > 0]
    sums = iter(sum_ranges(batches, firsts))
    return [
        Scanned(ends[item], stops[item], whats[item], batches.take(slice(begin, begin + count)), next(sums) if count else None)
        for item, (begin, count) in enumerate(zip(begins.tolist(), counts.tolist(), strict=True))
    ]


def _walk(buffer: Bytes, pieces: Sequence[Piece]) -> tuple[Positions, list[int], list[Stop]]:
    if all(piece.seeds is None for piece in pieces):
        starts, limits = np.array([(piece.start, piece.end) for piece in pieces], np.int64).reshape(-1, 2).T
        lanes = walk_lanes(buffer, starts, limits)
        return lanes.positions, lanes.reached.tolist(), [Stop(stop) for stop in lanes.stops.tolist()]
    walks = [walk(buffer, piece.start, piece.end, piece.seeds) for piece in pieces]
    return np.concatenate([one.positions for one in walks]), [one.end for one in walks], [one.stop for one in walks]


def _with_rest(buffer: Bytes, piece: Piece, scanned: Scanned) -> Scanned:
    """The result with the flaw of the batch after its end, if there is a part of one and this shows a flaw."""
    if scanned.flaw is not None or scanned.stop not in _CUT:
        return scanned
    what = _flaw_at(buffer, scanned.end, piece, piece.expected_offset if scanned.sums is None else scanned.sums.next_offset)
    return scanned if what is None else replace(scanned, flaw=what)


def _flaw_at(buffer: Bytes, position: int, piece: Piece, expected_offset: int) -> str | None:
    """The flaw of a batch that is not complete in the piece, as far as the existing bytes show it; None if there is none."""
    head = buffer[position : min(position + HEADER_BYTES, piece.end)]
    if len(head) < PREFIX_BYTES:
        return None
    length = batch_size_at(head.tobytes()) - PREFIX_BYTES
    if length < MIN_LENGTH or position - piece.start + PREFIX_BYTES + length > piece.limit:
        return f"bad batch length {length}"
    if len(head) < HEADER_BYTES or head[MAGIC_AT] < CURRENT_MAGIC:  # nothing can be checked in an old message before it is complete
        return None
    flaws = find_flaws(read_headers(head, np.zeros(1, np.int64)), np.zeros(1, np.intp), np.array([expected_offset]))
    return flaws[0].what if flaws else None


def scan_header(head: bytes, expected_offset: int) -> Scanned:
    """Scan one batch of magic 2 by its header only, for a batch larger than a buffer; ``head`` is its 61 bytes.

    ``end`` of the result is the batch's size.
    """
    buffer = np.frombuffer(head[:HEADER_BYTES], np.uint8)
    batches = read_headers(buffer, np.zeros(1, np.int64))
    flaws = find_flaws(batches, np.zeros(1, np.intp), np.array([expected_offset]))
    if flaws:
        return Scanned(0, Stop.END, flaws[0].what, batches.take(slice(0, 0)), None)
    return Scanned(int(batches.size[0]), Stop.END, None, batches, sum_ranges(batches, np.zeros(1, np.intp))[0])
