"""Decompresses the records section of a batch piece by piece, never to more bytes than the caller allows (`CompressionType`).

gzip: RFC 1952 members. snappy: xerial's streams (each a header of 16 bytes, then blocks with an int32 length before each) or one raw block.
lz4: one LZ4 frame. zstd: frames, and skippable ones between them. Members, streams and frames follow one another as Java's readers take
them. Wrapper messages of magic 0 and 1 contain the same streams, without zstd. In magic 0 the header checksum of an lz4 frame is wrong.

A few bytes may stand for gigabytes. So a caller that needs the beginning alone takes pieces, each of which is small. Only a raw block of
snappy is one piece, at most 22 times as large as its input.
"""

import struct
import zlib
from collections.abc import Callable, Iterator

import lz4.block
import lz4.frame
import zstandard

from streaming.errors import FormatError, TooLargeError
from streaming.kafka.formats.wire import Bytes

_GZIP = zlib.MAX_WBITS | 16
_GZIP_MAGIC = b"\x1f\x8b\x08"
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16  # magic, version, lowest compatible version
_BLOCK_LENGTH = struct.Struct(">i")
_SNAPPY_GROWTH = 22  # an element of 3 bytes stands for at most 64
_LZ4_CODEC, _LAST_OLD_CODEC = 3, 3  # zstd came with magic 2
_LZ4_HEAD_BYTES = 7  # magic number, FLG, BD and the header's checksum
_INPUT_BYTES = 16 << 10
_PIECE_BYTES = 64 << 10

_ZSTD_SKIPPABLE, _ZSTD_SKIPPABLE_KIND = b"\x2a\x4d\x18", 5  # 0x184D2A50 to 0x184D2A5F, little-endian
_ZSTD_SUM, _ZSTD_SUM_BYTES = 4, 4
_ZSTD_HEAD_BYTES, _ZSTD_LAST, _ZSTD_REPEATED, _ZSTD_BLOCK_BYTES = 3, 1, 1, 128 << 10

LARGEST_WINDOW_BYTES = 128 << 20
"""The largest window of a zstd frame: that of level 22, Kafka's highest. Of its memory only what is decompressed is used."""


def decompressed_old(magic: int, codec: int, payload: Bytes, limit: int) -> Iterator[Bytes]:
    """Decompress the inner messages of a wrapper of magic 0 or 1; otherwise like `decompressed`."""
    if codec > _LAST_OLD_CODEC:
        raise FormatError(f"codec {codec} does not exist in messages of magic {magic}")
    if magic == 0 and codec == _LZ4_CODEC:
        return _bounded(_lz4_blocks(payload), limit)
    return decompressed(codec, payload, limit)


def _bounded(pieces: Iterator[Bytes], limit: int) -> Iterator[Bytes]:
    left = limit
    try:
        for piece in pieces:
            left -= len(piece)
            if left < 0:
                raise _grown(limit)
            if len(piece):
                yield piece
    except (zlib.error, zstandard.ZstdError, RuntimeError, struct.error) as error:
        raise FormatError(f"damaged compressed records: {error}") from error


def _grown(limit: int) -> TooLargeError:
    return TooLargeError(f"compressed records grow beyond {limit} bytes")


def _lz4_blocks(payload: Bytes) -> Iterator[Bytes]:
    """Decompress an LZ4 frame block by block.

    The blocks are independent. The checksum in the frame's header is not checked, because clients of magic 0 wrote a wrong one
    (KAFKA-3160).
    """
    if len(payload) < _LZ4_HEAD_BYTES:
        raise _cut_short()
    flags, largest = payload[4], 1 << (8 + 2 * (payload[5] >> 4 & 7))
    position = _LZ4_HEAD_BYTES + (8 if flags & 0x08 else 0)  # the content's size
    while length := int.from_bytes(payload[position : position + 4], "little"):
        stored, length = length >> 31, length & 0x7FFFFFFF
        block = bytes(payload[position + 4 : position + 4 + length])
        if len(block) < length:
            raise FormatError("lz4 block longer than its message", position)
        yield block if stored else _lz4_block(block, largest)
        position += 4 + length + (4 if flags & 0x10 else 0)  # the block's checksum
    if position + 4 > len(payload):  # the end mark is missing
        raise _cut_short()


def _cut_short() -> FormatError:
    return FormatError("compressed records are cut short")


def _lz4_block(block: bytes, largest: int) -> bytes:
    try:
        data: bytes = lz4.block.decompress(block, uncompressed_size=largest)
    except (lz4.block.LZ4BlockError, ValueError) as error:
        raise FormatError(f"damaged compressed records: {error}") from error
    return data


def decompressed(codec: int, payload: Bytes, limit: int) -> Iterator[Bytes]:
    """Decompress the records section piece by piece, as far as the caller takes pieces.

    Args:
        codec: codec id, attributes bits 0 to 2.
        payload: the bytes after the batch header.
        limit: the most bytes of all pieces together.

    Raises:
        FormatError: there is no such codec, or the stream is damaged or incomplete.
        TooLargeError: it grows beyond `limit`. No piece is beyond it.
    """
    opener = _OPENERS.get(codec)
    if opener is None:
        raise FormatError(f"codec {codec} is not known")
    return _bounded(opener(payload, limit), limit)


