"""Finds damaged batches by their CRC, their framing and their order, and entries of sparse indexes that the log does not prove."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from streaming.kafka.formats.checkpoint_files import EpochEntry
from streaming.kafka.formats.layout import CHECKED_FROM, CURRENT_MAGIC, OLD_CHECKED_FROM
from streaming.kafka.formats.segment_indexes import OffsetEntries, TimeEntries
from streaming.kafka.scan.headers import Batches, first_broken, read_headers
from streaming.kafka.scan.walk import Bytes, Positions, Stop, walk

Registers = NDArray[np.uint32]

_Map = NDArray[np.uint32]
"""Four tables of 256 registers, one after the other: the part that each byte of a register adds to its image."""

MOST_BYTES = 1 << 15
"""The largest batch that is checked together with others. For larger ones, a call for each is cheap enough."""

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, reflected
_ONES = 0xFFFFFFFF
_DIGIT_BITS = 6
_BLOCK_BITS = 2 * _DIGIT_BITS
_UNCOVERED = np.dtype(f"V{CHECKED_FROM}")

_MANY = 64

NO_EPOCH = -1


def check_batches(buffer: Bytes, at: CheckPosition, around: SegmentFacts, seeds: Positions | None = None) -> Checked:
    """Check all complete batches of ``buffer``, which begins at the position ``at`` of a segment.

    Args:
        buffer: is written to, and is unchanged when this returns.
        seeds: positions in ``buffer`` where batches begin according to an index, see `walk`.
    """
    walked = walk(buffer, 0, len(buffer), seeds)
    batches, end, stop = read_headers(buffer, walked.positions), walked.end, walked.stop
    if (broken := first_broken(batches.headers)) is not None:
        batches, end, stop = batches.take(slice(0, broken)), int(batches.positions[broken]), Stop.BAD_LENGTH
    wrong = wrong_crcs(buffer, batches)
    damages = [
        Damage(Fault.CRC, at.position + int(batches.positions[item]), int(batches.headers["base_offset"][item])) for item in wrong.tolist()
    ]
    if len(wrong):
        sound = np.ones(len(batches), np.bool_)
        sound[wrong] = False
        batches = batches.take(sound)
    reached, misplaced = check_order(batches, at, around)
    damages += misplaced
    reached = CheckPosition(at.position + end, reached.next_offset, reached.leader_epoch, reached.last)
    return Checked(reached, stop, tuple(sorted(damages, key=lambda damage: damage.position)))


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch that fits: its position, the smallest offset that it was allowed to have, and the number of its offsets."""

    position: int
    offset: int
    floor: int
    span: int
    epoch: int


@dataclass(frozen=True, slots=True)
class CheckPosition:
    """How far a segment has been checked: the next byte, the smallest offset that may be there, the last leader epoch."""

    position: int
    next_offset: int
    leader_epoch: int = NO_EPOCH
    last: _Batch | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """The known facts about a closed segment besides its bytes; ``end_offset`` is the base offset of the next segment."""

    base_offset: int
    end_offset: int
    epochs: Sequence[EpochEntry] = ()


class Fault(StrEnum):
    """The kind of damage at a position in a segment."""

    FRAMING = "framing"  # no batch begins here, or it does not end within the file
    CRC = "crc"
    OFFSET = "offset"  # the CRC is right, but the base offset does not fit between its neighbours
    EPOCH = "epoch"  # the CRC is right, but the leader epoch is not that of its offset


@dataclass(frozen=True, slots=True)
class Damage:
    """One damaged position: bytes from the beginning of the segment, and the offset in the header (without a batch, the expected one)."""

    fault: Fault
    position: int
    offset: int


@dataclass(frozen=True, slots=True)
class Checked:
    """The end of a check, why it ended there, and the damages that it found, in the order of the segment."""

    reached: CheckPosition
    stop: Stop
    damages: tuple[Damage, ...]


