"""Batches of magic 2, against bytes that Kafka's own classes made."""

import gzip
import struct

import cramjam
import google_crc32c
import lz4.frame
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.formats.compression import XERIAL_BLOCK_BYTES, XERIAL_HEADER, compress
from streaming.kafka.formats.wire import uvarint, varint
from streaming.simulator.batch_writer import Batch, Codec, Record, encode, encode_records, end_transaction, next_sequence
from tests.tables import each_row

T = 1_700_000_000_000

TRANSACTIONAL = (
    "0000000000000064000000490000000502cc95ac1d0010000000010000018bcfe568000000018bcfe568070000000000000fa00003000000000000000214"
    "000000046b310476310018000e02010476320202680278"
)
COMMIT = (
    "000000000000006600000042000000050221693c200030000000000000018bcfe568320000018bcfe568320000000000000fa00004ffffffff0000000120"
    "00000008000000010c00000000000900"
)
ABORT = (
    "000000000000006700000042000000050297c3d36e0030000000000000018bcfe5683c0000018bcfe5683c0000000000000fa10001ffffffff0000000120"
    "00000008000000000c00000000000900"
)
EMPTY = "00000000000000c8000000310000000502a7eeedad001000000004ffffffffffffffff0000018bcfe568630000000000000fa200000000000a00000000"


def test_transactional_data_with_a_header_and_a_null_key() -> None:
    batch = Batch(
        records=(Record(b"k1", b"v1", T), Record(None, b"v2", T + 7, (("h", b"x"),))),
        producer_id=4000,
        producer_epoch=3,
        base_sequence=0,
        transactional=True,
    )
    assert encode(batch, 100, 5).hex() == TRANSACTIONAL


def test_commit_marker() -> None:
    marker = end_transaction(committed=True, producer_id=4000, producer_epoch=4, coordinator_epoch=9, timestamp=T + 50)
    assert encode(marker, 102, 5).hex() == COMMIT


def test_abort_marker() -> None:
    marker = end_transaction(committed=False, producer_id=4001, producer_epoch=1, coordinator_epoch=9, timestamp=T + 60)
    assert encode(marker, 103, 5).hex() == ABORT


def test_empty_batch_that_compaction_left() -> None:
    batch = Batch(
        records=(),
        last_offset_delta=4,
        max_timestamp=T + 99,
        producer_id=4002,
        producer_epoch=0,
        base_sequence=10,
        transactional=True,
    )
    ((entry, data),) = batch.entries(200, 5)
    assert data.hex() == EMPTY
    assert (entry.last_offset, entry.last_sequence, entry.records) == (204, 14, 0)


def test_log_append_time_leaves_the_producers_base_timestamp() -> None:
    data = encode(Batch(records=(Record(None, b"v", T),), log_append_time=T + 500), 0)
    assert struct.unpack_from(">h", data, 21) == (0b1000,)
    assert struct.unpack_from(">qq", data, 27) == (T, T + 500)


def test_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    data = encode(Batch(records=(Record(b"k", None, T),), delete_horizon=T + 1000), 0)
    assert struct.unpack_from(">h", data, 21) == (0b1000000,)
    assert struct.unpack_from(">qq", data, 27) == (T + 1000, T)


@given(
    records=st.lists(st.tuples(st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=300)), min_size=1, max_size=40),
    codec=st.sampled_from(Codec),
    base_offset=st.integers(0, 2**62),
    leader_epoch=st.integers(-1, 2**31 - 1),
)
def test_header_describes_what_follows_it(
    records: list[tuple[bytes | None, bytes | None]], codec: Codec, base_offset: int, leader_epoch: int
) -> None:
    batch = Batch(records=tuple(Record(key, value, T + place) for place, (key, value) in enumerate(records)), codec=codec)
    ((entry, data),) = batch.entries(base_offset, leader_epoch)
    base, length, epoch, magic, crc, attributes, last_delta = struct.unpack_from(">qiibIhi", data)
    assert (base, length + 12, epoch, magic) == (base_offset, len(data), leader_epoch, 2)
    assert crc == google_crc32c.value(data[21:])
    assert attributes == codec
    assert last_delta == len(records) - 1
    assert struct.unpack_from(">i", data, 57) == (len(records),)
    assert (entry.size, entry.last_offset, entry.records) == (len(data), base_offset + last_delta, len(records))
    assert _decompress(codec, data[61:]) == encode_records(batch.records, T)


@each_row(
    ("codec", "first_bytes"),
    [(Codec.GZIP, "1f8b08"), (Codec.SNAPPY, "82534e41505059000000000100000001"), (Codec.LZ4, "04224d18604082"), (Codec.ZSTD, "28b52ffd")],
)
def test_codecs_are_framed_as_kafka_frames_them(codec: Codec, first_bytes: str) -> None:
    assert compress(codec, b"some text, some text").hex().startswith(first_bytes)


def test_snappy_is_cut_into_blocks() -> None:
    data = bytes(range(256)) * (3 * XERIAL_BLOCK_BYTES // 256) + b"rest"
    framed = compress(Codec.SNAPPY, data)
    assert len(_blocks(framed)) == 4
    assert _decompress(Codec.SNAPPY, framed) == data


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_hold_every_long(number: int) -> None:
    encoded = varint(number)
    assert len(encoded) <= 10
    raw = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(encoded))
    assert (raw >> 1) ^ -(raw & 1) == number
    assert [byte >> 7 for byte in encoded] == [1] * (len(encoded) - 1) + [0]


def test_unsigned_varints() -> None:
    assert [uvarint(number).hex() for number in (0, 127, 128, 300)] == ["00", "7f", "8001", "ac02"]


def test_sequence_numbers_wrap_to_zero() -> None:
    assert next_sequence(2**31 - 2, 1) == 2**31 - 1
    assert next_sequence(2**31 - 1, 1) == 0


def _blocks(framed: bytes) -> list[bytes]:
    assert framed.startswith(XERIAL_HEADER)
    blocks, position = [], len(XERIAL_HEADER)
    while position < len(framed):
        (size,) = struct.unpack_from(">i", framed, position)
        blocks.append(framed[position + 4 : position + 4 + size])
        position += 4 + size
    return blocks


def _decompress(codec: Codec, data: bytes) -> bytes:
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            return gzip.decompress(data)
        case Codec.SNAPPY:
            return b"".join(bytes(cramjam.snappy.decompress_raw(block)) for block in _blocks(data))
        case Codec.LZ4:
            return bytes(lz4.frame.decompress(data))
        case Codec.ZSTD:
            return zstandard.ZstdDecompressor().decompressobj().decompress(data)
