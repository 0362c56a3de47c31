"""Pieces of a text that are packed one by one, and put together as one gzip member (RFC 1952), however they are combined.

Each is a row of whole deflate blocks (RFC 1951) that ends at a byte and refers to nothing before itself. So pieces can follow each other,
and one that was packed for an earlier page is as good as a new one. They are no members of their own, although RFC 1952 allows several:
curl and browsers read the first of them alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import cramjam
import numpy as np
from numpy.typing import NDArray

_LEVEL = 1
"""100 MB of labels shrink to 11 MB; more effort costs the scrape more than the network saves."""

_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"  # deflate, no name, no time, packed fast, by an unknown system
_END = b"\x03\x00"  # an empty block, the last one

_POLYNOMIAL = 0xEDB88320
_SIZE_BITS = 48  # no page has 256 TB

Sums = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class GzipPiece:
    """Deflate blocks, the number of bytes that they hold, and the CRC-32 of these."""

    blocks: bytes
    size: int
    crc: int


def pack(text: bytes | memoryview) -> GzipPiece:
    """Pack a text."""
    packer = cramjam.gzip.Compressor(_LEVEL)
    packer.compress(bytes(text))
    blocks = bytes(packer.flush())[len(_HEAD) :]  # ends at a byte
    trailer = bytes(packer.finish())[-8:]
    return GzipPiece(blocks, len(text), int.from_bytes(trailer[:4], "little"))


def join(pieces: Sequence[GzipPiece]) -> bytes:
    """The gzip member of all texts, one after the other."""
    size = sum(piece.size for piece in pieces) % (1 << 32)
    blocks = (piece.blocks for piece in pieces)
    return b"".join((_HEAD, *blocks, _END, crc_of(pieces).to_bytes(4, "little"), size.to_bytes(4, "little")))


def crc_of(pieces: Sequence[GzipPiece]) -> int:
    """The CRC-32 of all texts, one after the other: the sum of what each contributes, moved past the bytes that follow it."""
    sizes = np.array([piece.size for piece in pieces], np.int64)
    after = sizes.sum() - sizes.cumsum()
    sums = np.array([piece.crc for piece in pieces], np.uint32)
    for bit, tables in enumerate(_zeros()[: int(after.max(initial=0)).bit_length()]):
        moved = np.flatnonzero(after >> bit & 1)
        sums[moved] = _looked_up(tables, sums[moved])
    return int(np.bitwise_xor.reduce(sums, initial=0))


@cache
def _zeros() -> list[Sums]:
    """What 1, 2, 4, 8... bytes of zero do to a CRC: shape (4, 256), by each of its bytes; as in zlib's ``crc32_combine``."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    operator = np.concatenate((np.array([_POLYNOMIAL], np.uint32), bits[:-1]))  # one bit of zero, as the images of a CRC's bits
    every = np.arange(256, dtype=np.uint32) << (8 * np.arange(4, dtype=np.uint32))[:, None]
    found = []
    for doubled in range(3 + _SIZE_BITS):
        if doubled >= 3:
            found.append(_applied(operator, every))
        operator = _applied(operator, operator)
    return found


def _applied(operator: Sums, sums: Sums) -> Sums:
    """``operator`` has the images of a CRC's bits."""
    images = np.where(sums[..., None] >> np.arange(32, dtype=np.uint32) & 1, operator, np.uint32(0))
    found: Sums = np.bitwise_xor.reduce(images, axis=-1)
    return found


def _looked_up(tables: Sums, sums: Sums) -> Sums:
    found: Sums = tables[0, sums & 255] ^ tables[1, sums >> 8 & 255] ^ tables[2, sums >> 16 & 255] ^ tables[3, sums >> 24]
    return found