def wrong_crcs(buffer: NDArray[np.uint8], batches: Batches) -> NDArray[np.intp]:
    """The items of `batches` whose bytes in `buffer` do not have the CRC of their header, ascending.

    Finds the batches of a segment that do not have the CRC of their header, all at the library's speed (`RecordBatch.isValid`). The
    CRC-32C of many small batches in a row is checked with one call, because a call for each costs several times as much as its bytes.
    A CRC whose register begins with 0 is linear. So the CRC of a stretch is the sum (xor) of the CRCs of its parts, each shifted by
    as many zero bytes as there are bytes after the part. The stored CRCs of the batches are shifted and summed with numpy. The result
    must equal the CRC of the whole stretch, in which all bytes that the batches' CRCs do not cover are set to zero. One wrong batch
    is always found; several wrong ones pass in one stretch of 2^32. A shift is a linear map of 32 bits, stored as four tables for the
    four bytes of a register.

    Every batch is complete in `buffer`, at its position, and has at least the size of its own header. The buffer may be written to, and is
    unchanged in the end. If several small batches in a row are wrong, there is a chance of 2^-32 that none of them is found.
    """
    stored = stored_crcs(batches)
    if _in_a_row(batches) and buffer.flags.writeable and are_right(buffer, batches.positions, batches.size, stored):
        return np.empty(0, np.intp)
    begins, ends = batches.positions.tolist(), (batches.positions + batches.size).tolist()
    value, old = google_crc32c.value, (batches.magic < CURRENT_MAGIC).tolist()
    found = [
        zlib.crc32(buffer[begin + OLD_CHECKED_FROM : end].data) if is_old else value(buffer[begin + CHECKED_FROM : end])
        for begin, end, is_old in zip(begins, ends, old, strict=True)
    ]
    return np.flatnonzero(np.array(found, np.uint32) != stored)


def stored_crcs(batches: Batches) -> NDArray[np.uint32]:
    """The CRC in the header of each batch."""
    stored = batches.headers["crc"].astype(np.uint32)
    old = batches.magic < CURRENT_MAGIC
    if old.any():  # in an old message it is at the position of the leader epoch in magic 2
        stored[old] = batches.headers["partition_leader_epoch"][old].astype(np.int32).view(np.uint32)
    return stored


def _in_a_row(batches: Batches) -> bool:
    """Whether these are small batches of magic 2, one directly after the other, and enough that one check of all of them pays off."""
    return (
        len(batches) >= _MANY
        and bool((batches.magic == CURRENT_MAGIC).all())
        and int(batches.size.max()) <= MOST_BYTES
        and bool((batches.positions[1:] == batches.positions[:-1] + batches.size[:-1]).all())
    )


def are_right(buffer: NDArray[np.uint8], positions: NDArray[np.int64], sizes: NDArray[np.int64], stored: Registers) -> bool:
    """Whether all batches have their stored CRC, except for a chance of 2^-32.

    Args:
        buffer: contains the batches; it is written to, and is unchanged when this returns.
        positions: where the batches begin, ascending, each at the end of the one before it.
        sizes: their sizes, at most `MOST_BYTES`.
        stored: the CRC in the header of each batch.
    """
    begin, ends = int(positions[0]), positions + sizes
    uncovered = np.ndarray((len(buffer) - CHECKED_FROM + 1,), _UNCOVERED, buffer=buffer, strides=(1,))
    kept = uncovered[positions]
    uncovered[positions] = np.zeros(1, _UNCOVERED)
    try:
        found = google_crc32c.extend(_ONES, buffer[begin : int(ends[-1])]) ^ _ONES  # begins with 0, not with ones
    finally:
        uncovered[positions] = kept
    registers = stored ^ np.uint32(_ONES) ^ _ones_shifted()[sizes - CHECKED_FROM]
    return bool(found == _sum(registers, ends[-1] - ends))


@cache
def _ones_shifted() -> Registers:
    """A register of ones after 0, 1, 2 ... zero bytes."""
    found = np.array([_ONES], np.uint32)
    for bit in range(MOST_BYTES.bit_length()):
        found = np.concatenate([found, _shift(found, _doubled(bit))])
    return found


def _shift(registers: Registers, one: _Map) -> Registers:
    shifted: Registers = one[registers & 255]
    for byte in (1, 2, 3):
        shifted ^= one[(registers >> 8 * byte & 255) + 256 * byte]
    return shifted


@cache
def _doubled(times: int) -> _Map:
    """The shift by 2^times bytes."""
    if times:
        half = _doubled(times - 1)
        return _shift(half, half)
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ _POLYNOMIAL, table >> 1).astype(np.uint32)
    rest = np.arange(256, dtype=np.uint32)
    return np.concatenate([table, rest, rest << 8, rest << 16])


