"""Decompresses the records section of a batch, never to more bytes than the caller allows (`CompressionType`).

gzip: one RFC 1952 member. snappy: xerial's stream (a header of 16 bytes, then blocks with an int32 length before each) or one raw block.
lz4: one LZ4 frame. zstd: one frame. Wrapper messages of magic 0 and 1 contain the same streams, without zstd. In magic 0 the header
checksum of an lz4 frame is wrong.
"""

import struct
import zlib
from collections.abc import Callable

import cramjam
import lz4.block
import lz4.frame
import zstandard

from streaming.errors import FormatError
from streaming.kafka.varint import Bytes

_GZIP = zlib.MAX_WBITS | 16
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16  # magic, version, lowest compatible version
_BLOCK_LENGTH = struct.Struct(">i")
_ZSTD_GROWTH = 1 << 15  # a block of zstd grows from 4 bytes to 128 KiB at most
_ZSTD_LEAST_SLICE = 64
_LZ4_CODEC, _LAST_OLD_CODEC = 3, 3  # zstd came with magic 2
_LZ4_HEAD_BYTES = 7  # magic number, FLG, BD and the header's checksum


def decompress(codec: int, payload: Bytes, limit: int) -> bytes:
    """Decompress the records section.

    Args:
        codec: codec id, attributes bits 0 to 2.
        payload: the bytes after the batch header.
        limit: the most bytes of the result.

    Raises:
        FormatError: there is no such codec, the stream is damaged or incomplete, or it grows beyond `limit`.
    """
    opener = _OPENERS.get(codec)
    if opener is None:
        raise FormatError(f"codec {codec} is not known")
    try:
        data = opener(payload, limit)
    except (zlib.error, cramjam.DecompressionError, zstandard.ZstdError, RuntimeError, struct.error) as error:
        raise FormatError(f"damaged compressed records: {error}") from error
    if len(data) > limit:
        raise FormatError(f"compressed records grow beyond {limit} bytes")
    return data


def decompress_old(magic: int, codec: int, payload: Bytes, limit: int) -> bytes:
    """Decompress the inner messages of a wrapper of magic 0 or 1; otherwise like `decompress`."""
    if codec > _LAST_OLD_CODEC:
        raise FormatError(f"codec {codec} does not exist in messages of magic {magic}")
    if magic == 0 and codec == _LZ4_CODEC:
        return _lz4_blocks(bytes(payload), limit)
    return decompress(codec, payload, limit)


def _gzip(payload: Bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(_GZIP)
    return _whole(stream.decompress(payload, limit + 1), stream.eof, limit)


def _snappy(payload: Bytes, limit: int) -> bytes:
    """Java's clients frame blocks as xerial's snappy-java does; others write one raw block. Brokers accept both."""
    if bytes(payload[: len(_XERIAL)]) != _XERIAL:
        return _snappy_block(payload, limit)
    if len(payload) < _XERIAL_HEADER_BYTES:
        raise FormatError("compressed records are cut short")
    made = bytearray()
    position = _XERIAL_HEADER_BYTES
    while position < len(payload) and len(made) <= limit:
        (length,) = _BLOCK_LENGTH.unpack_from(payload, position)
        position += _BLOCK_LENGTH.size
        if not 0 <= length <= len(payload) - position:
            raise FormatError("snappy block longer than its batch", position)
        made += _snappy_block(payload[position : position + length], limit)
        position += length
    return bytes(made)


def _snappy_block(block: Bytes, limit: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > limit:
        raise FormatError(f"compressed records grow beyond {limit} bytes")
    return bytes(cramjam.snappy.decompress_raw(block))


def _lz4(payload: Bytes, limit: int) -> bytes:
    stream = lz4.frame.LZ4FrameDecompressor()
    data: bytes = stream.decompress(bytes(payload), max_length=limit + 1)
    return _whole(data, stream.eof, limit)


def _lz4_blocks(payload: bytes, limit: int) -> bytes:
    """Decompress an LZ4 frame block by block.

    The blocks are independent. The checksum in the frame's header is not checked, because clients of magic 0 wrote a wrong one
    (KAFKA-3160).
    """
    if len(payload) < _LZ4_HEAD_BYTES:
        raise FormatError("compressed records are cut short")
    flags, largest = payload[4], 1 << (8 + 2 * (payload[5] >> 4 & 7))
    position = _LZ4_HEAD_BYTES + (8 if flags & 0x08 else 0)  # the content's size
    made = bytearray()
    while length := int.from_bytes(payload[position : position + 4], "little"):
        stored, length = length >> 31, length & 0x7FFFFFFF
        block = payload[position + 4 : position + 4 + length]
        if len(block) < length:
            raise FormatError("lz4 block longer than its message", position)
        made += block if stored else _lz4_block(block, largest)
        if len(made) > limit:
            raise FormatError(f"compressed records grow beyond {limit} bytes")
        position += 4 + length + (4 if flags & 0x10 else 0)  # the block's checksum
    if position + 4 > len(payload):  # the end mark is missing
        raise FormatError("compressed records are cut short")
    return bytes(made)


def _lz4_block(block: bytes, largest: int) -> bytes:
    try:
        data: bytes = lz4.block.decompress(block, uncompressed_size=largest)
    except (lz4.block.LZ4BlockError, ValueError) as error:
        raise FormatError(f"damaged compressed records: {error}") from error
    return data


def _zstd(payload: Bytes, limit: int) -> bytes:
    """Decompress in slices so small that none grows far beyond the limit, because the library has no limit of its own."""
    stream = zstandard.ZstdDecompressor().decompressobj()
    made = bytearray()
    position = 0
    while position < len(payload) and not stream.eof and len(made) <= limit:
        length = max((limit - len(made)) // _ZSTD_GROWTH, _ZSTD_LEAST_SLICE)
        made += stream.decompress(payload[position : position + length])
        position += length
    return _whole(bytes(made), stream.eof, limit)


def _whole(data: bytes, ended: bool, limit: int) -> bytes:
    if not ended and len(data) <= limit:
        raise FormatError("compressed records are cut short")
    return data


_OPENERS: dict[int, Callable[[Bytes, int], bytes]] = {
    0: lambda payload, limit: bytes(payload[: limit + 1]),
    1: _gzip,
    2: _snappy,
    3: _lz4,
    4: _zstd,
}
