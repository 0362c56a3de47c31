"""The records of a range of `__consumer_offsets`."""

import json
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.short_names import short_name
from streaming.errors import FormatError
from streaming.kafka.formats.consumer_offsets import GroupKey, OffsetCommit, OffsetCommitKey, read_offsets_key, read_offsets_value
from streaming.kafka.formats.stored_groups import ConsumerGroup, ConsumerGroupKey, KeyType
from streaming.kafka.scan.group_records import (
    NOT_UNDERSTOOD,
    Commit,
    EndMarker,
    GroupRecord,
    GroupRecords,
    group_records,
    read_single_commit,
)
from streaming.kafka.scan.headers import read_headers
from streaming.simulator.batch_writer import Batch, Codec, Record
from streaming.simulator.coordinators import offset_commit_record
from tests.builders import NOW, abort, commit
from tests.formats.dumped import columns, files, read, reported
from tests.formats.offsets_topic import PAYLOAD
from tests.formats.segments import Content, empty, written
from tests.formats.vectors import CONSUMER_GROUPS, GROUPS, OFFSET_COMMITS, TIME
from tests.scan.coordinator import holding
from tests.tables import each_row


def records(*batches: Batch) -> GroupRecords:
    return records_in(written(batches))


def records_in(content: Content) -> GroupRecords:
    return group_records(read_headers(content.buffer, np.array(content.positions, np.int64)), content.buffer)


def committed(offset: int = 42, group: str = "g", topic: str = "t", partition: int = 0) -> Record:
    return offset_commit_record(group, topic, partition, offset, NOW)


def value(offset: int = 42) -> OffsetCommit:
    return OffsetCommit(offset=offset, metadata="", commit_timestamp=NOW)


def test_commits_groups_and_markers_in_order() -> None:
    group = Record(struct.pack(">hh", 2, 1) + b"g", GROUPS[3][1])
    found = records(
        holding(committed(1), committed(2, partition=1)), holding(committed(3), producer=7), commit(7), abort(8), holding(group)
    )
    assert found.unreadable == 0
    assert found.records == (
        Commit(0, -1, "g", "t", 0, value(1), NOW),
        Commit(1, -1, "g", "t", 1, value(2), NOW),
        Commit(2, 7, "g", "t", 0, value(3), NOW),
        EndMarker(3, 7, True, NOW),
        EndMarker(4, 8, False, NOW),
        GroupRecord(5, GroupKey("g"), read_offsets_value(GroupKey("g"), GROUPS[3][1])),
    )


@each_row("codec", list(Codec))
def test_tombstones(codec: Codec) -> None:
    gone = replace(committed(), value=None)
    group = Record(bytes.fromhex("0003000167"), None)
    assert records(holding(gone, codec=codec), holding(group, codec=codec)) == GroupRecords(
        (Commit(0, -1, "g", "t", 0, None, NOW), GroupRecord(1, ConsumerGroupKey(KeyType.CONSUMER_GROUP_METADATA, "g"), None)), 0
    )


def test_what_is_not_understood_is_counted() -> None:
    later = replace(committed(1), value=b"\x00\x63" + bytes(40))
    short_key, unknown_type, later_group = Record(b"\x00", b""), Record(b"\x03\xe7a", b""), Record(bytes.fromhex("0003000167"), b"\0\1")
    found = records(*map(holding, (later, short_key, unknown_type, later_group, Record(None, b""), committed(2))))
    assert found.unreadable == 5
    assert found.records == (
        Commit(0, -1, "g", "t", 0, NOT_UNDERSTOOD, NOW),
        GroupRecord(3, ConsumerGroupKey(KeyType.CONSUMER_GROUP_METADATA, "g"), NOT_UNDERSTOOD),
        Commit(5, -1, "g", "t", 0, value(2), NOW),
    )


def test_a_batch_that_cannot_be_opened_is_counted() -> None:
    first = written([holding(committed(1), codec=Codec.ZSTD), holding(committed(2))])
    found = records_in(replace(first, data=first.data[:61] + b"\xff" * 4 + first.data[65:]))
    assert found == GroupRecords((Commit(1, -1, "g", "t", 0, value(2), NOW),), 1)


def test_what_compaction_has_emptied_is_nothing() -> None:
    assert records(empty(3), replace(commit(7), records=(), last_offset_delta=0, max_timestamp=NOW)) == GroupRecords((), 0)


