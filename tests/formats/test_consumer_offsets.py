"""Committed offsets and groups."""

import json
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.consumer_offsets import (
    GroupKey,
    OffsetCommit,
    OffsetCommitKey,
    OffsetsKey,
    OtherKey,
    read_offset_commit,
    read_offsets_key,
    read_offsets_value,
)
from streaming.kafka.formats.stored_groups import (
    ConsumerGroup,
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupRegexKey,
    GroupMember,
    GroupMetadata,
    KeyType,
    PartitionRacks,
    RegexTopics,
    SubscribedTopic,
    SubscribedTopics,
    read_group_metadata,
)
from streaming.simulator.coordinators import offset_commit_record
from streaming.terminal.dump.row_table import plain
from tests.dump.reported import as_ours, shared
from tests.formats.dumped import columns, files, read, reported
from tests.formats.offsets_topic import PAYLOAD, records_of
from tests.formats.vectors import CONSUMER_GROUP_RECORDS, CONSUMER_GROUPS, GROUPS, OFFSET_COMMITS, STREAMS_GROUP_RECORDS, TIME, TOPIC_ID
from tests.groups.logs import dumped, segments
from tests.tables import each_row


@each_row("version", range(5))
def test_offset_commits_of_every_version(version: int) -> None:
    assert read_offset_commit(OFFSET_COMMITS[version]) == OffsetCommit(
        offset=42,
        leader_epoch=5 if version >= 3 else -1,
        metadata="é",
        commit_timestamp=TIME,
        expire_timestamp=TIME + 1 if version == 1 else -1,
        topic_id=TOPIC_ID if version >= 4 else None,
    )


@each_row("version", range(5))
def test_groups_of_every_version(version: int) -> None:
    member = GroupMember(
        member_id="m-1",
        group_instance_id="static-1" if version >= 3 else None,
        client_id="c",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=300_000 if version >= 1 else -1,
        session_timeout_ms=45_000,
        subscription=b"\1\2\3",
        assignment=b"",
    )
    group, empty = GROUPS[version]
    assert read_group_metadata(group) == GroupMetadata(
        protocol_type="consumer",
        generation=7,
        protocol="range",
        leader="m-1",
        current_state_timestamp=TIME if version >= 2 else -1,
        members=(member,),
    )
    assert read_group_metadata(empty) == GroupMetadata(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=-1, members=()
    )


def test_groups_of_the_newer_protocol() -> None:
    key = read_offsets_key(bytes.fromhex("0003000167"))
    assert key == ConsumerGroupKey(KeyType.CONSUMER_GROUP_METADATA, "g")
    assert [read_offsets_value(key, value) for value in CONSUMER_GROUPS] == [ConsumerGroup(9, 0), ConsumerGroup(9, 123456789)]


@each_row(
    ("key", "expected"),
    [
        ("00000001670003666f6f00000000", OffsetCommitKey("g", "foo", 0)),
        ("00010001670003666f6f00000007", OffsetCommitKey("g", "foo", 7)),
        ("0002000167", GroupKey("g")),
        ("0004000167", ConsumerGroupKey(KeyType.CONSUMER_GROUP_PARTITION_METADATA, "g")),
        ("000500016700016d", ConsumerGroupMemberKey(KeyType.CONSUMER_GROUP_MEMBER_METADATA, "g", "m")),
        ("001000016700022e2a", ConsumerGroupRegexKey(KeyType.CONSUMER_GROUP_REGULAR_EXPRESSION, "g", ".*")),
        ("000a00016700016d", ConsumerGroupMemberKey(KeyType.SHARE_GROUP_MEMBER_METADATA, "g", "m")),
        ("0017000167", ConsumerGroupKey(KeyType.STREAMS_GROUP_TOPOLOGY, "g")),
        ("03e7aa", OtherKey(999, b"\xaa")),
    ],
)
def test_keys(key: str, expected: OffsetsKey) -> None:
    assert read_offsets_key(bytes.fromhex(key)) == expected


def test_the_value_of_a_key_that_is_not_opened_is_kept_as_it_stands() -> None:
    assert read_offsets_value(OtherKey(999, b""), b"raw") == b"raw"


@each_row(("key_type", "value", "reported_value"), CONSUMER_GROUP_RECORDS + STREAMS_GROUP_RECORDS)
def test_records_of_the_newer_protocol_are_what_kafka_prints(key_type: int, value: str, reported_value: str) -> None:
    expected = as_ours(json.loads(reported_value))
    found = plain(read_offsets_value(key_of(key_type), bytes.fromhex(value)))
    assert shared(found, expected) == expected


def key_of(key_type: int) -> OffsetsKey:
    more = bytes.fromhex("00016d" if key_type in (5, 7, 8, 10, 13, 14, 16, 19, 21, 22) else "")
    return read_offsets_key(key_type.to_bytes(2, "big") + bytes.fromhex("000167") + more)


def test_what_no_broker_of_today_writes_of_groups() -> None:
    topics = bytes.fromhex(
        "0000" + "02" + bytes(range(16)).hex() + "02" + "61" + "00000002" + "02" + "00000001" + "02" + "02" + "72" + "00" * 3
    )
    key = ConsumerGroupKey(KeyType.CONSUMER_GROUP_PARTITION_METADATA, "g")
    assert read_offsets_value(key, topics) == SubscribedTopics(
        (SubscribedTopic("AAECAwQFBgcICQoLDA0ODw", "a", 2, (PartitionRacks(1, ("r",)),)),)
    )
    regex = ConsumerGroupRegexKey(KeyType.CONSUMER_GROUP_REGULAR_EXPRESSION, "g", ".*")
    assert read_offsets_value(regex, bytes.fromhex("0000" + "02" + "0261" + "0000000000000007" + "0000000000000008" + "00")) == RegexTopics(
        ("a",), 7, 8
    )


