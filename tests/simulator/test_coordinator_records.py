"""Records of the coordinators, against bytes that Kafka's own classes made."""

from dataclasses import replace
from uuid import UUID

import pytest

from streaming.simulator.coordinators import (
    IdState,
    StoredTransaction,
    offset_commit_record,
    partition_for,
    transaction_record,
)

T = 1_700_000_000_000
ONGOING = StoredTransaction(
    transactional_id="tx1",
    producer_id=4000,
    epoch=3,
    timeout_ms=60_000,
    state=IdState.ONGOING,
    partitions=(("foo", 0),),
    updated=T,
    started=T,
)


def test_key_is_the_transactional_id() -> None:
    assert transaction_record(ONGOING).key == bytes.fromhex("0000 0003 747831")


def test_ongoing_before_transaction_version_1() -> None:
    assert transaction_record(ONGOING, version=0).value == bytes.fromhex(
        "0000 0000000000000fa0 0003 0000ea60 01 00000001 0003666f6f 00000001 00000000 0000018bcfe56800 0000018bcfe56800"
    )


def test_empty_before_transaction_version_1() -> None:
    empty = replace(ONGOING, state=IdState.EMPTY, epoch=0, partitions=(), started=-1)
    assert transaction_record(empty, version=0).value == bytes.fromhex(
        "0000 0000000000000fa0 0000 0000ea60 00 ffffffff 0000018bcfe56800 ffffffffffffffff"
    )


def test_ongoing_in_the_flexible_version() -> None:
    assert transaction_record(replace(ONGOING, previous_producer_id=4000)).value == bytes.fromhex(
        "0001 0000000000000fa0 0003 0000ea60 01 02 04666f6f 02 00000000 00 0000018bcfe56800 0000018bcfe56800"
        "02 00 08 0000000000000fa0 02 02 0002"
    )


def test_a_client_of_before_version_2_leaves_its_version_out() -> None:
    of_old, of_new = (transaction_record(replace(ONGOING, client_version=version)).value or b"" for version in (0, 2))
    assert of_new.removesuffix(bytes.fromhex("01 02 02 0002")) == of_old.removesuffix(b"\0")


def test_partitions_of_a_topic_stand_together() -> None:
    several = replace(ONGOING, partitions=(("foo", 0), ("bar", 1), ("foo", 2)))
    value = transaction_record(several).value or b""
    assert bytes.fromhex("03 04666f6f 03 00000000 00000002 00 04626172 02 00000001 00") in value


def test_committed_offset_before_kafka_4_1() -> None:
    record = offset_commit_record("g", "foo", 0, 42, T, version=3)
    assert record.key == bytes.fromhex("0001 000167 0003666f6f 00000000")
    assert record.value == bytes.fromhex("0003 000000000000002a ffffffff 0000 0000018bcfe56800")


def test_committed_offset_with_its_topic_s_id_and_without() -> None:
    topic_id = UUID("000102030405060708090a0b0c0d0e0f")
    record = offset_commit_record("g", "foo", 0, 42, T, topic_id=topic_id, leader_epoch=5)
    assert record.key == bytes.fromhex("0001 000167 0003666f6f 00000000")
    assert record.value == bytes.fromhex("0004 000000000000002a 00000005 01 0000018bcfe56800 01 00 10 000102030405060708090a0b0c0d0e0f")
    assert offset_commit_record("g", "foo", 0, 42, T).value == bytes.fromhex("0004 000000000000002a ffffffff 01 0000018bcfe56800 00")


@pytest.mark.parametrize(("identity", "partitions", "expected"), [("tx1", 50, 45), ("", 50, 0), ("polygenelubricants", 50, 0)])
def test_partition_of_an_identity(identity: str, partitions: int, expected: int) -> None:
    # "polygenelubricants" hashes to -2^31, which has no absolute value.
    assert partition_for(identity, partitions) == expected
