"""Metadata records, against bytes that Kafka's own classes made."""

from uuid import UUID

from streaming.simulator.batch_writer import encode
from streaming.simulator.metadata_writer import (
    ConfigResource,
    ReplicaSet,
    config_record,
    feature_level_record,
    leader_change_batch,
    no_op_record,
    partition_change_record,
    partition_record,
    snapshot_footer_batch,
    snapshot_header_batch,
    topic_record,
)

TOPIC_ID = UUID(bytes=bytes(range(16)))
DIRECTORY = UUID(int=0x65)


def test_topic() -> None:
    assert topic_record("foo", TOPIC_ID) == bytes.fromhex("01 02 00 04666f6f 000102030405060708090a0b0c0d0e0f 00")


def test_partition() -> None:
    partition = ReplicaSet(
        partition=0,
        topic_id=TOPIC_ID,
        replicas=(1, 2),
        isr=(1,),
        leader=1,
        leader_epoch=5,
        partition_epoch=6,
        directories=(DIRECTORY, DIRECTORY),
    )
    assert partition_record(partition, version=1) == bytes.fromhex(
        "01 03 01 00000000 000102030405060708090a0b0c0d0e0f 03 00000001 00000002 02 00000001 01 01 00000001 00000005 00000006"
        "03 00000000000000000000000000000065 00000000000000000000000000000065 00"
    )


def test_partition_change() -> None:
    change = partition_change_record(0, TOPIC_ID, isr=(1, 2), leader=2, version=1)
    assert change == bytes.fromhex("01 05 01 00000000 000102030405060708090a0b0c0d0e0f 02 00 09 03 00000001 00000002 01 04 00000002")


def test_topic_config() -> None:
    record = config_record(ConfigResource.TOPIC, "foo", "retention.ms", "60000")
    assert record == bytes.fromhex("01 04 00 02 04666f6f 0d726574656e74696f6e2e6d73 063630303030 00")


def test_removed_cluster_default() -> None:
    record = config_record(ConfigResource.BROKER, "", "log.retention.ms", None)
    assert record == bytes.fromhex("01 04 00 04 01 116c6f672e726574656e74696f6e2e6d73 00 00")


def test_feature_level() -> None:
    record = feature_level_record("transaction.version", 2)
    assert record == bytes.fromhex("01 0c 00 147472616e73616374696f6e2e76657273696f6e 0002 00")


def test_no_op() -> None:
    assert no_op_record() == bytes.fromhex("01 14 00 00")


def test_leader_change_of_a_quorum_of_one() -> None:
    # As a 4.3 controller wrote it, its clock included.
    written = (
        "0000 0000 0000 0000 0000 004f 0000 0001 0256 c654 6800 2000 0000 0000 0001 a1f6 fe31 4c00 0001 a1f6 fe31 4cff ffff ffff"
        "ffff ffff ffff ffff ff00 0000 013a 0000 0008 0000 0002 2600 0000 0000 0102 0000 0001 0002 0000 0001 0000 00"
    )
    assert encode(leader_change_batch(1, 0x01A1F6FE314C), 0, 1) == bytes.fromhex(written)


def test_snapshots_are_framed_by_control_batches_of_kafkas_sizes() -> None:
    assert (len(encode(snapshot_header_batch(0), 0)), len(encode(snapshot_footer_batch(0), 0))) == (83, 75)
