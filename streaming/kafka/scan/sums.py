"""The sums over the batches of byte ranges, how late their records arrived, and their batches one by one, packed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from functools import cache
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import zstandard
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.common.column_types import Count, Counts, counts_of, plus
from streaming.common.rows import APPEND_DELAY_SECONDS_BOUNDS, BATCH_BYTES_BOUNDS, BATCH_RECORDS_BOUNDS, CODECS, EXPIRED
from streaming.errors import FormatError
from streaming.kafka.formats.layout import CURRENT_MAGIC, HEADER
from streaming.kafka.scan.headers import Batches

_EXPONENT_AT = 52
_EXPONENT_OF_ONE = 1023

_LEAST = "least_timestamp"
_counts = cache(counts_of)

AHEAD_MS = 30_000
"""A batch that is dated further ahead of its append has no delay, and is counted apart. Clocks that differ by less are usual."""

PROMPT_MS = 1000 * APPEND_DELAY_SECONDS_BOUNDS[0]
"""Up to so much before its append a batch is on time: its delay is 0."""

_BOUNDS_MS = np.array(APPEND_DELAY_SECONDS_BOUNDS, np.int64) * 1000
_BUCKETS = len(_BOUNDS_MS) + 1
_NO_OTHERS = (0,) * (_BUCKETS - 1)

_VERSION = b"\x01"
_COLUMNS = ("base_offset", "last_offset", "size", "records", "max_timestamp", "leader_epoch", "attributes", "magic")
_LEVEL = 1

_MAX_BYTES = 256 << 20
"""A range of one window is far below this; if a larger size is stored, it is damaged."""


def sums_from(detail: bytes, offset: int) -> Sums | None:
    """The sums over the packed batches that begin at or after ``offset``; None if there are none.

    Raises:
        FormatError: the bytes are not of this version.
    """
    columns = _unpack(detail)
    columns = columns[:, np.searchsorted(columns[0], offset) :]
    count = columns.shape[1]
    if not count:
        return None
    values = dict(zip(_COLUMNS, columns, strict=True))
    batches = Batches(
        positions=np.cumsum(values["size"]) - values["size"],
        headers=np.zeros(count, HEADER),
        attributes=values.pop("attributes").astype(np.int16),
        magic=values.pop("magic").astype(np.int8),
        **values,
    )
    return sum_ranges(batches, np.zeros(1, np.intp))[0]


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


def _unpack(detail: bytes) -> NDArray[np.int64]:
    """One row for each column, in the order of `_COLUMNS`."""
    if detail[:1] != _VERSION:
        raise FormatError(f"packed batches of version {detail[:1]!r}, known is {_VERSION!r}")
    try:
        if zstandard.frame_content_size(detail[1:]) > _MAX_BYTES:
            raise FormatError("packed batches are damaged: they are too many")
        by_byte = np.frombuffer(zstandard.decompress(detail[1:]), np.uint8).reshape(len(_COLUMNS), 8, -1)
    except (zstandard.ZstdError, ValueError) as error:
        raise FormatError(f"packed batches are damaged: {error}") from error
    columns: NDArray[np.int64] = np.ascontiguousarray(by_byte.transpose(0, 2, 1)).view("<i8").reshape(len(_COLUMNS), -1).cumsum(axis=1)
    return columns


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


_FIELDS = tuple(each.name for each in fields(Sums))


COUNTS = counts_of(Sums)
"""The sums among its fields, which events have as columns of the same names."""


def joined(first: R, later: R) -> R:
    """The sums over a range and the one directly after it. The end of the range (offset, epoch) is the later one's."""
    counts = {name: plus(getattr(first, name), getattr(later, name)) for name in _counts(type(later))}
    if _LEAST in later.__dataclass_fields__:  # an event has none
        counts[_LEAST] = min(getattr(first, _LEAST), getattr(later, _LEAST))
    return replace(later, base_offset=first.base_offset, max_timestamp=max(first.max_timestamp, later.max_timestamp), **counts)


