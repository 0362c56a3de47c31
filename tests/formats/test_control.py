"""Control records of every type."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.control import (
    ControlRecord,
    EndTxnMarker,
    KRaftVersion,
    KRaftVersionRange,
    KRaftVoters,
    LeaderChange,
    SnapshotFooter,
    SnapshotHeader,
    UnknownControl,
    Voter,
    VoterEndpoint,
    VoterNode,
    read_control,
)
from streaming.kafka.formats.records import Record, read_batch, read_records
from tests.formats.vectors import ABORT_MARKER, COMMIT_MARKER, CONTROL_VALUES, OTHER_ID, TIME, TOPIC_ID
from tests.tables import each_row

FIRST, SECOND = Voter(1, TOPIC_ID), Voter(2, OTHER_ID)


def control(control_type: int, value: bytes | None, version: int = 0) -> ControlRecord:
    return read_control(Record(0, TIME, -1, struct.pack(">hh", version, control_type), value, ()))


@pytest.mark.parametrize(("data", "committed"), [(COMMIT_MARKER, True), (ABORT_MARKER, False)])
def test_the_end_of_a_transaction(data: bytes, committed: bool) -> None:
    batch = read_batch(memoryview(data))
    assert batch is not None
    assert [read_control(record) for record in read_records(batch)] == [EndTxnMarker(committed, 9)]


@each_row(
    ("name", "control_type", "expected"),
    [
        ("leader change 0", 2, LeaderChange(1, (Voter(1, None),), (Voter(1, None),))),
        ("leader change 1", 2, LeaderChange(2, (FIRST, SECOND), (SECOND,))),
        ("snapshot header", 3, SnapshotHeader(TIME)),
        ("snapshot footer", 4, SnapshotFooter()),
        ("kraft version", 5, KRaftVersion(1)),
        (
            "kraft voters",
            6,
            KRaftVoters((VoterNode(1, TOPIC_ID, (VoterEndpoint("CONTROLLER", "localhost", 39093),), KRaftVersionRange(0, 1)),)),
        ),
    ],
)
def test_what_the_quorum_says_about_itself(name: str, control_type: int, expected: ControlRecord) -> None:
    assert control(control_type, CONTROL_VALUES[name]) == expected


def test_an_unknown_type_is_kept_as_it_stands() -> None:
    assert control(7, b"abc") == UnknownControl(7, b"abc")
    assert control(300, None) == UnknownControl(300, None)


@each_row(("control_type", "newer"), [(2, 2), (3, 1), (4, 1), (5, 1), (6, 1)])
def test_a_message_of_a_newer_version_is_kept_as_it_stands(control_type: int, newer: int) -> None:
    value = newer.to_bytes(2, "big") + b"something else"
    assert control(control_type, value) == UnknownControl(control_type, value)


def test_newer_keys_and_markers_are_read_as_the_first_version() -> None:
    assert control(1, bytes.fromhex("000500000009ffff"), version=3) == EndTxnMarker(True, 9)


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_a_record_without_its_key_is_refused(key: bytes | None) -> None:
    with pytest.raises(FormatError, match="key of a control record"):
        read_control(Record(0, TIME, -1, key, b"", ()))


@each_row(
    ("control_type", "value", "what"),
    [
        (0, None, "cut short"),
        (0, b"\0\0\0\0\0", "cut short"),
        (1, b"\xff\xff\0\0\0\0", "version -1"),
        (-1, b"", "version 0 and type -1"),
        (3, None, "without a value"),
        (3, b"", "cut short"),
        (3, CONTROL_VALUES["snapshot header"][:-1], "varint"),
        (4, CONTROL_VALUES["snapshot footer"] + b"\0", "after the end"),
    ],
)
def test_damaged_ones_are_refused(control_type: int, value: bytes | None, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        control(control_type, value)


@given(st.integers(-2, 8), st.none() | st.binary(max_size=60), st.binary(max_size=6))
def test_garbage_is_refused_and_nothing_else(control_type: int, value: bytes | None, key: bytes) -> None:
    with suppress(FormatError):
        control(control_type, value)
    with suppress(FormatError):
        read_control(Record(0, TIME, -1, key, value, ()))


@given(st.sampled_from(sorted(CONTROL_VALUES)), st.integers(2, 6), st.data())
def test_no_single_wrong_byte_is_more_than_refused(name: str, control_type: int, data: st.DataObject) -> None:
    damaged = bytearray(CONTROL_VALUES[name])
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(FormatError):
        control(control_type, bytes(damaged))
