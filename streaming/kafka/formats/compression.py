"""Compresses the records section of a batch as Kafka's Java clients do with their defaults (`CompressionType`, `Compression`).

gzip: one member of level 6. snappy: xerial's stream of blocks of 32 KiB. lz4: one frame of independent blocks of 64 KiB. zstd: one frame of
level 3, made piece by piece, so that the size of what comes is not known. That makes it some percent smaller above 128 KiB, and it has no
size in its header.
"""

import gzip
import struct

import cramjam
import lz4.frame
import zstandard

from streaming.common.codecs import CODECS

XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
"""Magic, version and lowest readable version of the framing that snappy-java puts around its blocks."""

XERIAL_BLOCK_BYTES = 32 * 1024

_GZIP_LEVEL = 6
_ZSTD = zstandard.ZstdCompressor(level=3, write_content_size=False)


def compress(codec: int, data: bytes) -> bytes:
    """Compress the records section of a batch (or the messages inside a v0 or v1 wrapper); ``codec``: its id."""
    match CODECS[codec]:
        case "gzip":
            return gzip.compress(data, _GZIP_LEVEL, mtime=0)
        case "snappy":
            return _xerial(data)
        case "lz4":
            return bytes(lz4.frame.compress(data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False))
        case "zstd":
            stream = _ZSTD.compressobj()
            return stream.compress(data) + stream.flush()
    return data


def _xerial(data: bytes) -> bytes:
    out = bytearray(XERIAL_HEADER)
    for start in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + XERIAL_BLOCK_BYTES]))
        out += struct.pack(">i", len(block))
        out += block
    return bytes(out)