def kafkas_json(value: object) -> dict[str, object]:
    """Without the members' own bytes, which Kafka's tool opens."""
    if isinstance(value, OffsetCommit):
        return {
            "offset": value.offset,
            "leaderEpoch": value.leader_epoch,
            "metadata": value.metadata,
            "commitTimestamp": value.commit_timestamp,
        } | ({} if value.topic_id is None else {"topicId": value.topic_id})
    assert isinstance(value, GroupMetadata)
    return {
        "protocolType": value.protocol_type,
        "generation": value.generation,
        "protocol": value.protocol,
        "leader": value.leader,
        "currentStateTimestamp": value.current_state_timestamp,
        "members": [
            {
                "memberId": member.member_id,
                "groupInstanceId": member.group_instance_id,
                "clientId": member.client_id,
                "clientHost": member.client_host,
                "rebalanceTimeout": member.rebalance_timeout_ms,
                "sessionTimeout": member.session_timeout_ms,
            }
            for member in value.members
        ],
    }


@pytest.mark.parametrize("name", [name for name in files(".log") if "__consumer_offsets" in name])
def test_records_are_what_kafka_prints(name: str) -> None:
    records = records_of(read(name), columns(read(name)))
    lines = [match for line in reported(name) if (match := PAYLOAD.search(line))]
    assert len(records) == len(lines) > 0
    for record, line in zip(records, lines, strict=True):
        assert record.key is not None
        assert record.value is not None
        key, expected_key, expected = read_offsets_key(record.key), json.loads(line[1])["data"], json.loads(line[2])["data"]
        assert key == (GroupKey(**expected_key) if len(expected_key) == 1 else OffsetCommitKey(**expected_key))
        for member in expected.get("members", ()):
            del member["subscription"], member["assignment"]
        assert kafkas_json(read_offsets_value(key, record.value)) == expected


@each_row("partition", range(4))
def test_records_of_groups_of_every_kind_are_what_kafka_prints(partition: int) -> None:
    data = segments("__consumer_offsets")[partition]
    lines = [match for line in dumped("__consumer_offsets", partition) if (match := re.search(r" key: (\{.*?\}\}) payload: (.*)$", line))]
    records = records_of(data, columns(data))
    assert len(records) == len(lines) > 0
    for record, line in zip(records, lines, strict=True):
        key, reported_key = read_offsets_key(record.key or b""), json.loads(line[1])
        assert plain(key) == as_ours(reported_key["data"]) | (
            {} if int(reported_key["type"]) < 3 else {"key_type": KeyType(int(reported_key["type"])).name}
        )
        if record.value is None:
            assert line[2] == "<DELETE>"
        else:
            expected = as_ours(json.loads(line[2])["data"])
            assert shared(plain(read_offsets_value(key, record.value)), expected) == expected


@given(st.text(max_size=20), st.text(max_size=20), st.integers(0, 2**31 - 1), st.integers(0, 2**62))
def test_what_the_simulator_writes_reads_back(group: str, topic: str, partition: int, offset: int) -> None:
    record = offset_commit_record(group, topic, partition, offset, TIME)
    assert record.key is not None
    assert record.value is not None
    key = read_offsets_key(record.key)
    assert key == OffsetCommitKey(group, topic, partition)
    assert read_offsets_value(key, record.value) == OffsetCommit(
        offset=offset, leader_epoch=-1, metadata="", commit_timestamp=TIME, expire_timestamp=-1, topic_id=None
    )


@each_row(
    ("key", "value", "what"),
    [
        (OffsetCommitKey("g", "t", 0), b"\0\5", "offset commit of version 5"),
        (OffsetCommitKey("g", "t", 0), OFFSET_COMMITS[3][:-1], "cut short"),
        (OffsetCommitKey("g", "t", 0), OFFSET_COMMITS[3] + b"\0", "after the end"),
        (OffsetCommitKey("g", "t", 0), OFFSET_COMMITS[0][:10] + b"\xff\xff" + bytes(8), "null where a string"),
        (OffsetCommitKey("g", "t", 0), OFFSET_COMMITS[0][:10] + b"\xff\xf0" + bytes(8), "length -16"),
        (GroupKey("g"), b"\0\5", "group metadata of version 5"),
        (GroupKey("g"), GROUPS[0][1][:-4] + b"\x7f\xff\xff\xff", "array longer"),
        (ConsumerGroupKey(KeyType.CONSUMER_GROUP_METADATA, "g"), b"\0\1", "CONSUMER_GROUP_METADATA of version 1"),
    ],
)
def test_damaged_and_newer_values_are_refused(key: OffsetsKey, value: bytes, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        read_offsets_value(key, value)


@given(st.binary(max_size=80), st.integers(0, 4), st.integers(0, 60))
def test_garbage_is_refused_and_nothing_else(garbage: bytes, version: int, at: int) -> None:
    for data in (garbage, OFFSET_COMMITS[version][:at] + garbage, GROUPS[version][0][:at] + garbage, CONSUMER_GROUPS[1][:at] + garbage):
        with suppress(FormatError):
            read_offsets_key(data)
        for key in (OffsetCommitKey("g", "t", 0), GroupKey("g"), *map(key_of, (*range(3, 9), *range(10, 18), *range(19, 24)))):
            with suppress(FormatError):
                read_offsets_value(key, data)