def _sum(registers: Registers, following: NDArray[np.int64]) -> int:
    """The sum of the registers, each shifted by the bytes after it (descending): first inside each block, then block by block."""
    low, high = _digit_maps()
    digit = (1 << _DIGIT_BITS) - 1
    shifted = _shift_each(_shift_each(registers, low, following & digit), high, following >> _DIGIT_BITS & digit)
    block = following >> _BLOCK_BITS
    firsts = np.flatnonzero(np.append(True, block[1:] != block[:-1]))
    blocks = np.zeros(1 << int(block[0]).bit_length(), np.uint32)
    blocks[block[firsts]] = np.bitwise_xor.reduceat(shifted, firsts)
    level = _BLOCK_BITS
    while len(blocks) > 1:
        blocks = blocks[0::2] ^ _shift(blocks[1::2], _doubled(level))
        level += 1
    return int(blocks[0])


@cache
def _digit_maps() -> tuple[_Map, _Map]:
    """The shifts by 0, 1, 2 ... bytes, and the shifts by multiples of that number of bytes."""
    same = np.concatenate([np.arange(256, dtype=np.uint32) << 8 * byte for byte in range(4)])
    return _powers(same, 0), _powers(same, _DIGIT_BITS)


def _powers(same: _Map, lowest: int) -> _Map:
    maps = same
    for bit in range(_DIGIT_BITS):
        maps = np.concatenate([maps, _shift(maps, _doubled(lowest + bit))])
    return maps


def _shift_each(registers: Registers, maps: _Map, which: NDArray[np.int64]) -> Registers:
    """Apply the map with the given number to each register; ``maps`` are stored one after the other."""
    base = which << 10
    shifted: Registers = maps[base + (registers & 255)]
    for byte in (1, 2, 3):
        base += 256
        shifted ^= maps[base + (registers >> 8 * byte & 255)]
    return shifted


def check_order(batches: Batches, at: CheckPosition, around: SegmentFacts) -> tuple[CheckPosition, list[Damage]]:
    """Compare offsets and leader epochs of batches with right CRCs with their surroundings; positions count from ``at``."""
    if not len(batches):
        return at, []
    wrong = _suspected(batches, at, around)
    if not wrong:
        return _after(batches, at), []
    return _one_by_one(batches, at, around)


def _suspected(batches: Batches, at: CheckPosition, around: SegmentFacts) -> bool:
    """Whether anything is wrong at all, computed for all batches at once."""
    floors = np.append(at.next_offset, batches.last_offset[:-1] + 1)
    misplaced = (batches.base_offset < floors) | (batches.last_offset < batches.base_offset) | (batches.last_offset >= around.end_offset)
    epochs = _stored_epochs(batches)
    before = np.append(at.leader_epoch, epochs[:-1])
    return bool(misplaced.any() or ((epochs < before) & (batches.magic == CURRENT_MAGIC)).any() or _other_epochs(batches, around).any())


def _stored_epochs(batches: Batches) -> NDArray[np.int64]:
    return np.where(batches.magic == CURRENT_MAGIC, batches.leader_epoch, NO_EPOCH)


def _other_epochs(batches: Batches, around: SegmentFacts) -> NDArray[np.bool_]:
    """Which batches have another leader epoch than the checkpoint names for their offset.

    The file may lag behind the log, so after the start of the last epoch that it names, a higher epoch may be right.
    """
    if not around.epochs:
        return np.zeros(len(batches), np.bool_)
    starts = np.array([entry.start_offset for entry in around.epochs], np.int64)
    named = np.array([entry.epoch for entry in around.epochs], np.int64)
    at = np.searchsorted(starts, batches.base_offset, side="right") - 1
    other: NDArray[np.bool_] = (batches.magic == CURRENT_MAGIC) & (at >= 0) & (batches.leader_epoch != named[at])
    return other & ((at < len(starts) - 1) | (batches.leader_epoch < named[at]))


def _after(batches: Batches, at: CheckPosition) -> CheckPosition:
    """The position after batches that all fit."""
    epochs = _stored_epochs(batches)
    floor = at.next_offset if len(batches) == 1 else int(batches.last_offset[-2]) + 1
    last = _batch(batches, len(batches) - 1, at, floor)
    return CheckPosition(
        at.position + int(batches.positions[-1] + batches.size[-1]), int(batches.last_offset[-1]) + 1, int(epochs[-1]), last
    )


