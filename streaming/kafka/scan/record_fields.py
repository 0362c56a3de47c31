"""The fields of many records of magic 2 as columns: numbers, and where keys, values and headers lie. Nothing is copied."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.kafka.scan.record_walk import SHORT_SIZES, SHORT_VALUES, RecordWalk, first_two
from streaming.kafka.scan.walk import Bytes, Positions

MOST_HEADERS = 1000
"""A record with more headers is opened on its own: here each of them would be a step for all records."""

_INT_BYTES, _LONG_BYTES = 5, 10  # of the longest varint and varlong
_MOST_INT = 2**31 - 1
_BEYOND = 1 << 40  # a position outside every record


@dataclass(frozen=True, slots=True)
class Spans:
    """Fields in the buffer: where each begins, and its bytes, -1 for null."""

    starts: Positions
    sizes: Longs


@dataclass(frozen=True, slots=True)
class HeaderFields:
    """``counts``: the headers of each record; ``names`` and ``contents`` are of all of them, record after record."""

    counts: Longs
    names: Spans
    contents: Spans


@dataclass(frozen=True, slots=True)
class RecordFields:
    """Columns of equal length, one item a record; ``section``: the index of its batch among those that were walked.

    ``headers`` is None if they were not asked for. ``sound`` has an item for each section: whether all of its records can be read. Records
    of others are not in the columns.
    """

    section: NDArray[np.intp]
    timestamp_deltas: Longs
    offset_deltas: Longs
    keys: Spans
    values: Spans
    headers: HeaderFields | None
    sound: Flags


def read_fields(data: Bytes, walked: RecordWalk, *, headers: bool) -> RecordFields:
    """Read the fields of the records that were found.

    Args:
        data: the buffer that was walked.
        headers: also those of the headers.
    """
    starts, ends = walked.starts, walked.ends
    good = np.ones(len(starts), np.bool_)
    _, at = _varints(data, starts, ends, good)
    timestamp_deltas, at = _varints(data, at + 1, ends, good, _LONG_BYTES)  # after the attributes, which are not used
    offset_deltas, at = _varints(data, at, ends, good)
    good &= (offset_deltas >= 0) & (offset_deltas <= _MOST_INT)
    keys, at = _field(data, at, ends, good)
    values, at = _field(data, at, ends, good)
    counts, at = _varints(data, at, ends, good)
    good &= (counts >= 0) & (counts <= MOST_HEADERS) & ((counts > 0) | (at == ends))
    names = contents = None
    if headers:
        counts = np.where(good, counts, 0)
        names, contents = _headers(data, at, ends, counts, good)
    sound = walked.sound.copy()
    kept: Flags | slice = slice(None)
    if not good.all():
        sound[walked.section[~good]] = False
        kept = sound[walked.section]
    found = None
    if names is not None and contents is not None:
        of_kept = slice(None) if isinstance(kept, slice) else np.repeat(kept, counts)
        found = HeaderFields(counts[kept], _some(names, of_kept), _some(contents, of_kept))
    return RecordFields(
        walked.section[kept], timestamp_deltas[kept], offset_deltas[kept], _some(keys, kept), _some(values, kept), found, sound
    )


def take_records(fields: RecordFields, chosen: Flags) -> RecordFields:
    """Some of the records, in order."""
    headers = fields.headers
    if headers is not None:
        of_chosen = np.repeat(chosen, headers.counts)
        headers = HeaderFields(headers.counts[chosen], _some(headers.names, of_chosen), _some(headers.contents, of_chosen))
    numbers = (fields.section[chosen], fields.timestamp_deltas[chosen], fields.offset_deltas[chosen])
    return RecordFields(*numbers, _some(fields.keys, chosen), _some(fields.values, chosen), headers, fields.sound)


def slice_records(fields: RecordFields, some: slice) -> RecordFields:
    """The records of a slice, without a copy."""
    headers = fields.headers
    if headers is not None:
        before, own = int(headers.counts[: some.start].sum()), int(headers.counts[some].sum())
        of_own = slice(before, before + own)
        headers = HeaderFields(headers.counts[some], _cut(headers.names, of_own), _cut(headers.contents, of_own))
    numbers = (fields.section[some], fields.timestamp_deltas[some], fields.offset_deltas[some])
    return RecordFields(*numbers, _cut(fields.keys, some), _cut(fields.values, some), headers, fields.sound)


def _cut(spans: Spans, some: slice) -> Spans:
    return Spans(spans.starts[some], spans.sizes[some])


def _some(spans: Spans, chosen: Flags | slice) -> Spans:
    return spans if isinstance(chosen, slice) else Spans(spans.starts[chosen], spans.sizes[chosen])


def _headers(data: Bytes, at: Positions, ends: Positions, counts: Longs, good: Flags) -> tuple[Spans, Spans]:
    """Names and contents, the first header of all records at once, then the second one and so on."""
    total = int(counts.sum())
    found = np.zeros((4, total), np.int64)
    begins = np.cumsum(counts) - counts
    rows = np.flatnonzero(counts)
    rows = rows[np.argsort(-counts[rows], kind="stable")]
    left, at, bounds, fine = -counts[rows], at[rows], ends[rows], np.ones(len(rows), np.bool_)
    step, active = 0, len(rows)
    while (active := int(np.searchsorted(left[:active], -step))) > 0:
        here, bound, well = at[:active], bounds[:active], fine[:active]
        names, here = _field(data, here, bound, well)
        well &= names.sizes >= 0
        contents, here = _field(data, here, bound, well)
        found[:, begins[rows[:active]] + step] = names.starts, names.sizes, contents.starts, contents.sizes
        at[:active] = here
        step += 1
    good[rows] &= fine & (at == bounds)
    return Spans(found[0], found[1]), Spans(found[2], found[3])


def _field(data: Bytes, at: Positions, ends: Positions, good: Flags) -> tuple[Spans, Positions]:
    """A field with its length before it, -1 for null, and the position after it; at its end if it is longer than its record."""
    sizes, starts = _varints(data, at, ends, good)
    outside = (sizes < -1) | (sizes > ends - starts)
    if outside.any():
        good &= ~outside
        sizes = np.where(outside, 0, sizes)
        starts = np.minimum(starts, ends)
    return Spans(starts, sizes), starts + np.maximum(sizes, 0)


def _varints(data: Bytes, at: Positions, ends: Positions, good: Flags, longest: int = _INT_BYTES) -> tuple[Longs, Positions]:
    """Signed varints of at most ``longest`` bytes, and the positions after them; ``good`` is cleared where one leaves its record."""
    head = first_two(data, at)
    sizes = SHORT_SIZES[head]
    values = SHORT_VALUES[head].astype(np.int64)
    following: Positions = at + sizes
    if not sizes.all():
        items = np.flatnonzero(sizes == 0)
        values[items], following[items] = _long_varints(data, at[items], longest)
    outside = following > ends
    if outside.any():
        good &= ~outside
        values[outside] = 0
        np.minimum(following, ends, out=following)
    return values, following


def _long_varints(data: Bytes, at: Positions, longest: int) -> tuple[Longs, Positions]:
    """Varints of three bytes or more, byte by byte; one that is too long or too large leads beyond every record."""
    raw, following = np.zeros(len(at), np.uint64), at.copy()
    going = np.arange(len(at))
    for number in range(longest):
        byte = data[following[going]]
        raw[going] |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * number)
        following[going] += 1
        if number == _LONG_BYTES - 1:  # of the last byte one bit is left
            following[going[(byte & 0x7E) != 0]] += _BEYOND
        going = going[byte >= 0x80]
        if not len(going):
            break
    following[going] += _BEYOND
    if longest == _INT_BYTES:
        following[raw >> np.uint64(32) != 0] += _BEYOND
    return (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64), following
