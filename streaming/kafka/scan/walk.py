"""Finds the position of every entry of a ``.log``: many lanes are walked at once, and each lane is proven by the end of the one before.

An entry only contains its own length, so entries are found one after the other. Kafka's sparse ``.index`` gives positions inside the
segment. A walk starts at each of these positions, and numpy advances all walks together, which finds the same entries many times faster.
The index of an active segment may be stale or absent (`AbstractIndex.truncateToEntries` forgets entries without erasing them). So a lane
counts only if the lane before it is proven and ended exactly where this one begins.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from streaming.kafka.formats.layout import LENGTH_AT, MIN_LENGTH, PREFIX_BYTES

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]

FEW_LANES = 12
"""With fewer lanes than this, a plain loop (0.4 us for each step) is faster than a numpy step (some 10 us, for any number of lanes)."""

_LENGTH = Struct(">i")


def walk(buffer: Bytes, start: int, end: int, seeds: Positions | None = None) -> Walk:
    """Walk all complete entries of ``buffer[start:end]``; ``start`` must be the beginning of one.

    Args:
        seeds: ascending positions where an entry begins according to an index. Wrong ones cost time, but never correctness.
    """
    if seeds is None or not len(seeds):
        return Walk(*_walk_one(buffer, start, end))
    seeds = seeds[(seeds > start) & (seeds < end)]
    starts = np.concatenate([np.array([start]), seeds])
    lanes = walk_lanes(buffer, starts, np.append(starts[1:], end))
    broken = np.flatnonzero(lanes.reached[:-1] != starts[1:])
    if not len(broken):
        return Walk(lanes.positions, int(lanes.reached[-1]), Stop(int(lanes.stops[-1])))
    return _prove(buffer, starts, lanes, end, broken)


class Stop(IntEnum):
    """The reason why a lane ended."""

    END = 0  # exactly at its end
    SHORT = 1  # the next entry is not complete before the end: not written yet, or the end was no boundary
    ZEROS = 2  # a length of 0: the zero tail of a preallocated file
    BAD_LENGTH = 3  # a length that Kafka cannot have written


@dataclass(frozen=True, slots=True)
class Walk:
    """A proven walk: the positions of all complete entries from the start, the end of the last one, and why it ended."""

    positions: Positions
    end: int
    stop: Stop


def _walk_one(buffer: Bytes, position: int, end: int, until: frozenset[int] = frozenset()) -> tuple[Positions, int, Stop]:
    found, position, stop = walk_plainly(buffer.data, position, end, until=until)
    return np.array(found, np.int64), position, stop


def walk_plainly(
    view: memoryview, position: int, end: int, *, most: int = sys.maxsize, until: frozenset[int] = frozenset()
) -> tuple[list[int], int, Stop]:
    """Walk in a plain loop from ``position`` to ``end``, or to the first position in ``until`` after at least one entry.

    Args:
        most: entries. There may be more of them if the walk ends before ``end`` without any other reason.
    """
    found: list[int] = []
    read = _LENGTH.unpack_from
    for _ in range(most):
        if position >= end:
            break
        if position + PREFIX_BYTES > end:
            return found, position, Stop.SHORT
        (length,) = read(view, position + LENGTH_AT)
        if length < MIN_LENGTH or position + PREFIX_BYTES + length > end:
            return found, position, Stop.ZEROS if length == 0 else Stop.BAD_LENGTH if length < MIN_LENGTH else Stop.SHORT
        found.append(position)
        position += PREFIX_BYTES + length
        if position in until:
            break
    return found, position, Stop.END


def walk_lanes(buffer: Bytes, starts: Positions, ends: Positions) -> Lanes:
    """Walk from each of ``starts`` up to its ``ends`` (byte positions in ``buffer``, ascending, not overlapping).

    Only lengths are checked. The caller has to know or to prove that a start is a boundary.
    """
    reached, stops, counts = starts.copy(), np.zeros(len(starts), np.int8), np.zeros(len(starts), np.int64)
    steps: list[tuple[NDArray[np.intp], Positions]] = []
    lane, position, end = np.arange(len(starts)), starts, ends
    if len(buffer) >= PREFIX_BYTES and len(starts) > FEW_LANES:
        lengths = np.ndarray((len(buffer) - 3,), "V4", buffer=buffer, strides=(1,))[LENGTH_AT:]
        while len(lane) > FEW_LANES:
            # At the end of a lane, this is the length of the next entry, or of anything. Either way, that entry is not complete before the
            # end.
            length = lengths[np.minimum(position, len(lengths) - 1)].view(">i4").astype(np.int64)
            following = position + PREFIX_BYTES + length
            whole = (following <= end) & (length >= MIN_LENGTH)
            if not whole.all():
                done, going = np.flatnonzero(~whole), np.flatnonzero(whole)
                own, at, bound = lane[done], position[done], end[done]
                reached[own], counts[own] = at, len(steps)
                if (at != bound).any():
                    stops[own] = _stops(at, bound, length[done])
                lane, position, end, following = lane[going], position[going], end[going], following[going]
            steps.append((lane, position))
            position = following
    singles = []
    for one, at, limit in zip(lane.tolist(), position.tolist(), end.tolist(), strict=True):
        single, reached[one], stops[one] = _walk_one(buffer, at, limit)
        singles.append(single)
        counts[one] = len(steps) + len(single)
    return Lanes(_in_order(counts, steps, lane, singles), reached, stops)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The result of a walk: ``positions`` ascending, and for every lane where it ended and why."""

    positions: Positions
    reached: Positions
    stops: NDArray[np.int8]


