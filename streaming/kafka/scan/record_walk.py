"""Finds where the records of many batches begin: the records sections of magic 2 are walked side by side, one record of each at a time.

A record begins with its own length, so records are found one after the other (`streaming.kafka.formats.records` has the layout). In one
section that is a loop in Python. In many sections numpy takes a step in all of them at once, which is several times faster.
"""

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


@dataclass(frozen=True, slots=True)
class RecordWalk:
    """Where records begin and end in the buffer, section after section; ``section``: which one each is in.

    ``sound``: the sections in which as many records as announced fill all bytes. Records of others are not in it.
    """

    starts: Positions
    ends: Positions
    section: NDArray[np.intp]
    sound: Flags


def first_two(data: Bytes, positions: Positions) -> NDArray[np.uint16]:
    """The two bytes at each of ``positions`` as a little-endian number."""
    heads: NDArray[np.uint16] = np.ndarray((len(data) - 1,), "V2", buffer=data, strides=(1,))[positions].view("<u2")
    return heads


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


def _long_step(data: Bytes, position: int, limit: int) -> int:
    """The bytes of a record whose length takes three bytes or more."""
    try:
        length, start = read_varint(data.data, position)
    except FormatError:  # the section is not sound: whoever opens it record by record finds out why
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
