"""What Kafka's own layouts describe is read into the fields of the same names, in every version."""

import functools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.consumer_offsets import read_offsets_key, read_offsets_value
from streaming.kafka.formats.control import ControlType, read_control
from streaming.kafka.formats.coordinator_states import (
    ShareKey,
    ShareKeyType,
    TransactionState,
    read_share_key,
    read_share_value,
    read_transaction_key,
    read_transaction_value,
)
from streaming.kafka.formats.metadata_records import MetadataKind, read_metadata_record
from streaming.kafka.formats.properties import READABLE_KEYS
from streaming.kafka.formats.records import Record
from streaming.kafka.formats.stored_groups import KeyType
from streaming.kafka.formats.wire import Int16, Reader, SchemaMessage, structure, tagged, versions
from streaming.terminal.dump.row_table import plain
from tests.dump import reported
from tests.formats.kafkas_layouts import Layout, contents, encoded, layouts
from tests.tables import each_row

Parser = Callable[[int, bytes], object]
"""Reads the body of a message of a version."""

LAYOUTS = layouts()

OURS = reported.OURS | {
    "kraft_version_feature": "kraft_version",
    "leader_recovery_state": "recovering",
    "num_partitions": "partitions",
    "partition_metadata": "partition_racks",
    "voter_directory_id": "directory_id",
}
OURS_IN = {name: {"id": "broker_id", "epoch": "broker_epoch"} for name in ("FenceBrokerRecord", "UnfenceBrokerRecord")}
SPECIAL: dict[str, dict[str, st.SearchStrategy[object]]] = {
    "TransactionLogValue": {"transaction_status": st.sampled_from([state.value for state in TransactionState])},
    "ConfigRecord": {"name": st.sampled_from(sorted(READABLE_KEYS))},
}
CONVERTED: dict[tuple[str, str], Callable[[Any], object]] = {
    ("TransactionLogValue", "state"): lambda state: TransactionState(state).kafka_name,
    ("PartitionRecord", "recovering"): lambda state: state > 0,
    ("PartitionChangeRecord", "recovering"): lambda state: None if state == -1 else state > 0,
    ("PartitionChangeRecord", "leader"): lambda leader: None if leader == -2 else leader,
    ("BrokerRegistrationChangeRecord", "fenced"): lambda change: None if change == 0 else change > 0,
    ("BrokerRegistrationChangeRecord", "in_controlled_shutdown"): lambda change: change > 0,
}
NULL_IS_EMPTY = {"PartitionRecord", "RegisterBrokerRecord", "TransactionLogValue"}


def metadata(kind: MetadataKind) -> Parser:
    return lambda version, body: read_metadata_record(bytes([1, kind, version]) + body)


def control(kind: ControlType) -> Parser:
    return lambda _version, body: read_control(Record(0, 0, -1, struct.pack(">hh", 0, kind), body, ()))


def offsets_key(kind: KeyType) -> Parser:
    return lambda _version, body: read_offsets_key(struct.pack(">h", kind) + body)


def offsets_value(key: str) -> Parser:
    return lambda version, body: read_offsets_value(read_offsets_key(bytes.fromhex(key)), struct.pack(">h", version) + body)


def share_key(kind: ShareKeyType) -> Parser:
    return lambda _version, body: read_share_key(struct.pack(">h", kind) + body)


def share_value(kind: ShareKeyType) -> Parser:
    return lambda version, body: read_share_value(ShareKey(kind, "g", "", 0), struct.pack(">h", version) + body)


