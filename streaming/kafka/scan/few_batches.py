"""The scan of few batches: a plain loop over them, for numpy costs the same for one batch as for a thousand.

What it finds is equal to what the scan of many finds, in every column. What is rare is left to that one.
"""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from streaming.common.codecs import CODECS
from streaming.common.rows import BATCH_BYTES_BOUNDS, BATCH_RECORDS_BOUNDS
from streaming.kafka.formats.layout import CODEC_MASK, CONTROL_BIT, CURRENT_MAGIC, MIN_BATCH_BYTES
from streaming.kafka.scan.headers import Batches, columns_of, describe_flaw, raw_headers
from streaming.kafka.scan.piece import Piece, Scanned
from streaming.kafka.scan.sums import Sums
from streaming.kafka.scan.walk import Bytes, Stop, walk_plainly

MOST_BATCHES = 64
"""Measured: with so many batches in one piece, this costs half of what numpy does; with one batch a seventh. It is even at some 200."""

MOST_PIECES = 8
"""Measured: with so many pieces of one batch each, this costs half of what numpy does. It is even at some 30."""

_SOUND_OFFSETS = range(-(2**62), 2**62)
"""Beyond these, what numpy adds up may overflow, and what Python adds up does not."""


def scan_few(buffer: Bytes, pieces: Sequence[Piece]) -> list[Scanned] | None:
    """Scan pieces as `streaming.kafka.scan.pieces.scan` does; what their incomplete batches look like is not checked.

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

    __slots__ = ("attributes", "base_offset", "batches", "last_offset", "leader_epoch", "magic", "max_timestamp", "records", "size")

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
