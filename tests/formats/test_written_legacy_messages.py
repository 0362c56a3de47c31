"""Messages of magic 0 and 1."""

import gzip
import struct
import zlib

import pytest

from streaming.simulator.batch_writer import Codec, Record
from tests.legacy_messages import Messages, encode_message

T = 1_700_000_000_000
RECORDS = tuple(Record(b"k", b"v%d" % n, T + n) for n in range(3))


@pytest.mark.parametrize(("magic", "header"), [(0, 18), (1, 26)])
def test_layout(magic: int, header: int) -> None:
    data = encode_message(magic, 7, Record(b"key", b"value", T))
    offset, size, crc, found_magic, attributes = struct.unpack_from(">qiIbb", data)
    assert (offset, size + 12, found_magic, attributes) == (7, len(data), magic, 0)
    assert crc == zlib.crc32(data[16:])
    assert data[header:] == struct.pack(">i", 3) + b"key" + struct.pack(">i", 5) + b"value"
    if magic == 1:
        assert struct.unpack_from(">q", data, 18) == (T,)


def test_null_key_and_value() -> None:
    assert encode_message(0, 0, Record())[18:] == b"\xff" * 8


def test_without_a_codec_every_message_stands_alone() -> None:
    entries = [entry for entry, _ in Messages(magic=1, records=RECORDS).entries(40, -1)]
    assert [(entry.base_offset, entry.last_offset, entry.records) for entry in entries] == [(40, 40, 1), (41, 41, 1), (42, 42, 1)]
    assert [entry.max_timestamp for entry in entries] == [T, T + 1, T + 2]


@pytest.mark.parametrize(("magic", "header", "inner_offsets"), [(0, 18, [40, 41, 42]), (1, 26, [0, 1, 2])])
def test_wrapper_has_the_last_offset_and_its_messages_inside(magic: int, header: int, inner_offsets: list[int]) -> None:
    ((entry, data),) = Messages(magic=magic, records=RECORDS, codec=Codec.GZIP).entries(40, -1)
    assert (entry.base_offset, entry.last_offset, entry.records) == (40, 42, 3)
    assert struct.unpack_from(">q", data) == (42,)
    assert data[header : header + 4] == b"\xff" * 4
    inner = gzip.decompress(data[header + 8 :])
    assert _offsets(inner) == inner_offsets


def test_log_append_time_needs_magic_1() -> None:
    data = encode_message(1, 0, Record(None, b"v", T), log_append_time=T + 5)
    assert data[17] == 0b1000
    assert struct.unpack_from(">q", data, 18) == (T + 5,)


def test_zstd_is_younger_than_these_formats() -> None:
    with pytest.raises(ValueError, match="zstd"):
        encode_message(1, 0, Record(), codec=Codec.ZSTD)


def test_magic_2_is_no_message() -> None:
    with pytest.raises(ValueError, match="not 2"):
        encode_message(2, 0, Record())


def _offsets(messages: bytes) -> list[int]:
    offsets, position = [], 0
    while position < len(messages):
        offset, size = struct.unpack_from(">qi", messages, position)
        offsets.append(offset)
        position += 12 + size
    return offsets
