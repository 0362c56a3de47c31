"""The scan: pieces of several logs in one buffer are walked, checked and summed in one numpy pass, and split where epochs change."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from streaming.common.codecs import CODECS
from streaming.common.rows import BATCH_BYTES_BOUNDS, BATCH_RECORDS_BOUNDS
from streaming.kafka.formats.layout import (
    CODEC_MASK,
    CONTROL_BIT,
    CURRENT_MAGIC,
    HEADER_BYTES,
    MAGIC_AT,
    MIN_BATCH_BYTES,
    MIN_LENGTH,
    PREFIX_BYTES,
)
from streaming.kafka.scan.headers import Batches, columns_of, describe_flaw, find_flaws, raw_headers, read_headers
from streaming.kafka.scan.sums import Sums, sum_ranges
from streaming.kafka.scan.walk import Bytes, Positions, Stop, batch_size_at, walk, walk_lanes, walk_plainly

MAX_SEGMENT_BYTES = 2**31 - 1
"""A ``.log`` is never larger (`FileRecords`), so a batch that would reach beyond this has a wrong length."""

MOST_BATCHES = 64
"""Measured: with so many batches in one piece, this costs half of what numpy does; with one batch a seventh. It is even at some 200."""

MOST_PIECES = 8
"""Measured: with so many pieces of one batch each, this costs half of what numpy does. It is even at some 30."""

_SOUND_OFFSETS = range(-(2**62), 2**62)
"""Beyond these, what numpy adds up may overflow, and what Python adds up does not."""

_CUT = (Stop.SHORT, Stop.BAD_LENGTH)


def scan(buffer: Bytes, pieces: Sequence[Piece]) -> list[Scanned]:
    """Scan pieces that follow each other in ``buffer`` without overlapping; one result for each piece, in order."""
    found = scan_few(buffer, pieces)
    if found is None:
        found = scan_many(buffer, pieces)
    return [_with_rest(buffer, piece, each) for piece, each in zip(pieces, found, strict=True)]


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes ``[start, end)`` of the buffer: a part of one log that begins at a batch.

    ``expected_offset`` is the smallest offset that its first batch may have; ``seeds`` are positions in the buffer where batches begin
    according to an index (see `walk`), or None. ``limit`` is how far from ``start`` a batch may reach in the file at most.
    """

    start: int
    end: int
    expected_offset: int
    seeds: Positions | None = None
    limit: int = MAX_SEGMENT_BYTES


@dataclass(frozen=True, slots=True)
class Scanned:
    """The result of a piece.

    ``end`` is the end of its last complete and sound batch in the buffer; ``flaw`` is the reason in words why the next batch is not sound,
    ``stop`` why the walk ended otherwise. ``batches`` are those before ``end``; ``sums`` is None if there are none.
    """

    end: int
    stop: Stop
    flaw: str | None
    batches: Batches
    sums: Sums | None

    @property
    def anchor(self) -> bytes:
        """The header of the last batch. A later poll uses it to detect whether the log was truncated and written again."""
        return self.batches.anchor(-1)

    @property
    def anchor_position(self) -> int:
        """The position of that header in the buffer."""
        return int(self.batches.positions[-1])


def scan_few(buffer: Bytes, pieces: Sequence[Piece]) -> list[Scanned] | None:
    """Scan pieces as `streaming.kafka.scan.pieces.scan` does; what their incomplete batches look like is not checked.

    The scan of few batches: a plain loop over them, for numpy costs the same for one batch as for a thousand. What it finds is equal
    to what the scan of many finds, in every column. What is rare is left to that one.

    Returns:
        None if there are too many pieces or batches, seeds, batches of an old format or offsets that no log has.
    """
    if len(pieces) > MOST_PIECES:
        return None
    positions: list[int] = []
    walks: list[tuple[int, int, Stop]] = []
    for piece in pieces:
        if piece.seeds is not None:
            return None
        found, end, stop = walk_plainly(buffer.data, piece.start, piece.end, most=MOST_BATCHES + 1 - len(positions))
        positions += found
        if len(positions) > MOST_BATCHES:
            return None
        walks.append((len(positions), end, stop))
    at = np.array(positions, np.int64)
    batches = columns_of(at, raw_headers(buffer, at))
    lines = _Lines(batches)
    if not lines.are_usual:
        return None
    found_all, begin = [], 0
    for piece, (upto, end, stop) in zip(pieces, walks, strict=True):
        found_all.append(_scanned(lines, range(begin, upto), piece.expected_offset, end, stop))
        begin = upto
    return found_all


