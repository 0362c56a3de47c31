"""The four codecs of a record batch, framed as Kafka's own producer frames them (`CompressionType`)."""

import gzip
import struct
from enum import IntEnum

import cramjam
import lz4.frame
import zstandard

XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
"""Magic, version and lowest readable version of the framing that snappy-java puts around its blocks."""

XERIAL_BLOCK_BYTES = 32 * 1024

_GZIP_LEVEL = 6
_ZSTD = zstandard.ZstdCompressor(level=3, write_content_size=False)


class Codec(IntEnum):
    """Attributes bits 0 to 2 of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, data: bytes) -> bytes:
    """Compress the records section of a batch (or the messages inside a v0 or v1 wrapper)."""
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            return gzip.compress(data, _GZIP_LEVEL, mtime=0)
        case Codec.SNAPPY:
            return _xerial(data)
        case Codec.LZ4:
            return bytes(lz4.frame.compress(data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False))
        case Codec.ZSTD:
            return _ZSTD.compress(data)


def _xerial(data: bytes) -> bytes:
    out = bytearray(XERIAL_HEADER)
    for start in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + XERIAL_BLOCK_BYTES]))
        out += struct.pack(">i", len(block))
        out += block
    return bytes(out)
