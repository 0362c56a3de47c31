"""Messages of magic 0 and 1, alone and in wrappers."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats import entries
from streaming.kafka.formats.entries import OldMessage, read_entry_records, read_message
from streaming.kafka.formats.records import Record
from streaming.simulator.batch_writer import Codec
from streaming.simulator.batch_writer import Record as Sent
from tests import legacy_messages as written
from tests.formats.vectors import DATA_BATCH, TIME
from tests.tables import each_row

OLD_CODECS = [codec for codec in Codec if codec is not Codec.ZSTD]
MAGICS = st.sampled_from([0, 1])
FIELDS = st.none() | st.binary(max_size=40)
SENT = st.lists(st.builds(Sent, key=FIELDS, value=FIELDS, timestamp=st.integers(0, 2**42)), min_size=1, max_size=20).map(tuple)
PLAIN = written.encode_message(1, 7, Sent(b"k", b"v", TIME))


def message_of(data: bytes) -> OldMessage:
    message = read_message(memoryview(data))
    assert message is not None
    return message


def wrapper(magic: int, codec: Codec, *values: bytes, base_offset: int = 100, append_time: int | None = None) -> bytes:
    records = tuple(Sent(None, value, TIME + place) for place, value in enumerate(values))
    return written.encode_wrapper(magic, base_offset, records, codec, log_append_time=append_time)


def in_wrapper(inner: bytes, magic: int = 1, codec: Codec = Codec.NONE, claimed: Codec = Codec.GZIP) -> bytes:
    """A wrapper around bytes that need not be messages."""
    return written.encode_message(magic, 9, Sent(None, written.compress(claimed, inner), TIME), codec=claimed)


def test_all_of_a_message() -> None:
    message = message_of(PLAIN)
    assert message == OldMessage(
        size=len(PLAIN), offset=7, magic=1, crc=message.crc, is_valid=True, attributes=0, timestamp=TIME, key=b"k", value=b"v"
    )
    assert (message.codec, message.is_log_append_time) == (0, False)


def inner_messages(message: OldMessage, **bounds: int) -> tuple[OldMessage, ...]:
    return tuple(entries.inner_messages(message, **bounds))


def test_a_message_of_magic_0_has_no_time() -> None:
    message = message_of(written.encode_message(0, 7, Sent(None, None, TIME)))
    assert (message.timestamp, message.key, message.value, message.is_log_append_time) == (-1, None, None, False)


@given(MAGICS, SENT, st.sampled_from(OLD_CODECS), st.integers(0, 2**40), st.none() | st.just(TIME))
def test_what_old_producers_wrote_reads_back(magic: int, sent: tuple[Sent, ...], codec: Codec, base: int, append_time: int | None) -> None:
    log = written.Messages(magic=magic, records=sent, codec=codec, log_append_time=append_time)
    found: list[Record] = []
    for _, data in log.entries(base, 0):
        found += read_entry_records(memoryview(data)) or ()
    times = [-1 if magic == 0 else one.timestamp if append_time is None else append_time for one in sent]
    assert found == [Record(base + place, times[place], -1, one.key, one.value, ()) for place, one in enumerate(sent)]


@each_row("codec", [codec for codec in OLD_CODECS if codec is not Codec.NONE])
@each_row("magic", [0, 1])
def test_a_wrapper_gives_its_messages_their_offsets(magic: int, codec: Codec) -> None:
    message = message_of(wrapper(magic, codec, b"a", b"b", b"c"))
    assert (message.offset, message.codec) == (102, codec)
    assert [(inner.offset, inner.value) for inner in inner_messages(message)] == [(100, b"a"), (101, b"b"), (102, b"c")]


def test_gaps_that_compaction_left_in_a_wrapper_are_kept() -> None:
    inner = b"".join(written.encode_message(1, offset, Sent(None, b"v", TIME)) for offset in (1, 4))
    assert [one.offset for one in inner_messages(message_of(in_wrapper(inner)))] == [6, 9]


def test_the_append_time_of_a_wrapper_is_that_of_its_messages() -> None:
    message = message_of(wrapper(1, Codec.GZIP, b"a", b"b", append_time=5))
    assert message.is_log_append_time
    assert [inner.timestamp for inner in inner_messages(message)] == [5, 5]


def test_an_lz4_frame_of_magic_0_is_read_whatever_its_header_checksum() -> None:
    message = message_of(wrapper(0, Codec.LZ4, b"a" * 1000, b"b"))
    assert message.value is not None
    damaged = replace(message, value=message.value[:6] + bytes([message.value[6] ^ 0xFF]) + message.value[7:])
    assert inner_messages(damaged) == inner_messages(message)
    with pytest.raises(FormatError, match="damaged"):
        inner_messages(replace(damaged, magic=1))


def test_a_wrong_crc_is_reported_and_no_error() -> None:
    damaged = bytearray(PLAIN)
    damaged[-1] ^= 1
    message = message_of(bytes(damaged))
    assert (message.is_valid, message.value) == (False, b"w")


def test_a_message_that_is_not_all_there_is_none() -> None:
    for length in range(len(PLAIN)):
        assert read_message(PLAIN[:length]) is None
        assert read_entry_records(memoryview(PLAIN)[:length]) is None


def test_zeros_of_a_preallocated_file_are_none() -> None:
    assert read_message(bytes(64)) is None
    assert read_entry_records(memoryview(bytes(64))) is None


@each_row(
    ("data", "what"),
    [
        (bytes(8) + b"\0\0\0\x0d" + bytes(20), "message length 13 is too small at position 0"),
        (DATA_BATCH, "magic 2 where 0 or 1 is expected at position 0"),
        (bytes(8) + b"\0\0\0\x0e" + bytes(4) + b"\1" + bytes(20), "message length 14 is too small"),
        (PLAIN[:11] + b"\x17" + PLAIN[12:], "field longer than its message at position 0"),
        (PLAIN[:26] + b"\xff\xff\xff\xfe" + PLAIN[30:], "field longer than its message"),
        (PLAIN[:26] + b"\0\0\0\0" + PLAIN[30:], "field longer than its message|does not end"),
    ],
)
def test_what_is_no_message_is_refused(data: bytes, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        read_message(data)


@each_row(
    ("data", "what"),
    [
        (in_wrapper(b""), "without a message"),
        (in_wrapper(PLAIN[:-1]), "reaches past its end"),
        (in_wrapper(PLAIN + PLAIN[:5]), "cut short at position 36"),
        (in_wrapper(written.encode_message(0, 0, Sent(None, b"v", TIME))), "magic 0 and codec 0 inside a compressed one of magic 1"),
        (in_wrapper(wrapper(1, Codec.GZIP, b"a")), "magic 1 and codec 1 inside"),
        (written.encode_message(1, 0, Sent(None, None, TIME), codec=Codec.GZIP), "without a value"),
        (wrapper(1, Codec.GZIP, bytes(5000)), "grow beyond 4000 bytes"),
        (wrapper(0, Codec.LZ4, bytes(5000)), "grow beyond 4000 bytes"),
    ],
)
def test_a_wrapper_of_something_else_is_refused(data: bytes, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        inner_messages(message_of(data), limit=4000)


def test_zstd_came_later() -> None:
    with pytest.raises(FormatError, match="codec 4 does not exist in messages of magic 1"):
        inner_messages(replace(message_of(wrapper(1, Codec.GZIP, b"a")), attributes=4))


@given(st.binary(max_size=100), st.integers(0, 120), MAGICS, st.sampled_from(OLD_CODECS))
def test_garbage_is_refused_and_nothing_else(garbage: bytes, at: int, magic: int, codec: Codec) -> None:
    whole = wrapper(magic, codec, b"some value", b"another")
    for data in (
        garbage,
        bytes(8) + (5 + len(garbage) + 4).to_bytes(4, "big") + bytes(4) + bytes([magic, codec]) + garbage,
        whole[:at] + garbage,
    ):
        with suppress(FormatError):
            message = read_message(data)
            assert message is None or inner_messages(message, limit=1 << 16)