PARSERS: dict[str, Parser] = {
    "RegisterBrokerRecord": metadata(MetadataKind.REGISTER_BROKER),
    "UnregisterBrokerRecord": metadata(MetadataKind.UNREGISTER_BROKER),
    "TopicRecord": metadata(MetadataKind.TOPIC),
    "PartitionRecord": metadata(MetadataKind.PARTITION),
    "ConfigRecord": metadata(MetadataKind.CONFIG),
    "PartitionChangeRecord": metadata(MetadataKind.PARTITION_CHANGE),
    "FenceBrokerRecord": metadata(MetadataKind.FENCE_BROKER),
    "UnfenceBrokerRecord": metadata(MetadataKind.UNFENCE_BROKER),
    "RemoveTopicRecord": metadata(MetadataKind.REMOVE_TOPIC),
    "FeatureLevelRecord": metadata(MetadataKind.FEATURE_LEVEL),
    "ProducerIdsRecord": metadata(MetadataKind.PRODUCER_IDS),
    "BrokerRegistrationChangeRecord": metadata(MetadataKind.BROKER_REGISTRATION_CHANGE),
    "ClearElrRecord": metadata(MetadataKind.CLEAR_ELR),
    "LeaderChangeMessage": control(ControlType.LEADER_CHANGE),
    "SnapshotHeaderRecord": control(ControlType.SNAPSHOT_HEADER),
    "SnapshotFooterRecord": control(ControlType.SNAPSHOT_FOOTER),
    "KRaftVersionRecord": control(ControlType.KRAFT_VERSION),
    "VotersRecord": control(ControlType.KRAFT_VOTERS),
    "TransactionLogValue": lambda version, body: read_transaction_value(struct.pack(">h", version) + body),
    "OffsetCommitKey": offsets_key(KeyType.OFFSET_COMMIT),
    "OffsetCommitValue": offsets_value("00010001670003666f6f00000007"),
    "GroupMetadataKey": offsets_key(KeyType.GROUP_METADATA),
    "GroupMetadataValue": offsets_value("0002000167"),
    "ConsumerGroupMetadataKey": offsets_key(KeyType.CONSUMER_GROUP_METADATA),
    "ConsumerGroupMetadataValue": offsets_value("0003000167"),
    "ConsumerGroupPartitionMetadataKey": offsets_key(KeyType.CONSUMER_GROUP_PARTITION_METADATA),
    "ConsumerGroupPartitionMetadataValue": offsets_value("0004000167"),
    "ConsumerGroupMemberMetadataKey": offsets_key(KeyType.CONSUMER_GROUP_MEMBER_METADATA),
    "ConsumerGroupMemberMetadataValue": offsets_value("000500016700016d"),
    "ConsumerGroupTargetAssignmentMetadataKey": offsets_key(KeyType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA),
    "ConsumerGroupTargetAssignmentMetadataValue": offsets_value("0006000167"),
    "ConsumerGroupTargetAssignmentMemberKey": offsets_key(KeyType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER),
    "ConsumerGroupTargetAssignmentMemberValue": offsets_value("000700016700016d"),
    "ConsumerGroupCurrentMemberAssignmentKey": offsets_key(KeyType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT),
    "ConsumerGroupCurrentMemberAssignmentValue": offsets_value("000800016700016d"),
    "ConsumerGroupRegularExpressionKey": offsets_key(KeyType.CONSUMER_GROUP_REGULAR_EXPRESSION),
    "ConsumerGroupRegularExpressionValue": offsets_value("001000016700022e2a"),
    "ShareGroupMemberMetadataKey": offsets_key(KeyType.SHARE_GROUP_MEMBER_METADATA),
    "ShareGroupMemberMetadataValue": offsets_value("000a00016700016d"),
    "ShareGroupMetadataKey": offsets_key(KeyType.SHARE_GROUP_METADATA),
    "ShareGroupMetadataValue": offsets_value("000b000167"),
    "ShareGroupTargetAssignmentMetadataKey": offsets_key(KeyType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA),
    "ShareGroupTargetAssignmentMetadataValue": offsets_value("000c000167"),
    "ShareGroupTargetAssignmentMemberKey": offsets_key(KeyType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER),
    "ShareGroupTargetAssignmentMemberValue": offsets_value("000d00016700016d"),
    "ShareGroupCurrentMemberAssignmentKey": offsets_key(KeyType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT),
    "ShareGroupCurrentMemberAssignmentValue": offsets_value("000e00016700016d"),
    "ShareGroupStatePartitionMetadataKey": offsets_key(KeyType.SHARE_GROUP_STATE_PARTITION_METADATA),
    "ShareGroupStatePartitionMetadataValue": offsets_value("000f000167"),
    "StreamsGroupMetadataKey": offsets_key(KeyType.STREAMS_GROUP_METADATA),
    "StreamsGroupMetadataValue": offsets_value("0011000167"),
    "StreamsGroupMemberMetadataKey": offsets_key(KeyType.STREAMS_GROUP_MEMBER_METADATA),
    "StreamsGroupMemberMetadataValue": offsets_value("001300016700016d"),
    "StreamsGroupTargetAssignmentMetadataKey": offsets_key(KeyType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA),
    "StreamsGroupTargetAssignmentMetadataValue": offsets_value("0014000167"),
    "StreamsGroupTargetAssignmentMemberKey": offsets_key(KeyType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER),
    "StreamsGroupTargetAssignmentMemberValue": offsets_value("001500016700016d"),
    "StreamsGroupCurrentMemberAssignmentKey": offsets_key(KeyType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT),
    "StreamsGroupCurrentMemberAssignmentValue": offsets_value("001600016700016d"),
    "StreamsGroupTopologyKey": offsets_key(KeyType.STREAMS_GROUP_TOPOLOGY),
    "StreamsGroupTopologyValue": offsets_value("0017000167"),
    "ShareSnapshotKey": share_key(ShareKeyType.SHARE_SNAPSHOT),
    "ShareSnapshotValue": share_value(ShareKeyType.SHARE_SNAPSHOT),
    "ShareUpdateKey": share_key(ShareKeyType.SHARE_UPDATE),
    "ShareUpdateValue": share_value(ShareKeyType.SHARE_UPDATE),
}


def as_ours(message: str, content: object) -> object:
    """The content of a message as `plain` shows what we read of it."""
    if isinstance(content, list):
        return [as_ours(message, item) for item in content]
    if not isinstance(content, dict):
        return content
    named = {(OURS | OURS_IN.get(message, {})).get(name, name): as_ours(message, value) for name, value in content.items()}
    for name, value in named.items():
        if (message, name) in CONVERTED:
            named[name] = CONVERTED[message, name](value)
        elif value is None and message in NULL_IS_EMPTY and name != "rack":
            named[name] = []
    return named