def _stops(position: Positions, end: Positions, length: Positions) -> NDArray[np.int64]:
    """The reasons why lanes ended at these positions."""
    bad = np.where(length == 0, Stop.ZEROS, np.where(length < MIN_LENGTH, Stop.BAD_LENGTH, Stop.SHORT))
    stops: NDArray[np.int64] = np.where(position == end, Stop.END, np.where(position + PREFIX_BYTES > end, Stop.SHORT, bad))
    return stops


def _in_order(
    counts: Positions, steps: list[tuple[NDArray[np.intp], Positions]], lane: NDArray[np.intp], singles: list[Positions]
) -> Positions:
    """Combine the positions of the common steps with those of the plain walks, lane by lane: so they are ascending without a sort."""
    positions = np.empty(int(counts.sum()), np.int64)
    begins = np.cumsum(counts) - counts
    for number, (own, position) in enumerate(steps):
        positions[begins[own] + number] = position
    for begin, single in zip((begins[lane] + len(steps)).tolist(), singles, strict=True):
        positions[begin : begin + len(single)] = single
    return positions


def _prove(buffer: Bytes, starts: Positions, lanes: Lanes, end: int, broken: NDArray[np.intp]) -> Walk:
    """Keep the lanes that begin at a proven position.

    If a lane ends elsewhere than at the next seed, walk plainly from its end until that walk meets a seed.
    """
    kept: list[Positions] = []
    seeds = frozenset(starts.tolist())
    lane = 0
    while True:
        following = np.searchsorted(broken, lane)
        last = int(broken[following]) if following < len(broken) else len(starts) - 1
        position = int(lanes.reached[last])
        begin, stop_at = np.searchsorted(lanes.positions, [starts[lane], starts[last + 1] if last + 1 < len(starts) else end])
        # A lane that began at a proven position found true entries only, and all of them are before its own end.
        kept.append(lanes.positions[begin:stop_at])
        if last == len(starts) - 1:
            return Walk(np.concatenate(kept), position, Stop(int(lanes.stops[last])))
        plain, position, stop = _walk_one(buffer, position, end, seeds)
        kept.append(plain)
        if stop is not Stop.END or position == end:
            return Walk(np.concatenate(kept), position, stop)
        lane = int(np.searchsorted(starts, position))


def batch_size_at(head: bytes) -> int:
    """The size of the batch that begins with these 12 bytes (or more). It may be wrong: it is checked only once the batch is complete."""
    (length,) = _LENGTH.unpack_from(head, LENGTH_AT)
    return PREFIX_BYTES + int(length)
