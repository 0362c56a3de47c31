"""Opening compressed records."""

import gzip
import random
from contextlib import suppress

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.compression import XERIAL_HEADER, compress
from streaming.kafka.formats.decompression import decompress
from streaming.simulator.batch_writer import Codec
from tests.tables import each_row

EVERY_CODEC = pytest.mark.parametrize("codec", Codec)
COMPRESSING = pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
OTHER_WRITERS = {
    "gzip of another level": (Codec.GZIP, lambda data: gzip.compress(data, 1)),
    "raw snappy": (Codec.SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "lz4 with linked blocks, checksum and size": (
        Codec.LZ4,
        lambda data: lz4.frame.compress(data, block_linked=True, content_checksum=True, store_size=True),
    ),
    "zstd with its size": (Codec.ZSTD, zstandard.ZstdCompressor().compress),
}


@EVERY_CODEC
@given(data=st.binary(max_size=300).map(lambda part: part * 300))
def test_what_a_producer_compressed_comes_back(codec: Codec, data: bytes) -> None:
    assert decompress(codec, memoryview(compress(codec, data)), len(data)) == data


@each_row("writer", OTHER_WRITERS)
def test_the_framing_of_other_clients_is_read_too(writer: str) -> None:
    codec, write = OTHER_WRITERS[writer]
    data = bytes(range(256)) * 1000
    assert decompress(codec, write(data), len(data)) == data


_ZSTD = zstandard.ZstdCompressor()
_SUMMED = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False)
SKIPPABLE = b"\x5f\x2a\x4d\x18\x05\x00\x00\x00hello"
PARTS = {
    "gzip members": (Codec.GZIP, gzip.compress, b"", b"not a member"),
    "zstd frames": (Codec.ZSTD, _ZSTD.compress, b"", b""),
    "zstd frames with sums, between skippable ones": (Codec.ZSTD, _SUMMED.compress, SKIPPABLE, SKIPPABLE),
    "xerial streams": (Codec.SNAPPY, lambda data: compress(Codec.SNAPPY, data), b"", b""),
}


@each_row(("parts", "sizes"), [(parts, sizes) for parts in PARTS for sizes in ((10, 20), (0, 300_000, 7), (200_000, 200_000))])
def test_parts_that_follow_one_another_are_read_as_kafka_reads_them(parts: str, sizes: tuple[int, ...]) -> None:
    codec, write, before, after = PARTS[parts]
    data = random.Random(4).randbytes(sum(sizes))
    cuts = [data[sum(sizes[:item]) : sum(sizes[: item + 1])] for item in range(len(sizes))]
    packed = b"".join(before + write(cut) for cut in cuts) + after
    assert decompress(codec, packed, len(data)) == data
    with pytest.raises(FormatError, match="grow beyond"):
        decompress(codec, packed, len(data) - 1)


@each_row(("codec", "packed"), [(Codec.ZSTD, _ZSTD.compress(b"a") + b"junk"), (Codec.ZSTD, SKIPPABLE[:-1]), (Codec.ZSTD, b"")])
def test_what_is_no_frame_is_refused(codec: Codec, packed: bytes) -> None:
    with pytest.raises(FormatError):
        decompress(codec, packed, 100)


@EVERY_CODEC
def test_nothing_grows_beyond_the_limit(codec: Codec) -> None:
    packed = compress(codec, bytes(10_000))
    assert len(decompress(codec, packed, 10_000)) == 10_000
    with pytest.raises(FormatError, match="grow beyond 9999 bytes"):
        decompress(codec, packed, 9_999)


def test_a_zstd_bomb_is_given_up_long_before_it_is_open() -> None:
    bomb = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1 << 30))
    with pytest.raises(FormatError, match="grow beyond 1000 bytes"):
        decompress(Codec.ZSTD, bomb, 1000)


def test_a_snappy_block_that_claims_too_much_is_not_even_tried() -> None:
    with pytest.raises(FormatError, match="grow beyond 1000 bytes"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f", 1000)


@COMPRESSING
def test_a_stream_that_is_cut_short_is_refused(codec: Codec) -> None:
    packed = compress(codec, b"some text, not quite regular: 0123456789" * 50)
    for length in range(len(packed)):
        if codec is Codec.SNAPPY and length == len(XERIAL_HEADER):  # a frame without blocks
            continue
        with pytest.raises(FormatError):
            decompress(codec, packed[:length], 1 << 20)


@each_row("codec", [-1, 5, 6, 7])
def test_a_codec_that_does_not_exist_is_refused(codec: int) -> None:
    with pytest.raises(FormatError, match="not known"):
        decompress(codec, b"", 10)


@COMPRESSING
@given(garbage=st.binary(max_size=100), at=st.integers(0, 200), whole=st.booleans())
def test_garbage_is_refused_or_stays_within_the_limit(codec: Codec, garbage: bytes, at: int, whole: bool) -> None:
    packed = compress(codec, b"record " * 40)
    damaged = garbage if whole else packed[:at] + garbage + packed[at + len(garbage) :]
    with suppress(FormatError):
        assert len(decompress(codec, damaged, 1 << 16)) <= 1 << 16
