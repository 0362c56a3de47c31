"""What a byte range holds: the sums over its batches, for many ranges in one pass."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.kafka.headers import Batches, Longs
from streaming.kafka.layout import CURRENT_MAGIC
from streaming.rows import BATCH_BYTES_BOUNDS, BATCH_RECORDS_BOUNDS, CODECS


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sums over the batches of one range, at least one of them. Data batches are those that are not control batches.

    ``max_timestamp`` (milliseconds, -1 none) and ``bytes`` are over all batches, as Kafka's own are; ``codec_bytes`` and the histograms over
    data batches: by codec id, and by the bounds in `streaming.rows`, not cumulative.
    """

    base_offset: int
    next_offset: int
    leader_epoch: int
    bytes: int
    batches: int
    records: int
    old_format_batches: int
    max_timestamp: int
    codec_bytes: tuple[int, ...]
    batch_bytes_buckets: tuple[int, ...]
    batch_records_buckets: tuple[int, ...]

    def merge(self, later: "Sums") -> "Sums":
        """The sums over this range and the one right behind it."""
        return Sums(
            base_offset=self.base_offset,
            next_offset=later.next_offset,
            leader_epoch=later.leader_epoch,
            bytes=self.bytes + later.bytes,
            batches=self.batches + later.batches,
            records=self.records + later.records,
            old_format_batches=self.old_format_batches + later.old_format_batches,
            max_timestamp=max(self.max_timestamp, later.max_timestamp),
            codec_bytes=_add(self.codec_bytes, later.codec_bytes),
            batch_bytes_buckets=_add(self.batch_bytes_buckets, later.batch_bytes_buckets),
            batch_records_buckets=_add(self.batch_records_buckets, later.batch_records_buckets),
        )


def _add(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def sum_ranges(batches: Batches, firsts: NDArray[np.intp]) -> list[Sums]:
    """Sum the batches of consecutive ranges.

    Args:
        batches: all of them, in order, none of them flawed.
        firsts: the item of each range's first batch, ascending, beginning with 0; no range is empty.
    """
    if not len(firsts):
        return []
    data = ~batches.control
    data_bytes = np.where(data, batches.size, 0)
    lasts = np.append(firsts[1:], len(batches)) - 1
    ranges = np.repeat(np.arange(len(firsts)), lasts - firsts + 1)
    codec_bytes = _tally(ranges, batches.codec, len(firsts), len(CODECS), data_bytes)
    size_buckets = _tally(ranges, _bucket(batches.size, BATCH_BYTES_BOUNDS), len(firsts), len(BATCH_BYTES_BOUNDS) + 1, data)
    count_buckets = _tally(ranges, _bucket(batches.records, BATCH_RECORDS_BOUNDS), len(firsts), len(BATCH_RECORDS_BOUNDS) + 1, data)
    columns = zip(
        batches.base_offset[firsts].tolist(),
        (batches.last_offset[lasts] + 1).tolist(),
        batches.leader_epoch[lasts].tolist(),
        np.add.reduceat(batches.size, firsts).tolist(),
        np.add.reduceat(data.astype(np.int64), firsts).tolist(),
        np.add.reduceat(np.where(data, batches.records, 0), firsts).tolist(),
        np.add.reduceat((batches.magic < CURRENT_MAGIC).astype(np.int64), firsts).tolist(),
        np.maximum.reduceat(batches.max_timestamp, firsts).tolist(),
        codec_bytes.tolist(),
        size_buckets.tolist(),
        count_buckets.tolist(),
        strict=True,
    )
    return [
        Sums(
            base_offset=base,
            next_offset=following,
            leader_epoch=epoch,
            bytes=size,
            batches=count,
            records=records,
            old_format_batches=old,
            max_timestamp=max(newest, -1),
            codec_bytes=tuple(codecs),
            batch_bytes_buckets=tuple(sizes),
            batch_records_buckets=tuple(counts),
        )
        for base, following, epoch, size, count, records, old, newest, codecs, sizes, counts in columns
    ]


def _bucket(values: Longs, bounds: tuple[int, ...]) -> NDArray[np.int64]:
    # the bounds grow by the factor 4, so the bucket is half the number of bits of value - 1: the exponent of a float, 10 times faster than a search
    scaled = np.maximum((values + bounds[0] - 1) // bounds[0] - 1, 0)
    exponent = np.frexp(scaled.astype(np.float64))[1]
    return np.minimum((exponent + 1) // 2, len(bounds)).astype(np.int64)


def _tally(ranges: Longs, column: NDArray[np.integer], rows: int, columns: int, weights: NDArray[np.generic]) -> Longs:
    # bincount sums in float64: exact, for a window of bytes is far below 2**53
    cells = ranges * columns + column
    table: Longs = np.bincount(cells, weights, rows * columns).astype(np.int64).reshape(rows, columns)
    return table
