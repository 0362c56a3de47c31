"""Find where every entry of a ``.log`` begins: many lanes walked at once, each proven by where it ends.

An entry says only how long it is, so entries are found one after the other. Kafka's sparse ``.index`` gives positions inside the segment;
a walk begun at each of them, all stepped together with numpy, finds the same entries many times faster. The index of an active segment may
be stale or absent (`AbstractIndex.truncateToEntries` forgets entries without erasing them), so a lane counts only if the lane before it,
proven itself, ended exactly where it begins.
"""

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from streaming.kafka.layout import LENGTH_AT, MIN_LENGTH, PREFIX_BYTES

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]

FEW_LANES = 12
"""Below this many lanes a plain loop (0.4 us a step) beats a numpy step (some 10 us, whatever it carries)."""

_LENGTH = Struct(">i")


class Stop(IntEnum):
    """Why a lane ended where it did."""

    END = 0  # exactly at its end
    SHORT = 1  # the next entry is not whole before the end: not yet, or the end was no boundary
    ZEROS = 2  # a length of 0: the zero tail of a preallocated file
    BAD_LENGTH = 3  # a length that Kafka cannot have written


@dataclass(frozen=True, slots=True)
class Lanes:
    """What a walk found: ``positions`` ascending, and for every lane where it came to and why it ended there."""

    positions: Positions
    reached: Positions
    stops: NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Walk:
    """A proven walk: the positions of all whole entries from the start, the end of the last one, and why it ended."""

    positions: Positions
    end: int
    stop: Stop


def walk_lanes(buffer: Bytes, starts: Positions, ends: Positions) -> Lanes:
    """Walk from each of ``starts`` up to its ``ends`` (byte positions in ``buffer``, ascending, not overlapping).

    Nothing is judged but lengths: whether a start was a boundary at all is for the caller to know or to prove.
    """
    reached, stops, counts = starts.copy(), np.zeros(len(starts), np.int8), np.zeros(len(starts), np.int64)
    steps: list[tuple[NDArray[np.intp], Positions]] = []
    lane, position, end = np.arange(len(starts)), starts, ends
    if len(buffer) >= PREFIX_BYTES and len(starts) > FEW_LANES:
        lengths = np.ndarray((len(buffer) - 3,), "V4", buffer=buffer, strides=(1,))[LENGTH_AT:]
        while len(lane) > FEW_LANES:
            # at the end of a lane this is the length of what follows it, or of anything: that entry is not whole before the end either way
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


def _stops(position: Positions, end: Positions, length: Positions) -> NDArray[np.int64]:
    """Why lanes ended at these positions."""
    bad = np.where(length == 0, Stop.ZEROS, np.where(length < MIN_LENGTH, Stop.BAD_LENGTH, Stop.SHORT))
    stops: NDArray[np.int64] = np.where(position == end, Stop.END, np.where(position + PREFIX_BYTES > end, Stop.SHORT, bad))
    return stops


def _in_order(
    counts: Positions, steps: list[tuple[NDArray[np.intp], Positions]], lane: NDArray[np.intp], singles: list[Positions]
) -> Positions:
    """What the steps found, and lane by lane what was walked plainly behind them: ascending, for so are the lanes. No sort is as cheap."""
    positions = np.empty(int(counts.sum()), np.int64)
    begins = np.cumsum(counts) - counts
    for number, (own, position) in enumerate(steps):
        positions[begins[own] + number] = position
    for begin, single in zip((begins[lane] + len(steps)).tolist(), singles, strict=True):
        positions[begin : begin + len(single)] = single
    return positions


def _walk_one(buffer: Bytes, position: int, end: int, until: frozenset[int] = frozenset()) -> tuple[Positions, int, Stop]:
    """The plain loop: from ``position`` to ``end``, or at least one entry on, to the first position in ``until``."""
    view, found, read = buffer.data, [], _LENGTH.unpack_from
    stop = Stop.END
    while position < end:
        if position + PREFIX_BYTES > end:
            stop = Stop.SHORT
            break
        (length,) = read(view, position + LENGTH_AT)
        if length < MIN_LENGTH or position + PREFIX_BYTES + length > end:
            stop = Stop.ZEROS if length == 0 else Stop.BAD_LENGTH if length < MIN_LENGTH else Stop.SHORT
            break
        found.append(position)
        position += PREFIX_BYTES + length
        if position in until:
            break
    return np.array(found, np.int64), position, stop


def walk(buffer: Bytes, start: int, end: int, seeds: Positions | None = None) -> Walk:
    """Walk all whole entries of ``buffer[start:end]``; ``start`` must be the beginning of one.

    Args:
        seeds: positions where an index says that an entry begins, ascending; wrong ones cost time, never correctness.
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


def _prove(buffer: Bytes, starts: Positions, lanes: Lanes, end: int, broken: NDArray[np.intp]) -> Walk:
    """Keep the lanes that a proven position leads to; walk plainly from where one ended off the next seed until it meets one."""
    kept: list[Positions] = []
    seeds = frozenset(starts.tolist())
    lane = 0
    while True:
        following = np.searchsorted(broken, lane)
        last = int(broken[following]) if following < len(broken) else len(starts) - 1
        position = int(lanes.reached[last])
        begin, stop_at = np.searchsorted(lanes.positions, [starts[lane], starts[last + 1] if last + 1 < len(starts) else end])
        # a lane that began at a proven position found true entries only: all of them lie before its own end
        kept.append(lanes.positions[begin:stop_at])
        if last == len(starts) - 1:
            return Walk(np.concatenate(kept), position, Stop(int(lanes.stops[last])))
        plain, position, stop = _walk_one(buffer, position, end, seeds)
        kept.append(plain)
        if stop is not Stop.END or position == end:
            return Walk(np.concatenate(kept), position, stop)
        lane = int(np.searchsorted(starts, position))