def _plain(payload: Bytes, _limit: int) -> Iterator[Bytes]:
    return (bytes(payload[at : at + _PIECE_BYTES]) for at in range(0, len(payload), _PIECE_BYTES))


def _gzip(payload: Bytes, _limit: int) -> Iterator[Bytes]:
    """What follows a member and begins no other is left alone, as by Java's GZIPInputStream."""
    begin = 0
    while begin == 0 or bytes(payload[begin : begin + len(_GZIP_MAGIC)]) == _GZIP_MAGIC:
        stream, at, left = zlib.decompressobj(_GZIP), begin, b""
        while not stream.eof:
            given = left or payload[at : at + _INPUT_BYTES]
            at += 0 if left else len(given)
            piece = stream.decompress(given, _PIECE_BYTES)
            if not (given or piece or stream.eof):  # nor does it hold anything back
                raise _cut_short()
            yield piece
            left = stream.unconsumed_tail
        begin = at - len(stream.unused_data)


def _snappy(payload: Bytes, limit: int) -> Iterator[Bytes]:
    """Java's clients frame blocks as xerial's snappy-java does; others write one raw block. Brokers accept both."""
    if bytes(payload[: len(_XERIAL)]) != _XERIAL:
        yield _snappy_block(payload, limit)
        return
    if len(payload) < _XERIAL_HEADER_BYTES:
        raise _cut_short()
    position = _XERIAL_HEADER_BYTES
    while position < len(payload):
        if bytes(payload[position : position + len(_XERIAL)]) == _XERIAL:
            position += _XERIAL_HEADER_BYTES
            continue
        (length,) = _BLOCK_LENGTH.unpack_from(payload, position)
        position += _BLOCK_LENGTH.size
        if not 0 <= length <= len(payload) - position:
            raise FormatError("snappy block longer than its batch", position)
        yield _snappy_block(payload[position : position + length], limit)
        position += length


def _snappy_block(block: Bytes, limit: int) -> Bytes:
    import cramjam  # 2 MB of a command, which few log dirs need

    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > limit:
            raise _grown(limit)
        if size > _SNAPPY_GROWTH * (len(block) + 1):
            raise FormatError("damaged compressed records: a snappy block that cannot be as large as it says")
        return memoryview(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise FormatError(f"damaged compressed records: {error}") from error


def _lz4(payload: Bytes, _limit: int) -> Iterator[Bytes]:
    stream = lz4.frame.LZ4FrameDecompressor()
    for at in range(0, len(payload), _INPUT_BYTES):
        yield stream.decompress(bytes(payload[at : at + _INPUT_BYTES]), max_length=_PIECE_BYTES)
        while not stream.needs_input and not stream.eof:
            yield stream.decompress(b"", max_length=_PIECE_BYTES)
        if stream.eof:
            return
    raise _cut_short()


def _zstd(payload: Bytes, _limit: int) -> Iterator[Bytes]:
    """The library has no limit of its own, so it gets no more blocks at once than make a piece."""
    reader, begin = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW_BYTES), 0
    while begin == 0 or begin < len(payload):
        if bytes(payload[begin + 1 : begin + 4]) == _ZSTD_SKIPPABLE and payload[begin] >> 4 == _ZSTD_SKIPPABLE_KIND:
            begin += 8 + int.from_bytes(payload[begin + 4 : begin + 8], "little")
            if begin > len(payload):
                raise _cut_short()
            continue
        stream = reader.decompressobj()
        for end in _zstd_ends(payload, begin):
            yield stream.decompress(payload[begin:end])
            begin = end
        if not stream.eof:
            raise _cut_short()


def _zstd_ends(payload: Bytes, begin: int) -> Iterator[int]:
    """Where blocks of a frame end that make `_ZSTD_BLOCK_BYTES` or more together, at last the frame's own end (RFC 8878, 3.1.1)."""
    head_bytes = zstandard.frame_header_size(payload[begin : begin + 18])
    if len(payload) - begin < head_bytes:
        return
    at, made = begin + head_bytes, 0
    while at + _ZSTD_HEAD_BYTES <= len(payload):
        head = payload[at] | payload[at + 1] << 8 | payload[at + 2] << 16
        kind, size = head >> 1 & 3, head >> 3
        at += _ZSTD_HEAD_BYTES + (1 if kind == _ZSTD_REPEATED else size)
        made += size if kind <= _ZSTD_REPEATED else _ZSTD_BLOCK_BYTES
        if head & _ZSTD_LAST:
            yield min(at + (_ZSTD_SUM_BYTES if payload[begin + 4] & _ZSTD_SUM else 0), len(payload))
            return
        if made >= _ZSTD_BLOCK_BYTES:
            yield min(at, len(payload))
            made = 0
    yield len(payload)  # it is cut short


_OPENERS: dict[int, Callable[[Bytes, int], Iterator[Bytes]]] = {0: _plain, 1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}


def decompress(codec: int, payload: Bytes, limit: int) -> bytearray:
    """Decompress the whole of the records section. Arguments and errors as `decompressed`."""
    made = bytearray()
    for piece in decompressed(codec, payload, limit):
        made += piece
    return made