class _Lines:
    """The columns as lists: an item of a list costs a tenth of an item of an array."""

    def __init__(self, batches: Batches) -> None:
        self.batches = batches
        self.base_offset: list[int] = batches.base_offset.tolist()
        self.last_offset: list[int] = batches.last_offset.tolist()
        self.size: list[int] = batches.size.tolist()
        self.records: list[int] = batches.records.tolist()
        self.max_timestamp: list[int] = batches.max_timestamp.tolist()
        self.leader_epoch: list[int] = batches.leader_epoch.tolist()
        self.attributes: list[int] = batches.attributes.tolist()
        self.magic: list[int] = batches.magic.tolist()

    @property
    def are_usual(self) -> bool:
        """Whether no batch has an old format or offsets that overflow."""
        if not self.magic:
            return True
        is_old = 0 in self.magic or 1 in self.magic
        return not is_old and min(self.base_offset) in _SOUND_OFFSETS and max(self.base_offset) in _SOUND_OFFSETS

    def flaw(self, item: int, following: int) -> str | None:
        """What `find_flaws` finds in a batch, in the same order."""
        offset, last, records = self.base_offset[item], self.last_offset[item], self.records[item]
        if self.magic[item] != CURRENT_MAGIC:
            return "magic byte"
        if self.size[item] < MIN_BATCH_BYTES:
            return "batch length"
        if self.attributes[item] & CODEC_MASK >= len(CODECS):
            return "codec"
        if records < 0 or records > last - offset + 1:
            return "records count"
        if offset < following:
            return "base offset"
        return "last offset" if last < offset else None

    def sums(self, items: range) -> Sums:
        """What `sum_ranges` makes of a range."""
        first, last, own = items[0], items[-1], slice(items.start, items.stop)
        codec_bytes, records, batches = [0] * len(CODECS), 0, 0
        sizes, counts = [0] * (len(BATCH_BYTES_BOUNDS) + 1), [0] * (len(BATCH_RECORDS_BOUNDS) + 1)
        for attributes, size, count in zip(self.attributes[own], self.size[own], self.records[own], strict=True):
            if not attributes & CONTROL_BIT:
                batches += 1
                records += count
                codec_bytes[attributes & CODEC_MASK] += size
                sizes[bisect_left(BATCH_BYTES_BOUNDS, size)] += 1
                counts[bisect_left(BATCH_RECORDS_BOUNDS, count)] += 1
        return Sums(
            base_offset=self.base_offset[first],
            next_offset=self.last_offset[last] + 1,
            leader_epoch=self.leader_epoch[last],
            bytes=sum(self.size[own]),
            batches=batches,
            records=records,
            old_format_batches=0,
            max_timestamp=max(-1, *self.max_timestamp[own]),
            least_timestamp=min(self.max_timestamp[own]),
            codec_bytes=tuple(codec_bytes),
            batch_bytes_buckets=tuple(sizes),
            batch_records_buckets=tuple(counts),
        )


def _scanned(lines: _Lines, items: range, expected_offset: int, end: int, stop: Stop) -> Scanned:
    following, what = expected_offset, None
    for item in items:
        name = lines.flaw(item, following)
        if name is not None:
            what, end, items = (
                describe_flaw(lines.batches, item, name, following),
                int(lines.batches.positions[item]),
                range(items.start, item),
            )
            break
        following = lines.last_offset[item] + 1
    whole = len(items) == len(lines.batches)
    batches = lines.batches if whole else lines.batches.take(slice(items.start, items.stop))
    return Scanned(end, stop, what, batches, lines.sums(items) if items else None)


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


def by_epoch(scanned: Scanned, start: int, frontier: int) -> Iterator[tuple[Scanned, int]]:
    """The parts of a piece, each of one leader epoch, with their start in the buffer. The last part has the reason why the walk ended.

    Nearly always there is one epoch only, and then nothing is done. Epochs only rise along a log, so the first and the last show that.

    Args:
        start: the start of the piece in the buffer.
        frontier: a part also ends before the first batch that begins at this offset or after it.
    """
    epochs, sums = scanned.batches.leader_epoch, scanned.sums
    if sums is None or (epochs[0] == epochs[-1] and not sums.base_offset < frontier < sums.next_offset):
        yield scanned, start
        return
    begins = np.append(True, epochs[1:] != epochs[:-1])
    at = int(np.searchsorted(scanned.batches.base_offset, frontier))
    begins[at : at + 1] = True  # nothing if no batch is beyond it
    firsts = np.flatnonzero(begins)
    ends = [*firsts[1:].tolist(), len(epochs)]
    for first, end, sums in zip(firsts.tolist(), ends, sum_ranges(scanned.batches, firsts), strict=True):
        batches = scanned.batches.take(slice(first, end))
        if end == len(epochs):
            yield Scanned(scanned.end, scanned.stop, scanned.flaw, batches, sums), start
        else:
            reached = int(scanned.batches.positions[end])
            yield Scanned(reached, Stop.END, None, batches, sums), start
            start = reached