def reported_of(found: object, reported: object) -> object:
    """Of what was read the fields that the message contains: a version may lack others."""
    if isinstance(reported, dict):
        assert isinstance(found, dict)
        return {name: reported_of(found[name], value) for name, value in reported.items()}
    if isinstance(reported, list):
        assert isinstance(found, list)
        return [reported_of(*pair) for pair in zip(found, reported, strict=True)]
    return found


@functools.cache  # a strategy that each example makes anew takes longer than all else
def content_of(layout: Layout) -> st.SearchStrategy[object]:
    special = SPECIAL.get(layout.message, {})
    if layout.structure.fields[0][0] == "version":  # of a control record: the version of the message itself
        special = {"version": st.just(layout.version)}
    return contents(layout.structure, special)


def test_all_layouts_are_read() -> None:
    assert {layout.message for layout in LAYOUTS} == set(PARSERS) | {"TransactionLogKey"}


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout.message in PARSERS], ids=str)
@given(data=st.data())
def test_every_field_is_read_as_kafka_lays_it_out(layout: Layout, data: st.DataObject) -> None:
    content = data.draw(content_of(layout))
    body = encoded(layout.structure, content, layout.flexible)
    expected = as_ours(layout.message, content)
    assert isinstance(expected, dict)
    if layout.structure.fields[0][0] == "version":
        del expected["version"]
    parse = PARSERS[layout.message]
    found = plain(parse(layout.version, body))
    assert reported_of(found, expected) == expected
    with pytest.raises(FormatError):
        parse(layout.version, body[: data.draw(st.integers(0, len(body) - 1))])


def test_the_key_of_a_transaction() -> None:
    (layout,) = (layout for layout in LAYOUTS if layout.message == "TransactionLogKey")
    assert read_transaction_key(b"\0\0" + encoded(layout.structure, {"transactional_id": "tx1"}, layout.flexible)) == "tx1"


@each_row("message", sorted({layout.message for layout in LAYOUTS if layout.message.endswith(("Record", "Value"))}))
def test_the_newest_version_is_the_last_that_is_read(message: str) -> None:
    newest = max((layout for layout in LAYOUTS if layout.message == message), key=lambda layout: layout.version)
    if newest.structure.fields[0][0] == "version":  # such a record is kept as it stands
        return
    with pytest.raises(FormatError, match="is not known"):
        PARSERS[message](newest.version + 1, b"")


@dataclass(frozen=True)
class Inner:
    number: Int16
    later: Int16 = versions("1+", -1)


@dataclass(frozen=True)
class Outer:
    inner: tuple[Inner, ...]
    only: Int16 = versions("1", -1)
    maybe: Inner | None = tagged(0, "0+", None)
    newer: tuple[Int16, ...] | None = tagged(1, "2+", None)


@each_row(
    ("version", "data", "expected"),
    [
        (0, "02 0005 00 00", Outer((Inner(5),))),
        (0, "00 00", Outer(())),
        (1, "02 0005 0006 00 0007 00", Outer((Inner(5, 6),), 7)),
        (2, "01 02 00 06 01 0005 0006 00 01 03 02 0007", Outer((), maybe=Inner(5, 6), newer=(7,))),
        (2, "01 02 00 01 00 01 01 00", Outer(())),
        (1, "01 0007 01 01 03 02 0007", Outer((), 7)),  # a tag that this version does not have
        (0, "01 02 00 04 01 0005 00 00 04 01 0006 00", Outer((), maybe=Inner(6))),  # the last one counts
    ],
)
def test_a_declared_layout(version: int, data: str, expected: Outer) -> None:
    layout = SchemaMessage(Outer, "0-2").layout(version)
    assert layout is not None
    reader = Reader(bytes.fromhex(data))
    assert layout(reader) == expected
    reader.end()


def test_versions_are_written_as_kafka_writes_them() -> None:
    assert [version for version in range(-1, 6) if SchemaMessage(Inner, "1-3").layout(version)] == [1, 2, 3]
    assert [version for version in range(-1, 6) if SchemaMessage(Inner, "2").layout(version)] == [2]
    assert SchemaMessage(Inner, "0-1", flexible="none").read(bytes.fromhex("0001 0005 0006"), "it") == Inner(5, 6)
    assert SchemaMessage(Inner, "0-1", flexible="1+").read(bytes.fromhex("0001 0005 0006 00"), "it") == Inner(5, 6)
    with pytest.raises(FormatError, match="it of version 2 is not known"):
        SchemaMessage(Inner, "0-1").read(bytes.fromhex("0002 0005 0006 00"), "it")


def test_a_field_that_is_given_is_not_read() -> None:
    assert structure(Inner, 1, number=9)(Reader(bytes.fromhex("0005 00"))) == Inner(9, 5)
