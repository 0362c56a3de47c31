"""Single records of the metadata log."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.metadata_records import (
    Boundary,
    BrokerChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    read_metadata_record,
)
from tests.kafka.vectors import METADATA_RECORDS, TOPIC_ID

UUID = bytes(range(16)).hex()
EPOCH = "0000000000000007"


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("topic", TopicRecord("foo", TOPIC_ID)),
        ("partition", PartitionRecord(topic_id=TOPIC_ID, partition=0, replicas=(1, 2), isr=(1,), leader=1, leader_epoch=5)),
        ("partition change", PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, replicas=None, isr=(1, 2), leader=2)),
        ("feature", FeatureLevelRecord("transaction.version", 2)),
    ],
)
def test_what_kafka_writes_is_understood(name: str, record: object) -> None:
    assert read_metadata_record(METADATA_RECORDS[name]) == record


@pytest.mark.parametrize(
    ("data", "record"),
    [
        (f"010900{UUID}00", RemoveTopicRecord(TOPIC_ID)),
        (f"01010000000003{EPOCH}00", UnregisterBrokerRecord(3)),
        (f"01070000000003{EPOCH}00", BrokerChangeRecord(broker_id=3, fenced=True, log_dirs=None)),
        (f"01080000000003{EPOCH}00", BrokerChangeRecord(broker_id=3, fenced=False, log_dirs=None)),
        (f"01110000000003{EPOCH}01000101", BrokerChangeRecord(broker_id=3, fenced=True, log_dirs=None)),
        (f"01110000000003{EPOCH}010001ff", BrokerChangeRecord(broker_id=3, fenced=False, log_dirs=None)),
        (f"01110000000003{EPOCH}01000100", BrokerChangeRecord(broker_id=3, fenced=None, log_dirs=None)),
        (f"01110200000003{EPOCH}01021102{UUID}", BrokerChangeRecord(broker_id=3, fenced=None, log_dirs=(TOPIC_ID,))),
        (
            f"01050000000000{UUID}010104fffffffe",
            PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, replicas=None, isr=None, leader=None),
        ),
        (f"01050000000000{UUID}010104ffffffff", PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, replicas=None, isr=None, leader=-1)),
        (
            f"01050000000000{UUID}01020502" + "00000007",
            PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, replicas=(7,), isr=None, leader=None),
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


@pytest.mark.parametrize("name", ["topic config", "cluster config", "no-op"])
def test_kinds_that_are_not_needed_are_skipped(name: str) -> None:
    assert read_metadata_record(METADATA_RECORDS[name]) is None


@pytest.mark.parametrize("key", [10, 11, 26])
def test_credentials_are_skipped_without_being_opened(key: int) -> None:
    assert read_metadata_record(bytes([1, key, 0]) + b"\xff not a message at all") is None


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("", "varint"),
        ("00020004666f6f" + UUID + "00", "frame version 0"),
        ("01020104666f6f" + UUID + "00", "version 1 of metadata record 2"),
        ("01020004666f6f" + UUID, "varint"),
        ("01020004666f6f" + UUID + "0000", "behind the end"),
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


@given(st.binary(max_size=80), st.sampled_from([0, 1, 2, 3, 5, 7, 8, 9, 12, 17, 23, 24, 25]), st.integers(0, 4))
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