def test_groups_of_the_newer_protocol() -> None:
    found = records(holding(Record(bytes.fromhex("0003000167"), CONSUMER_GROUPS[0])))
    assert [one.value for one in found.records if isinstance(one, GroupRecord)] == [ConsumerGroup(9, 0)]


NAMES = st.sampled_from(["g", "é", "", "a\x00\x1b[31m", "n" * 70, "x" * 127, "y" * 10_000]) | st.text(max_size=5)
VALUES = st.sampled_from([None, *OFFSET_COMMITS, OFFSET_COMMITS[4][:-18] + b"\0", OFFSET_COMMITS[3][:-1], OFFSET_COMMITS[3] + b"\0"])


@st.composite
def commit_records(draw: st.DrawFn) -> Record:
    record = committed(1, draw(NAMES), draw(NAMES), draw(st.integers(-(2**31), 2**31 - 1)))
    legacy = draw(st.sampled_from([0, 1, 1]))
    assert record.key is not None
    changed = replace(record, key=struct.pack(">h", legacy) + record.key[2:])
    kept = draw(st.booleans())
    metadata = "m" * draw(st.sampled_from([0, 1, 126, 127, 300]))
    plain = struct.pack(">hqih", 3, draw(st.integers(-2, 2**62)), 5, len(metadata)) + metadata.encode() + struct.pack(">q", TIME)
    return replace(
        changed, value=plain if kept else draw(VALUES), headers=(("h", b""),) if draw(st.sampled_from([False] * 9 + [True])) else ()
    )


@given(st.lists(st.lists(commit_records(), min_size=1, max_size=2), max_size=6), st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP]))
def test_it_is_what_the_general_readers_read(drawn: list[list[Record]], codec: Codec) -> None:
    expected, offset, unreadable = [], 0, 0
    for one in drawn:
        for record in one:
            key = read_offsets_key(record.key or b"")
            assert isinstance(key, OffsetCommitKey)
            try:
                found = None if record.value is None else read_offsets_value(key, record.value)
            except FormatError:
                found, unreadable = NOT_UNDERSTOOD, unreadable + 1
            expected.append((offset, short_name(key.group), short_name(key.topic), key.partition, found))
            offset += 1
    result = records(*(holding(*one, codec=codec) for one in drawn))
    assert [
        (one.record_offset, one.group, one.topic, one.partition, one.value) for one in result.records if isinstance(one, Commit)
    ] == expected
    assert result.unreadable == unreadable


@pytest.mark.parametrize("version", [3, 4])
def test_the_usual_batch_is_read_at_once(version: int) -> None:
    content = written([holding(replace(committed(), value=OFFSET_COMMITS[version]))])
    assert read_single_commit(memoryview(content.data), 0, len(content.data)) is not None


@given(st.data())
def test_damage_of_a_single_batch_is_never_read_otherwise_than_in_general(data: st.DataObject) -> None:
    content = written([holding(replace(committed(), value=OFFSET_COMMITS[data.draw(st.sampled_from([3, 4]))]))])
    at = data.draw(st.integers(61, len(content.data) - 1))
    damaged = replace(content, data=content.data[:at] + bytes([data.draw(st.integers(0, 255))]) + content.data[at + 1 :])
    single = read_single_commit(memoryview(damaged.data), 0, len(damaged.data))
    found = records_in(damaged)
    general = group_records_slowly(damaged)
    assert found == general
    whole = [replace(each, at_ms=-1) if isinstance(each, Commit) else each for each in general.records]
    assert single is None or whole == [Commit(0, -1, *single)]


def group_records_slowly(content: Content) -> GroupRecords:
    """The same without the short way."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("streaming.kafka.scan.group_records.read_single_commit", lambda *_: None)
        return records_in(content)


@pytest.mark.parametrize("name", [name for name in files(".log") if "__consumer_offsets" in name])
def test_what_kafka_itself_reads_in_the_same_log(name: str) -> None:
    expected = []
    for line in reported(name):
        if match := PAYLOAD.search(line):
            key, payload = json.loads(match[1])["data"], json.loads(match[2])["data"]
            if "partition" in key:
                expected.append((key["group"], key["topic"], key["partition"], payload["offset"]))
    data = read(name)
    found = group_records(columns(data), np.frombuffer(data, np.uint8))
    commits = [one for one in found.records if isinstance(one, Commit)]
    assert found.unreadable == 0
    assert [(one.group, one.topic, one.partition, one.value.offset) for one in commits if isinstance(one.value, OffsetCommit)] == expected
