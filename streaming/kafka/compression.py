"""Opens the compressed records section of a batch, never to more bytes than the caller allows (`CompressionType`)."""

import struct
import zlib
from collections.abc import Callable

import cramjam
import lz4.frame
import zstandard

from streaming.errors import FormatError
from streaming.kafka.varint import Bytes

_GZIP = zlib.MAX_WBITS | 16
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16  # magic, version, lowest compatible version
_BLOCK_LENGTH = struct.Struct(">i")
_ZSTD_SLICE = 64  # zstandard has no bound of its own: a slice of input this small grows to 2 MB at the most


def decompress(codec: int, payload: Bytes, limit: int) -> bytes:
    """The records section as it was before compression.

    Args:
        codec: codec id, attributes bits 0 to 2.
        payload: what follows the batch header.
        limit: most bytes to make.

    Raises:
        FormatError: no such codec, a damaged or unfinished stream, or one that grows beyond `limit`.
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


def _gzip(payload: Bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(_GZIP)
    return _whole(stream.decompress(payload, limit + 1), stream.eof, limit)


def _snappy(payload: Bytes, limit: int) -> bytes:
    """Java's clients frame blocks as xerial's snappy-java does; others write one raw block. Brokers take both."""
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


def _zstd(payload: Bytes, limit: int) -> bytes:
    stream = zstandard.ZstdDecompressor().decompressobj()
    made = bytearray()
    for start in range(0, len(payload), _ZSTD_SLICE):
        made += stream.decompress(payload[start : start + _ZSTD_SLICE])
        if stream.eof or len(made) > limit:
            break
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
