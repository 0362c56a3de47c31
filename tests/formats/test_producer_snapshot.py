"""Producer state on disk: a value, not there yet, or an error."""

import struct
from contextlib import suppress

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.producer_snapshot import ProducerState, read_producer_snapshot
from tests.formats.dumped import files, producer_line, read, reported
from tests.formats.vectors import TIME
from tests.tables import each_row

ONE = bytes.fromhex("0001518fa82a000000010000000000000fa0000300000001000000000000006500000001" + "0000018bcfe56807ffffffff0000000000000064")
NONE = bytes.fromhex("000148674bc700000000")
STATE = ProducerState(
    producer_id=4000,
    producer_epoch=3,
    last_sequence=1,
    last_offset=101,
    offset_delta=1,
    timestamp=TIME + 7,
    coordinator_epoch=-1,
    current_txn_first_offset=100,
)
LONG, INT = st.integers(-1, 2**63 - 1), st.integers(-1, 2**31 - 1)
STATES = st.builds(
    ProducerState,
    producer_id=LONG,
    producer_epoch=st.integers(-1, 2**15 - 1),
    last_sequence=INT,
    last_offset=LONG,
    offset_delta=INT,
    timestamp=LONG,
    coordinator_epoch=INT,
    current_txn_first_offset=LONG,
)


def written(states: list[ProducerState]) -> bytes:
    body = struct.pack(">i", len(states))
    for state in states:
        body += struct.pack(">qhiqiqiq", *(getattr(state, name) for name in ProducerState.__dataclass_fields__))
    return struct.pack(">hI", 1, google_crc32c.value(body)) + body


def test_what_kafka_writes_is_understood() -> None:
    assert read_producer_snapshot(ONE) == (STATE,)
    assert read_producer_snapshot(NONE) == ()
    assert written([STATE]) == ONE


@each_row("name", files(".snapshot"))
def test_producers_are_what_kafka_prints(name: str) -> None:
    states = read_producer_snapshot(read(name))
    assert states is not None
    assert sorted(producer_line(state) for state in states) == sorted(reported(name))


@given(st.lists(STATES, max_size=5))
def test_producers_read_back(states: list[ProducerState]) -> None:
    assert read_producer_snapshot(written(states)) == tuple(states)


@pytest.mark.parametrize("data", [ONE, NONE])
def test_a_part_of_a_snapshot_is_not_there_yet(data: bytes) -> None:
    for length in range(len(data)):
        assert read_producer_snapshot(memoryview(data)[:length]) is None


def test_the_first_sequence_wraps_backwards() -> None:
    (state,) = read_producer_snapshot(ONE) or ()
    assert state.first_sequence == 0
    wrapped = read_producer_snapshot(written([STATES_AFTER_A_WRAP]))
    assert wrapped is not None
    assert wrapped[0].first_sequence == 2**31 - 2


STATES_AFTER_A_WRAP = ProducerState(
    producer_id=1,
    producer_epoch=0,
    last_sequence=1,
    last_offset=9,
    offset_delta=3,
    timestamp=0,
    coordinator_epoch=-1,
    current_txn_first_offset=-1,
)


@each_row(
    ("data", "what"),
    [
        (b"\0\2", "version 2, known is 1 at position 0"),
        (ONE + b"\0", "after the 1 entries of a producer snapshot at position 56"),
        (NONE[:6] + b"\xff\xff\xff\xff", "-1 entries at position 6"),
        (ONE[:-1] + b"\x65", "wrong CRC in a producer snapshot at position 2"),
    ],
)
def test_what_is_no_snapshot_is_refused_with_its_position(data: bytes, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        read_producer_snapshot(data)


@given(st.integers(16, len(ONE) * 8 - 1))
def test_every_wrong_bit_is_found(bit: int) -> None:
    damaged = bytearray(ONE)
    damaged[bit // 8] ^= 1 << bit % 8
    with suppress(FormatError):
        assert read_producer_snapshot(bytes(damaged)) is None  # a larger count: it waits for more


@given(st.binary(max_size=120))
def test_garbage_is_refused_and_nothing_else(garbage: bytes) -> None:
    with suppress(FormatError):
        read_producer_snapshot(garbage)
