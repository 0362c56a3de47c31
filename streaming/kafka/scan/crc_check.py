"""Finds the batches of a segment that do not have the CRC of their header, all at the library's speed (`RecordBatch.isValid`)."""

import zlib
from functools import cache

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from streaming.kafka.formats.crc import CHECKED_FROM, OLD_CHECKED_FROM
from streaming.kafka.formats.layout import CURRENT_MAGIC
from streaming.kafka.scan.headers import Batches

# --- checks the CRC-32C of many small batches in a row with one call, because a call for each costs several times as much as its bytes. A
# CRC whose register begins with 0 is linear. So the CRC of a stretch is the sum (xor) of the CRCs of its parts, each shifted by as many
# zero bytes as there are bytes after the part. The stored CRCs of the batches are shifted and summed with numpy. The result must equal the
# CRC of the whole stretch, in which all bytes that the batches' CRCs do not cover are set to zero. One wrong batch is always found; several
# wrong ones pass in one stretch of 2^32. A shift is a linear map of 32 bits, stored as four tables for the four bytes of a register.


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


def _shift(registers: Registers, one: _Map) -> Registers:
    shifted: Registers = one[registers & 255]
    for byte in (1, 2, 3):
        shifted ^= one[(registers >> 8 * byte & 255) + 256 * byte]
    return shifted


def _shift_each(registers: Registers, maps: _Map, which: NDArray[np.int64]) -> Registers:
    """Apply the map with the given number to each register; ``maps`` are stored one after the other."""
    base = which << 10
    shifted: Registers = maps[base + (registers & 255)]
    for byte in (1, 2, 3):
        base += 256
        shifted ^= maps[base + (registers >> 8 * byte & 255)]
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


@cache
def _ones_shifted() -> Registers:
    """A register of ones after 0, 1, 2 ... zero bytes."""
    found = np.array([_ONES], np.uint32)
    for bit in range(MOST_BYTES.bit_length()):
        found = np.concatenate([found, _shift(found, _doubled(bit))])
    return found


_MANY = 64


def wrong_crcs(buffer: NDArray[np.uint8], batches: Batches) -> NDArray[np.intp]:
    """The items of `batches` whose bytes in `buffer` do not have the CRC of their header, ascending.

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


def _in_a_row(batches: Batches) -> bool:
    """Whether these are small batches of magic 2, one directly after the other, and enough that one check of all of them pays off."""
    return (
        len(batches) >= _MANY
        and bool((batches.magic == CURRENT_MAGIC).all())
        and int(batches.size.max()) <= MOST_BYTES
        and bool((batches.positions[1:] == batches.positions[:-1] + batches.size[:-1]).all())
    )


def stored_crcs(batches: Batches) -> NDArray[np.uint32]:
    """The CRC in the header of each batch."""
    stored = batches.headers["crc"].astype(np.uint32)
    old = batches.magic < CURRENT_MAGIC
    if old.any():  # in an old message it is at the position of the leader epoch in magic 2
        stored[old] = batches.headers["partition_leader_epoch"][old].astype(np.int32).view(np.uint32)
    return stored
