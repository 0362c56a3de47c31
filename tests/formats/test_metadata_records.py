"""Single records of the metadata log."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.metadata_partitions import ClearElrRecord, PartitionChangeRecord, PartitionRecord
from streaming.kafka.formats.metadata_records import (
    Boundary,
    BrokerChangeRecord,
    BrokerFeature,
    ConfigRecord,
    Endpoint,
    FeatureLevelRecord,
    MetadataFrame,
    MetadataKind,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    read_metadata_frame,
    read_metadata_record,
)
from tests.formats.vectors import METADATA_RECORDS, OTHER_ID, TOPIC_ID
from tests.tables import each_row

UUID = bytes(range(16)).hex()
EPOCH = "0000000000000007"


@each_row(
    ("name", "record"),
    [
        ("topic", TopicRecord("foo", TOPIC_ID)),
        (
            "partition",
            PartitionRecord(
                topic_id=TOPIC_ID,
                partition=0,
                replicas=(1, 2),
                isr=(1,),
                removing_replicas=(),
                adding_replicas=(),
                leader=1,
                leader_epoch=5,
                partition_epoch=6,
                directories=("AAAAAAAAAAAAAAAAAAAAZQ", "AAAAAAAAAAAAAAAAAAAAZQ"),
            ),
        ),
        (
            "partition with everything",
            PartitionRecord(
                topic_id=TOPIC_ID,
                partition=1,
                replicas=(1, 2, 3),
                isr=(1,),
                removing_replicas=(3,),
                adding_replicas=(2,),
                leader=1,
                leader_epoch=4,
                partition_epoch=9,
                directories=(TOPIC_ID, OTHER_ID, "AAAAAAAAAAAAAAAAAAAAAQ"),
                recovering=True,
                eligible_leader_replicas=(2,),
                last_known_elr=(3,),
            ),
        ),
        ("partition change", PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, isr=(1, 2), leader=2)),
        (
            "partition change with everything",
            PartitionChangeRecord(
                topic_id=TOPIC_ID,
                partition=1,
                isr=(1, 2),
                leader=2,
                replicas=(1, 2),
                removing_replicas=(),
                adding_replicas=(),
                recovering=False,
                eligible_leader_replicas=(),
                last_known_elr=(),
                directories=(TOPIC_ID, OTHER_ID),
            ),
        ),
        ("clear elr", ClearElrRecord("foo")),
        ("clear all elr", ClearElrRecord("")),
        ("feature", FeatureLevelRecord("transaction.version", 2)),
        ("topic config", ConfigRecord(2, "foo", "retention.ms", "60000", hidden=False)),
        ("cluster config", ConfigRecord(4, "", "log.retention.ms", None, hidden=False)),
        ("broker config", ConfigRecord(4, "1", "log.retention.ms", "5", hidden=False)),
        (
            "broker",
            RegisterBrokerRecord(
                broker_id=1,
                incarnation_id=TOPIC_ID,
                broker_epoch=17,
                endpoints=(Endpoint("SSL", "b1.example", 65000, 1),),
                features=(BrokerFeature("metadata.version", 7, 30),),
                rack="r1",
                fenced=True,
                in_controlled_shutdown=True,
                log_dirs=(TOPIC_ID, OTHER_ID),
                cordoned_log_dirs=(OTHER_ID,),
            ),
        ),
        (
            "broker change",
            BrokerChangeRecord(
                broker_id=1, broker_epoch=17, fenced=False, in_controlled_shutdown=True, log_dirs=(TOPIC_ID,), cordoned_log_dirs=()
            ),
        ),
        ("producer ids", ProducerIdsRecord(1, 17, 5000)),
    ],
)
def test_what_kafka_writes_is_understood(name: str, record: object) -> None:
    assert read_metadata_record(METADATA_RECORDS[name]) == record


@each_row(
    ("data", "record"),
    [
        (f"010900{UUID}00", RemoveTopicRecord(TOPIC_ID)),
        (f"01010000000003{EPOCH}00", UnregisterBrokerRecord(3, 7)),
        (f"01070000000003{EPOCH}00", BrokerChangeRecord(broker_id=3, broker_epoch=7, fenced=True)),
        (f"01080000000003{EPOCH}00", BrokerChangeRecord(broker_id=3, broker_epoch=7, fenced=False)),
        (f"01110000000003{EPOCH}01000101", BrokerChangeRecord(broker_id=3, broker_epoch=7, fenced=True)),
        (f"01110000000003{EPOCH}010001ff", BrokerChangeRecord(broker_id=3, broker_epoch=7, fenced=False)),
        (f"01110000000003{EPOCH}01000100", BrokerChangeRecord(broker_id=3, broker_epoch=7, fenced=None)),
        (f"01110200000003{EPOCH}01021102{UUID}", BrokerChangeRecord(broker_id=3, broker_epoch=7, log_dirs=(TOPIC_ID,))),
        (
            f"01050000000000{UUID}010104fffffffe",
            PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, leader=None),
        ),
        (f"01050000000000{UUID}010104ffffffff", PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, leader=-1)),
        (
            f"01050000000000{UUID}01020502" + "00000007",
            PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, replicas=(7,)),
        ),
        ("01170001000403616263", Boundary.BEGIN),
        ("01180000", Boundary.END),
        ("01190000", Boundary.ABORT),
    ],
)
def test_the_other_kinds_that_are_needed(data: str, record: object) -> None:
    assert read_metadata_record(bytes.fromhex(data)) == record


def test_an_unknown_tag_is_skipped() -> None:
    assert read_metadata_record(bytes.fromhex(f"01020004666f6f{UUID}01630548656c6c6f")) == TopicRecord("foo", TOPIC_ID)


@pytest.mark.parametrize("name", ["controller", "no-op"])
def test_kinds_that_are_not_needed_are_skipped(name: str) -> None:
    assert read_metadata_record(METADATA_RECORDS[name]) is None


def test_the_value_of_a_configuration_that_may_be_secret_is_never_kept() -> None:
    record = read_metadata_record(METADATA_RECORDS["secret config"])
    assert record == ConfigRecord(4, "1", "listener.name.x.ssl.key.password", "", hidden=True)
    assert b"hunter2" in METADATA_RECORDS["secret config"]


def test_kind_and_version_of_any_record() -> None:
    assert read_metadata_frame(METADATA_RECORDS["partition with everything"]) == MetadataFrame(MetadataKind.PARTITION, 2)
    assert read_metadata_frame(bytes([1, 11, 0]) + b"never opened") == MetadataFrame(MetadataKind.USER_SCRAM_CREDENTIAL, 0)
    assert read_metadata_frame(bytes([1, 99, 3])) == MetadataFrame(99, 3)
    with pytest.raises(FormatError, match="frame version 0"):
        read_metadata_frame(bytes(3))


@pytest.mark.parametrize("key", [10, 11, 26])
def test_credentials_are_skipped_without_being_opened(key: int) -> None:
    assert read_metadata_record(bytes([1, key, 0]) + b"\xff not a message at all") is None


@each_row(
    ("data", "what"),
    [
        ("", "varint"),
        ("00020004666f6f" + UUID + "00", "frame version 0"),
        ("01020104666f6f" + UUID + "00", "version 1 of metadata record 2"),
        ("01020004666f6f" + UUID, "varint"),
        ("01020004666f6f" + UUID + "0000", "after the end"),
        ("01020004666f6f" + UUID[2:] + "00", "varint"),
        ("01020009666f6f", "cut short"),
        ("010200" + "00" + UUID + "00", "null"),
        ("01020002ff" + UUID + "00", "UTF-8"),
        ("01030000000000" + UUID + "ff7f", "array longer"),
    ],
)
def test_damaged_and_newer_records_are_refused(data: str, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        read_metadata_record(bytes.fromhex(data))


@given(st.binary(max_size=80), st.sampled_from(MetadataKind), st.integers(0, 4))
def test_garbage_is_refused_and_nothing_else(garbage: bytes, key: int, version: int) -> None:
    for data in (garbage, bytes([1, key, version]) + garbage):
        with suppress(FormatError):
            read_metadata_record(data)


@given(st.sampled_from(sorted(METADATA_RECORDS)), st.data())
def test_no_single_wrong_byte_is_more_than_refused(name: str, data: st.DataObject) -> None:
    damaged = bytearray(METADATA_RECORDS[name])
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(FormatError):
        read_metadata_record(bytes(damaged))
