"""The sums over the batches of a byte range, for many ranges in one pass."""

from dataclasses import Field, dataclass, fields, replace
from functools import cache
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.common.column_types import Count, Counts, counts_of, plus
from streaming.common.rows import BATCH_BYTES_BOUNDS, BATCH_RECORDS_BOUNDS, CODECS
from streaming.kafka.formats.layout import CURRENT_MAGIC
from streaming.kafka.scan.headers import Batches

_EXPONENT_AT = 52
_EXPONENT_OF_ONE = 1023


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over the batches of one range, at least one of them. Data batches are those that are not control batches.

    ``max_timestamp`` (milliseconds, -1 none) and ``bytes`` are over all batches, as Kafka's own values are; ``codec_bytes`` and the
    histograms are over data batches: by codec id, and by the bounds in `streaming.common.rows`, not cumulative. ``least_timestamp`` is the
    smallest of the largest record timestamps of all batches.
    """

    base_offset: int
    next_offset: int
    leader_epoch: int
    bytes: Count
    batches: Count
    records: Count
    old_format_batches: Count
    max_timestamp: int
    least_timestamp: int
    codec_bytes: Counts
    batch_bytes_buckets: Counts
    batch_records_buckets: Counts


COUNTS = counts_of(Sums)
"""The sums among its fields, which events have as columns of the same names."""


class Summed(Protocol):
    """A dataclass with the sums over a range, `Sums` or an event: what is a `Count` in it is a sum."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def base_offset(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...


R = TypeVar("R", bound=Summed)


def joined(first: R, later: R) -> R:
    """The sums over a range and the one directly after it. The end of the range (offset, epoch) is the later one's."""
    counts = {name: plus(getattr(first, name), getattr(later, name)) for name in _counts(type(later))}
    if _LEAST in later.__dataclass_fields__:  # an event has none
        counts[_LEAST] = min(getattr(first, _LEAST), getattr(later, _LEAST))
    return replace(later, base_offset=first.base_offset, max_timestamp=max(first.max_timestamp, later.max_timestamp), **counts)


_LEAST = "least_timestamp"
_counts = cache(counts_of)
_FIELDS = tuple(each.name for each in fields(Sums))


def sum_ranges(batches: Batches, firsts: NDArray[np.intp]) -> list[Sums]:
    """Sum the batches of consecutive ranges.

    Args:
        batches: all of them, in order, none of them flawed.
        firsts: the index of each range's first batch, ascending, beginning with 0; no range is empty.
    """
    if not len(firsts):
        return []
    columns = sum_columns(batches, firsts)
    values = [map(tuple, columns[name].tolist()) if columns[name].ndim > 1 else columns[name].tolist() for name in _FIELDS]
    return [Sums(*each) for each in zip(*values, strict=True)]


def sum_columns(batches: Batches, firsts: NDArray[np.intp]) -> dict[str, Longs]:
    """The same sums as columns by the names of the fields of `Sums`, an item for each range; there is at least one range."""
    data, sizes, records, counted = ~batches.control, batches.size, batches.records, None
    if not data.all():
        sizes, records, counted = np.where(data, sizes, 0), np.where(data, records, 0), data
    lasts = np.append(firsts[1:], len(batches)) - 1
    ranges = np.repeat(np.arange(len(firsts)), lasts - firsts + 1)
    size_buckets, count_buckets = _bucket(batches.size, BATCH_BYTES_BOUNDS), _bucket(batches.records, BATCH_RECORDS_BOUNDS)
    return {
        "base_offset": batches.base_offset[firsts],
        "next_offset": batches.last_offset[lasts] + 1,
        "leader_epoch": batches.leader_epoch[lasts],
        "bytes": np.add.reduceat(batches.size, firsts),
        "batches": np.add.reduceat(data.astype(np.int64), firsts),
        "records": np.add.reduceat(records, firsts),
        "old_format_batches": np.add.reduceat((batches.magic < CURRENT_MAGIC).astype(np.int64), firsts),
        "max_timestamp": np.maximum(np.maximum.reduceat(batches.max_timestamp, firsts), -1),
        "least_timestamp": np.minimum.reduceat(batches.max_timestamp, firsts),
        "codec_bytes": _tally(ranges, batches.codec, len(firsts), len(CODECS), sizes),
        "batch_bytes_buckets": _tally(ranges, size_buckets, len(firsts), len(BATCH_BYTES_BOUNDS) + 1, counted),
        "batch_records_buckets": _tally(ranges, count_buckets, len(firsts), len(BATCH_RECORDS_BOUNDS) + 1, counted),
    }


def _bucket(values: Longs, bounds: tuple[int, ...]) -> NDArray[np.int64]:
    # The bounds are powers of two and grow by the factor 4. So the bucket is half the number of bits of value - 1 above those of the first
    # bound. That number is the exponent in a float's own bits, which is faster than a search and than frexp.
    exponent = ((values - 1) >> (bounds[0].bit_length() - 1)).astype(np.float64).view(np.int64) >> _EXPONENT_AT
    buckets: NDArray[np.int64] = np.clip((exponent - _EXPONENT_OF_ONE + 2) >> 1, 0, len(bounds))
    return buckets


def _tally(ranges: Longs, column: NDArray[np.integer], rows: int, columns: int, weights: NDArray[np.generic] | None) -> Longs:
    # bincount sums in float64, which is exact: a window of bytes is far below 2**53
    cells = column if rows == 1 else ranges * columns + column
    table: Longs = np.bincount(cells, weights, rows * columns).astype(np.int64).reshape(rows, columns)
    return table
