"""Where the records of many batches of magic 2 begin, and their fields as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.errors import FormatError
from streaming.kafka.formats.records import LEAST_RECORD_BYTES
from streaming.kafka.formats.wire import read_varint
from streaming.kafka.scan.walk import Bytes, Positions

PADDING = 16
"""A buffer has so many bytes after its last section: a varint is read at once, wherever it is."""

FEW_SECTIONS = 32
"""With fewer sections than this, a plain loop (0.2 us a record) is faster than a numpy step (some 8 us, for any number of sections)."""

_BEYOND = 1 << 30  # a step that leaves every section

MOST_HEADERS = 1000
"""A record with more headers is opened on its own: here each of them would be a step for all records."""

_INT_BYTES, _LONG_BYTES = 5, 10  # of the longest varint and varlong
_MOST_INT = 2**31 - 1
_BEYOND_RECORDS = 1 << 40  # a position outside every record


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


def walk_records(data: Bytes, starts: Positions, ends: Positions, counts: Longs) -> RecordWalk:
    """Find all records of the sections ``data[starts:ends]``, which are announced to have ``counts`` records.

    Args:
        data: with `PADDING` bytes after the last section.
    """
    sound = (counts >= 0) & (counts * LEAST_RECORD_BYTES <= ends - starts)
    counts = np.where(sound, counts, 0)
    begins = np.cumsum(counts) - counts
    found = np.empty(int(counts.sum()), np.int64)
    order = np.argsort(-counts, kind="stable")  # those that still have records are always the first ones
    left, at, place, limit = -counts[order], starts[order], begins[order], ends[order]
    step, active = 0, len(order)
    whole = np.ones(len(order), np.bool_)
    while (active := int(np.searchsorted(left[:active], -step))) > FEW_SECTIONS:
        here = at[:active]
        found[place[:active] + step] = here
        moves = _STEPS[first_two(data, here)]
        if not moves.all():
            for item in np.flatnonzero(moves == 0).tolist():
                moves[item] = _long_step(data, int(here[item]), int(limit[item]))
        here += moves
        beyond = here > limit[:active]
        if beyond.any():
            whole[:active] &= ~beyond
            np.minimum(here, limit[:active], out=here)
        step += 1
    for item in range(active):
        rest = _walk_one(data, int(at[item]), int(limit[item]), int(-left[item]) - step)
        whole[item] &= rest is not None
        if rest is not None:
            begin = int(place[item]) + step
            found[begin : begin + len(rest) - 1] = rest[:-1]
            at[item] = rest[-1]
    sound[order] &= whole & (at == limit)
    return _of_sound(found, begins, counts, ends, sound)


@dataclass(frozen=True, slots=True)
class RecordWalk:
    """Where records begin and end in the buffer, section after section; ``section``: which one each is in.

    ``sound``: the sections in which as many records as announced fill all bytes. Records of others are not in it.
    """

    starts: Positions
    ends: Positions
    section: NDArray[np.intp]
    sound: Flags


def _short_varints() -> tuple[NDArray[np.uint8], NDArray[np.int16]]:
    """By the first two bytes: of how many a signed varint has, 0 for more than two, and its value."""
    heads = np.arange(1 << 16)
    first, second = heads & 0xFF, heads >> 8
    raw = np.where(first < 0x80, first, (first & 0x7F) | second << 7)
    sizes = np.where(first < 0x80, 1, np.where(second < 0x80, 2, 0))
    return sizes.astype(np.uint8), np.where(sizes > 0, (raw >> 1) ^ -(raw & 1), 0).astype(np.int16)


SHORT_SIZES, SHORT_VALUES = _short_varints()
"""Varints of one or two bytes, by these bytes as a little-endian number: their size, 0 if they are longer, and their value."""


_STEPS = np.where(SHORT_SIZES == 0, 0, np.where(SHORT_VALUES < 0, _BEYOND, SHORT_SIZES.astype(np.int32) + SHORT_VALUES)).astype(np.int32)


def first_two(data: Bytes, positions: Positions) -> NDArray[np.uint16]:
    """The two bytes at each of ``positions`` as a little-endian number."""
    heads: NDArray[np.uint16] = np.ndarray((len(data) - 1,), "V2", buffer=data, strides=(1,))[positions].view("<u2")
    return heads


def _long_step(data: Bytes, position: int, limit: int) -> int:
    """The bytes of a record whose length takes three bytes or more."""
    try:
        length, start = read_varint(data.data, position)
    except FormatError:  # the section is not sound: the caller that opens it record by record finds out why
        return _BEYOND
    return start + length - position if 0 <= length <= limit - start else _BEYOND


def _walk_one(data: Bytes, position: int, end: int, count: int) -> list[int] | None:
    """Where ``count`` records begin and the last one ends; None if they do not fit."""
    section, begin, position, end = data[position : end + PADDING].tobytes(), position, 0, end - position
    found = [begin]
    for _ in range(count):
        first, second = section[position], section[position + 1]
        if first < 0x80:
            position += _BEYOND if first & 1 else (first >> 1) + 1
        elif second < 0x80 and not first & 1:
            position += (first & 0x7F | second << 7) // 2 + 2
        else:
            position += _long_step(data, begin + position, begin + end)
        if position > end:
            return None
        found.append(begin + position)
    return found


def _of_sound(positions: Positions, begins: Positions, counts: Longs, ends: Positions, sound: Flags) -> RecordWalk:
    section = np.repeat(np.arange(len(counts)), counts)
    following = np.empty_like(positions)
    following[:-1] = positions[1:]
    having = counts > 0
    following[(begins + counts - 1)[having]] = ends[having]
    if not sound.all():
        kept = sound[section]
        positions, following, section = positions[kept], following[kept], section[kept]
    return RecordWalk(positions, following, section, sound)


def read_fields(data: Bytes, walked: RecordWalk, *, headers: bool) -> RecordFields:
    """Read the fields of the records that were found.

    Finds where the records of many batches begin: the records sections of magic 2 are walked side by side, one record of each at a
    time. A record begins with its own length, so records are found one after the other (`streaming.kafka.formats.records` has the
    layout). In one section that is a loop in Python. In many sections numpy takes a step in all of them at once, which is several
    times faster.

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
            following[going[(byte & 0x7E) != 0]] += _BEYOND_RECORDS
        going = going[byte >= 0x80]
        if not len(going):
            break
    following[going] += _BEYOND_RECORDS
    if longest == _INT_BYTES:
        following[raw >> np.uint64(32) != 0] += _BEYOND_RECORDS
    return (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64), following


def _field(data: Bytes, at: Positions, ends: Positions, good: Flags) -> tuple[Spans, Positions]:
    """A field with its length before it, -1 for null, and the position after it; at its end if it is longer than its record."""
    sizes, starts = _varints(data, at, ends, good)
    outside = (sizes < -1) | (sizes > ends - starts)
    if outside.any():
        good &= ~outside
        sizes = np.where(outside, 0, sizes)
        starts = np.minimum(starts, ends)
    return Spans(starts, sizes), starts + np.maximum(sizes, 0)


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


def _some(spans: Spans, chosen: Flags | slice) -> Spans:
    return spans if isinstance(chosen, slice) else Spans(spans.starts[chosen], spans.sizes[chosen])


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
