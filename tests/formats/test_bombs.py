"""Few bytes that stand for many: what is opened of them is bounded, whatever the codec, and what is held of that more so."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import cramjam
import lz4.frame
import pytest
import zstandard

from streaming.errors import FormatError, TooLargeError
from streaming.kafka.formats.compression import compress
from streaming.kafka.formats.decompression import LARGEST_WINDOW_BYTES, decompressed
from streaming.kafka.formats.entries import read_entry, read_entry_times
from streaming.kafka.formats.records import LEAST_RECORD_BYTES, MAX_TIMED_BYTES, read_batch, read_record_heads, read_records
from streaming.simulator.batch_writer import Batch, Codec, Record, encode
from tests.builders import NOW
from tests.formats.claims import claiming, empty_records
from tests.legacy_messages import Messages
from tests.tables import each_row

MIB = 1 << 20
_BOMB_BYTES = 20 * MIB
_HELD_BYTES = 2 * MIB
COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]
FRAMINGS: dict[str, tuple[Codec, Callable[[bytes], bytes]]] = {
    **{codec.name: (codec, lambda data, codec=codec: compress(codec, data)) for codec in COMPRESSING},  # type: ignore[misc]
    "raw snappy": (Codec.SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "lz4, largest blocks": (Codec.LZ4, lambda data: lz4.frame.compress(data, block_size=lz4.frame.BLOCKSIZE_MAX4MB)),
    "zstd, largest window": (Codec.ZSTD, lambda data: _largest_window(data)),
}


def _largest_window(data: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, compression_level=1, write_content_size=False)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return stream.compress(data) + stream.flush()


@contextmanager
def holding(most: int) -> Iterator[None]:
    """What Python holds at once meanwhile is bounded."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def bomb(codec: Codec) -> bytes:
    """A batch of two records, the first one of zeros."""
    records = (Record(value=bytes(_BOMB_BYTES), timestamp=NOW), Record(value=b"v", timestamp=NOW + 5))
    return encode(Batch(records=records, codec=codec), 0)


@each_row("framing", FRAMINGS)
def test_pieces_are_small_and_end_at_the_limit(framing: str) -> None:
    codec, write = FRAMINGS[framing]
    packed = write(bytes(_BOMB_BYTES))
    with pytest.raises(TooLargeError, match=f"grow beyond {MAX_TIMED_BYTES} bytes"), holding(_HELD_BYTES):
        sum(map(len, decompressed(codec, packed, MAX_TIMED_BYTES)))


@each_row("framing", FRAMINGS)
def test_pieces_make_up_the_whole(framing: str) -> None:
    codec, write = FRAMINGS[framing]
    data = bytes(range(256)) * 4000 + bytes(MIB)
    assert b"".join(decompressed(codec, write(data), len(data))) == data


def test_a_window_beyond_that_of_kafkas_highest_level_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=28, compression_level=1, write_content_size=False)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = stream.compress(b"small") + stream.flush()
    assert zstandard.get_frame_parameters(packed).window_size > LARGEST_WINDOW_BYTES
    with pytest.raises(FormatError, match="damaged"):
        list(decompressed(Codec.ZSTD, packed, MIB))


def test_a_snappy_block_that_cannot_be_as_large_as_it_says_is_not_made() -> None:
    with pytest.raises(FormatError, match="cannot be as large"), holding(MIB):
        list(decompressed(Codec.SNAPPY, b"\x80\x80\x80\x20" + b"\0" * 20, 256 * MIB))


@each_row("codec", COMPRESSING)
def test_the_time_of_a_record_behind_a_bomb_is_not_known(codec: Codec) -> None:
    data = bomb(codec)
    with holding(_HELD_BYTES):
        times = read_entry_times(memoryview(data))
        with pytest.raises(TooLargeError):
            list(times)


def test_the_time_of_a_record_behind_a_wrapped_bomb_is_not_known() -> None:
    records = (Record(value=bytes(_BOMB_BYTES), timestamp=NOW), Record(value=b"v", timestamp=NOW))
    ((_, data),) = Messages(magic=1, records=records, codec=Codec.GZIP).entries(0, 0)
    with pytest.raises(TooLargeError), holding(_HELD_BYTES):
        next(read_entry_times(memoryview(data)))
    with holding(_HELD_BYTES):  # its offsets are needed for every count: they are read, and nothing is kept
        assert (read_entry(data).base_offset, read_entry(data).records) == (0, 2)


def test_the_time_of_a_record_before_a_bomb_is_known() -> None:
    records = (Record(value=b"v", timestamp=NOW), Record(value=bytes(_BOMB_BYTES), timestamp=NOW + 5))
    data = encode(Batch(records=records, codec=Codec.ZSTD), 0)
    with holding(_HELD_BYTES):
        times = read_entry_times(memoryview(data))
        assert [next(times), next(times)] == [(0, NOW), (1, NOW + 5)]
        with pytest.raises(TooLargeError):
            next(times)


def test_a_beginning_is_enough_for_a_time() -> None:
    data = encode(Batch(records=tuple(Record(value=bytes(100), timestamp=NOW + at) for at in range(50))), 7)
    times = read_entry_times(memoryview(data)[:2000])
    assert next(times) == (7, NOW)
    with pytest.raises(FormatError):
        list(times)


def test_many_empty_records_are_never_held() -> None:
    count = 100_000
    body = empty_records(count)
    data = claiming(encode(Batch(records=(Record(),), codec=Codec.NONE), 0), Codec.ZSTD, compress(Codec.ZSTD, body), count)
    assert len(data) < 1000
    batch = read_batch(memoryview(data), check_crc=False)
    assert batch is not None
    with holding(_HELD_BYTES):
        assert sum(1 for _ in read_records(batch)) == count
        with pytest.raises(TooLargeError, match="more than 99999"):
            next(read_records(batch, most=count - 1))
        assert sum(1 for _ in read_record_heads(batch, MAX_TIMED_BYTES, count)) == count


def test_more_records_than_the_bytes_can_hold_are_refused_before_the_first() -> None:
    plain = encode(Batch(records=(Record(),) * 3), 0)
    batch = read_batch(memoryview(claiming(plain, Codec.NONE, empty_records(3), 4)), check_crc=False)
    assert batch is not None
    with pytest.raises(FormatError, match=f"4 records cannot lie in {3 * LEAST_RECORD_BYTES} bytes"):
        next(read_records(batch))