def _batch(batches: Batches, item: int, at: CheckPosition, floor: int) -> _Batch:
    base, last = int(batches.base_offset[item]), int(batches.last_offset[item])
    epoch = int(batches.leader_epoch[item]) if batches.magic[item] == CURRENT_MAGIC else NO_EPOCH
    return _Batch(at.position + int(batches.positions[item]), base, floor, last - base + 1, epoch)


def _one_by_one(batches: Batches, at: CheckPosition, around: SegmentFacts) -> tuple[CheckPosition, list[Damage]]:
    """Find the batches that do not fit. If two neighbours contradict each other, it is the one without which the others agree."""
    damages: list[Damage] = []
    floor, epoch, last = at.next_offset, at.leader_epoch, at.last
    following = [*_stored_epochs(batches)[1:].tolist(), NO_EPOCH]
    for item, other in enumerate(_other_epochs(batches, around).tolist()):
        batch = _batch(batches, item, at, floor)
        if batch.span < 1 or batch.offset + batch.span > around.end_offset:
            damages.append(Damage(Fault.OFFSET, batch.position, batch.offset))
            continue
        if batch.offset < floor:
            if last is None or batch.offset < last.floor + last.span:
                damages.append(Damage(Fault.OFFSET, batch.position, batch.offset))
                continue
            damages.append(Damage(Fault.OFFSET, last.position, last.offset))
        if other or batch.epoch < NO_EPOCH:
            damages.append(Damage(Fault.EPOCH, batch.position, batch.offset))
        elif NO_EPOCH < batch.epoch < epoch:
            blamed = batch if last is None or following[item] >= epoch else last
            damages.append(Damage(Fault.EPOCH, blamed.position, blamed.offset))
            epoch = epoch if blamed is batch else batch.epoch
        else:
            epoch = batch.epoch
        floor, last = batch.offset + batch.span, batch
    end = at.position + int(batches.positions[-1] + batches.size[-1])
    return CheckPosition(end, floor, epoch, last), damages


def check_end(at: CheckPosition, following_epoch: int) -> tuple[Damage, ...]:
    """Compare the last batch of a segment with the first one of the next segment; -1 if that has no leader epoch."""
    if at.last is not None and NO_EPOCH < following_epoch < at.leader_epoch:
        return (Damage(Fault.EPOCH, at.last.position, at.last.offset),)
    return ()


def proven_offset_entries(entries: OffsetEntries, base_offset: int, batches: Batches) -> NDArray[np.bool_]:
    """For each entry, whether the log proves it.

    Checks which entries of a sparse index are proven by the log itself (`OffsetIndex`, `TimeIndex`, `DumpLogSegments`). The index of
    an active segment may have stale entries after the valid ones, which look right by themselves. A valid offset entry (o, p) points
    to a batch at position p. The meaning of o depends on the version: the end of that batch (Kafka 4.1, or an index that recovery
    made), the end of the append that begins with it (2.0 to 4.0), or the beginning of the batch (before 2.0). A valid time entry
    names the batch that has its timestamp.

    Args:
        base_offset: of the segment.
        batches: all batches of the segment, with `positions` in its file.
    """
    if not len(batches):
        return np.zeros(len(entries.offsets), bool)
    offsets = entries.offsets + base_offset
    at = _clipped(np.searchsorted(batches.positions, entries.positions), batches)
    ends = _clipped(np.searchsorted(batches.last_offset, offsets), batches)
    ends_there = (batches.last_offset[ends] == offsets) & (ends >= at)
    proven: NDArray[np.bool_] = (batches.positions[at] == entries.positions) & (ends_there | (batches.base_offset[at] == offsets))
    return proven


def _clipped(items: NDArray[np.intp], batches: Batches) -> NDArray[np.intp]:
    return np.minimum(items, len(batches) - 1)


def proven_time_entries(entries: TimeEntries, base_offset: int, batches: Batches) -> NDArray[np.bool_]:
    """For each entry, whether the log proves it. For the arguments see `proven_offset_entries`."""
    if not len(batches):
        return np.zeros(len(entries), bool)
    offsets = entries.offsets + base_offset
    item = _clipped(np.searchsorted(batches.last_offset, offsets), batches)
    inside = (batches.base_offset[item] <= offsets) & (offsets <= batches.last_offset[item])
    proven: NDArray[np.bool_] = inside & (batches.max_timestamp[item] == entries.timestamps)
    return proven
