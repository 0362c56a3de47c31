"""The records inside a batch."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats import records as opened
from streaming.kafka.formats.records import MAX_TIMED_BYTES, Header, Record, RecordBatch, read_batch, read_record_heads
from streaming.simulator import batch_writer as written
from streaming.simulator.batch_writer import Codec
from tests.formats.vectors import COMMIT_MARKER, DATA_BATCH, EMPTY_BATCH, TIME
from tests.tables import each_row

FIELDS = st.none() | st.binary(max_size=40)
RECORDS = st.lists(
    st.builds(
        written.Record,
        key=FIELDS,
        value=FIELDS,
        timestamp=st.integers(0, 2**42),
        headers=st.lists(st.tuples(st.text(max_size=5), FIELDS), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=20,
)


def batch_of(data: bytes) -> RecordBatch:
    batch = read_batch(memoryview(data))
    assert batch is not None
    return batch


def read_records(batch: RecordBatch, **bounds: int) -> tuple[Record, ...]:
    return tuple(opened.read_records(batch, **bounds))


def test_keys_values_headers_offsets_and_times() -> None:
    assert read_records(batch_of(DATA_BATCH)) == (
        Record(100, TIME, 0, b"k1", b"v1", ()),
        Record(101, TIME + 7, 1, None, b"v2", (Header(b"h", b"x"),)),
    )


def test_a_control_record_is_a_record_too() -> None:
    assert read_records(batch_of(COMMIT_MARKER)) == (Record(102, TIME + 50, -1, b"\0\0\0\1", b"\0\0\0\0\0\x09", ()),)


def test_an_empty_batch_holds_none() -> None:
    assert read_records(batch_of(EMPTY_BATCH)) == ()


@given(RECORDS, st.sampled_from(Codec), st.integers(0, 2**40))
def test_records_read_back_from_every_codec(records: list[written.Record], codec: Codec, base_offset: int) -> None:
    data = written.encode(written.Batch(records=tuple(records), codec=codec), base_offset)
    assert read_records(batch_of(data)) == tuple(
        Record(base_offset + place, r.timestamp, -1, r.key, r.value, tuple(Header(name.encode(), value) for name, value in r.headers))
        for place, r in enumerate(records)
    )


@given(RECORDS, st.sampled_from(list(Codec)), st.none() | st.integers(0, 2**42))
def test_offsets_and_times_alone_are_those_of_the_records(records: list[written.Record], codec: Codec, append_time: int | None) -> None:
    batch = batch_of(written.encode(written.Batch(records=tuple(records), codec=codec, log_append_time=append_time), 7))
    times = [(record.offset, record.timestamp) for record in read_records(batch)]
    assert list(read_record_heads(batch, MAX_TIMED_BYTES, len(records))) == [(*each, b"") for each in times]
    whole = list(read_record_heads(batch, MAX_TIMED_BYTES, len(records), bodies=True))
    assert [each[:2] for each in whole] == [(offset, record.timestamp) for (offset, _), record in zip(times, records, strict=True)]
    assert all(record.value is None or record.value in body for (_, _, body), record in zip(whole, records, strict=True))
    assert list(read_record_heads(batch_of(EMPTY_BATCH), MAX_TIMED_BYTES, 0)) == []


def test_with_log_append_time_every_record_has_the_time_of_the_batch() -> None:
    records = (written.Record(value=b"a", timestamp=5), written.Record(value=b"b", timestamp=9))
    batch = batch_of(written.encode(written.Batch(records=records, log_append_time=TIME), 0))
    assert [record.timestamp for record in read_records(batch)] == [TIME, TIME]


def test_with_a_delete_horizon_records_keep_their_own_times() -> None:
    records = (written.Record(value=None, timestamp=TIME), written.Record(value=b"b", timestamp=TIME + 3))
    batch = batch_of(written.encode(written.Batch(records=records, delete_horizon=TIME + 10**9), 0))
    assert batch.delete_horizon == TIME + 10**9
    assert [record.timestamp for record in read_records(batch)] == [TIME, TIME + 3]


def test_sequences_go_on_at_0_behind_the_largest() -> None:
    records = tuple(written.Record(value=b"v", timestamp=1) for _ in range(3))
    batch = batch_of(written.encode(written.Batch(records=records, producer_id=7, producer_epoch=0, base_sequence=2**31 - 2), 0))
    assert [record.sequence for record in read_records(batch)] == [2**31 - 2, 2**31 - 1, 0]
    assert batch.last_sequence == 0


def test_gaps_that_compaction_left_are_kept() -> None:
    records = (written.Record(value=b"a", offset_delta=3), written.Record(value=b"b", offset_delta=8))
    batch = batch_of(written.encode(written.Batch(records=records, last_offset_delta=9), 50))
    assert [record.offset for record in read_records(batch)] == [53, 58]


def test_records_are_not_opened_beyond_the_limit() -> None:
    batch = batch_of(written.encode(written.Batch(records=(written.Record(value=bytes(5000)),), codec=Codec.ZSTD), 0))
    with pytest.raises(FormatError, match="grow beyond 4000"):
        read_records(batch, limit=4000)


@each_row(
    ("payload", "count", "what"),
    [
        ("14000000046b31047631", 1, "record longer than its batch"),
        ("01000000000000", 1, "record longer than its batch"),
        ("14000000046b310476310000", 1, "bytes after the last record"),
        ("14000000046b3104763100", 2, "2 records cannot lie in 11 bytes"),
        ("14000000046b3104763100808080", 2, "varint without an end at position 11"),
        ("12000000046b3104763100", 1, "does not end"),
        ("16000000046b310476310000", 1, "does not end"),
        ("14000000046b3104763101", 1, "-1 headers"),
        ("14000000046b3104763102", 1, "1 headers"),
        ("02", 1, "1 records cannot lie in 1 bytes"),
        ("02000000000000", 1, "does not end|cut short|longer"),
        ("1a000000010180", 1, "longer than its batch"),
        ("0c008080808080", 1, "varint without an end"),
        ("0c000000010101", 1, "header|cut short|-1"),
        ("14000000206b3104763100", 1, "field longer than its record"),
        ("14000000036b3104763100", 1, "negative length"),
        ("100000000101020101", 1, "header without a name"),
    ],
)
def test_damaged_records_are_refused(payload: str, count: int, what: str) -> None:
    batch = replace(batch_of(DATA_BATCH), payload=memoryview(bytes.fromhex(payload)), records_count=count)
    with pytest.raises(FormatError, match=what):
        read_records(batch)


@given(st.binary(max_size=60), st.integers(0, 30), st.integers(0, 7))
def test_garbage_is_refused_and_nothing_else(garbage: bytes, count: int, codec: int) -> None:
    batch = replace(batch_of(DATA_BATCH), payload=memoryview(garbage), records_count=count, attributes=codec)
    with suppress(FormatError):
        assert len(read_records(batch)) == count
    for bodies in (False, True):
        with suppress(FormatError):
            assert len(list(read_record_heads(batch, MAX_TIMED_BYTES, count, bodies=bodies))) == count