class Summed(Protocol):
    """A dataclass with the sums over a range, `Sums` or an event: what is a `Count` in it is a sum."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def base_offset(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...


R = TypeVar("R", bound=Summed)


@dataclass(frozen=True, slots=True)
class AppendDelays:
    """The columns of an event with the same names. ``expired``: an item of `streaming.common.rows.EXPIRED`, None for none."""

    append_delay_buckets: Counts = (0, *_NO_OTHERS)
    append_delay_ms: Count = 0
    ahead_batches: Count = 0
    expired: bytes | None = None


NO_ARRIVALS = AppendDelays()
"""Of a range whose time of append is not known, or that a follower copied."""


def arrivals(batches: Batches, sums: Sums, appended: Appended, retention_ms: int) -> AppendDelays:
    """How late the batches of a range arrived.

    How late the data batches of a range arrived, by the largest record timestamp of each, and which were past their retention then.
    The time of an append is known between two limits only: the poll that did not find it, and the one that did. So a delay is the
    least that it can be, and what counts as past its retention surely was. A batch counts whole, by its newest record: its other
    records are older, and other batches may hold records past their retention beside newer ones, so records are a lower bound. A
    batch without a timestamp has no delay (`LogSegment.largestTimestamp` takes the time of the file for it, and ignores negative
    ones).

    Args:
        sums: of the same batches.
        retention_ms: how long a record is kept by its timestamp; -1 for ever, or not known.
    """
    prompt_ms = PROMPT_MS if retention_ms < 0 else min(PROMPT_MS, retention_ms)
    if _on_time(sums.least_timestamp, sums.max_timestamp, appended.earliest_ms, appended.latest_ms, prompt_ms):
        return AppendDelays((sums.batches, *_NO_OTHERS))
    timed = ~batches.control & (batches.max_timestamp >= 0)
    ahead = timed & (batches.max_timestamp > appended.latest_ms + AHEAD_MS)
    delays = np.maximum(appended.earliest_ms - batches.max_timestamp[timed & ~ahead], 0)
    buckets = np.bincount(np.searchsorted(_BOUNDS_MS, delays), minlength=_BUCKETS)
    late = retention_ms >= 0 and bool(len(delays)) and int(delays.max()) > retention_ms
    return AppendDelays(
        append_delay_buckets=tuple(buckets.tolist()),
        append_delay_ms=int(delays[delays > PROMPT_MS].sum()),
        ahead_batches=int(ahead.sum()),
        expired=_expired(batches, timed, appended.earliest_ms, retention_ms) if late else None,
    )


@dataclass(frozen=True, slots=True)
class Appended:
    """When the batches of a range were appended: not before ``earliest_ms``, not after ``latest_ms`` (Unix milliseconds)."""

    earliest_ms: int
    latest_ms: int


def _on_time(least: Any, newest: Any, earliest_ms: Any, latest_ms: int, prompt_ms: Any) -> Any:
    """The rule, for numbers and for columns."""
    return (least >= 0) & (least >= earliest_ms - prompt_ms) & (newest <= latest_ms + AHEAD_MS)


def _expired(batches: Batches, timed: np.ndarray, earliest_ms: int, retention_ms: int) -> bytes:
    """A batch stays at its limit, and goes a millisecond later (`UnifiedLog.deleteRetentionMsBreachedSegments`)."""
    those = np.flatnonzero(timed & (batches.max_timestamp < earliest_ms - retention_ms))
    first, last = int(those[0]), int(those[-1])
    found = (
        len(those),
        batches.records[those].sum(),
        batches.size[those].sum(),
        earliest_ms,
        batches.max_timestamp[first],
        batches.max_timestamp[last],
        batches.last_offset[last],
        batches.base_offset[first],
    )
    return np.array([found], EXPIRED).tobytes()


def on_time(sums: Mapping[str, Longs], earliest_ms: Longs, latest_ms: int, retention_ms: Longs) -> NDArray[np.bool_]:
    """Which of several ranges have no late batch and none that is ahead: all of them have a delay of 0.

    Args:
        sums: the columns of `streaming.kafka.scan.sums.sum_columns`.
        earliest_ms, retention_ms: as in `Appended` and for `arrivals`, of each range.
    """
    prompt_ms = np.where(retention_ms < 0, PROMPT_MS, np.minimum(PROMPT_MS, retention_ms))
    found: NDArray[np.bool_] = _on_time(sums["least_timestamp"], sums["max_timestamp"], earliest_ms, latest_ms, prompt_ms)
    return found


def merged_expired(first: bytes | None, later: bytes | None) -> bytes | None:
    """What was past its retention in two neighboring ranges."""
    if first is None or later is None:
        return later if first is None else first
    before, after = np.frombuffer(first, EXPIRED)[0], np.frombuffer(later, EXPIRED)[0].copy()
    for name in ("batches", "records", "bytes"):
        after[name] = plus(int(before[name]), int(after[name]))
    for name in ("first_timestamp", "first_offset"):
        after[name] = before[name]
    return bytes(after.tobytes())


def pack(batches: Batches) -> bytes:
    """Pack the columns that sums are computed from."""
    columns = np.array([getattr(batches, name) for name in _COLUMNS], "<i8").reshape(len(_COLUMNS), -1)
    differences = np.diff(columns, axis=1, prepend=0)
    by_byte = differences.view(np.uint8).reshape(len(_COLUMNS), -1, 8).transpose(0, 2, 1)
    return _VERSION + zstandard.compress(by_byte.tobytes(), _LEVEL)


def first_offset_above(detail: bytes, leader_epoch: int) -> int | None:
    """The base offset of the first packed batch of a later leader epoch; None if there is none.

    Packs the batches of a range one by one, so that a reader can cut a range that is published again at exactly the offset it knows.
    Layout, version 1: a byte 1, then a zstd frame of int64 little-endian columns, each with one value for each batch: base_offset,
    last_offset, size, records, max_timestamp, leader_epoch, attributes, magic. Each value is the difference to the one before it. A
    column is stored byte by byte: first the lowest bytes of all its values. Then most of it is zeros, and a batch takes a few bytes
    instead of 64. The detail is sent from the watcher to the fold, and is never kept longer than the journal.

    The log was truncated there. So if a reader has counted offsets after this one in an earlier epoch, it has counted bytes that were cut
    off since.

    Raises:
        FormatError: the bytes are not of this version.
    """
    columns = _unpack(detail)
    later = np.flatnonzero(columns[_COLUMNS.index("leader_epoch")] > leader_epoch)
    return int(columns[0][later[0]]) if len(later) else None
