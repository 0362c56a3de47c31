"""The offsets of messages of magic 0 and 1, and how many they are. Wrappers of every codec as Kafka wrote them: `test_headers`."""

import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.entries import LegacyEntry, read_entry
from tests.formats.dumped import columns, read
from tests.tables import each_row

WRAPPERS = [
    data[position : position + size]
    for name in ("magic0-0", "magic1-0")
    for data in [read(f"old_formats/{name}/00000000000000000000.log")]
    for position, size, codec in zip(
        columns(data).positions.tolist(), columns(data).size.tolist(), columns(data).codec.tolist(), strict=True
    )
    if codec
]


def message(offset: int, *, magic: int = 1, attributes: int = 0, value: bytes = b"v", timestamp: int = 7) -> bytes:
    time = struct.pack(">q", timestamp) if magic else b""
    body = bytes([magic, attributes]) + time + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def gzipped(*inner: bytes) -> bytes:
    stream = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    return stream.compress(b"".join(inner)) + stream.flush()


def test_a_message_alone_is_a_batch_of_one() -> None:
    assert read_entry(memoryview(message(9))) == LegacyEntry(9, 9, 1, 0, 7)
    assert read_entry(memoryview(message(9, magic=0))) == LegacyEntry(9, 9, 1, 0, -1)


def test_inner_offsets_are_relative_to_the_last_one_in_magic_1_and_absolute_in_magic_0() -> None:
    relative = gzipped(message(0), message(1), message(2))
    assert read_entry(memoryview(message(12, attributes=1, value=relative))) == LegacyEntry(10, 12, 3, 1, 7)
    absolute = gzipped(message(10, magic=0), message(12, magic=0))
    assert read_entry(memoryview(message(12, magic=0, attributes=1, value=absolute))) == LegacyEntry(10, 12, 2, 1, -1)


def test_a_wrapper_that_lost_messages_to_compaction_keeps_its_offsets() -> None:
    assert read_entry(memoryview(message(12, attributes=1, value=gzipped(message(1), message(4))))) == LegacyEntry(9, 12, 2, 1, 7)


@each_row(
    "data",
    [
        message(1, attributes=4, value=gzipped(message(0))),  # zstd came with magic 2
        message(1, attributes=7, value=gzipped(message(0))),
        message(1, attributes=1, value=b"no gzip"),
        message(2**63 - 1, attributes=1, value=gzipped(message(0), message(-5))),  # the first offset does not fit 64 bits
        message(-(2**63), attributes=1, value=gzipped(message(0), message(5))),
        message(1, attributes=1, value=gzipped(message(0))[:-9]),
        message(1, attributes=2, value=b"\x82SNAPPY\x00no snappy"),
        message(1, attributes=3, value=b"no lz4"),
        message(1, magic=0, attributes=3, value=b"\x04\x22\x4d\x18\x60\x40\x82\xff\xff\x00\x00short"),
        message(1, attributes=1, value=gzipped()),
        message(1, attributes=1, value=gzipped(message(0)[:-1])),
        message(1, attributes=1, value=gzipped(struct.pack(">qi", 0, -5) + bytes(20))),
        message(1, attributes=1)[:30],
        message(1, attributes=1, value=b"x" * 50)[:-10],
    ],
)
def test_what_cannot_be_opened_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        read_entry(memoryview(data))


def test_a_wrapper_grows_to_a_bound_only() -> None:
    with pytest.raises(FormatError, match="grow"):
        read_entry(memoryview(message(1, attributes=1, value=gzipped(message(0, value=bytes(2000))))), limit=1000)


@given(st.sampled_from(WRAPPERS), st.data())
def test_damage_is_refused_and_nothing_else(wrapper: bytes, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(17, len(wrapper) - 1))
    damaged = wrapper[:at] + draw.draw(st.binary(min_size=1, max_size=4)) + wrapper[at + 1 : draw.draw(st.integers(at, len(wrapper)))]
    with suppress(FormatError):
        read_entry(memoryview(damaged))


def test_the_fixtures_hold_wrappers_of_every_codec_that_there_was() -> None:
    assert {(wrapper[16], wrapper[17] & 7) for wrapper in WRAPPERS} == {(magic, codec) for magic in (0, 1) for codec in (1, 2, 3)}
