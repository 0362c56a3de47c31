"""The tests' own broker, client and oracle agree with one another."""

import pytest

from tests.broker.clients import CODECS, create_topic, producer, send, transaction
from tests.broker.kafka import Kafka
from tests.broker.oracle import LogTotals, TopicPartition, end_offsets, log_sizes, log_totals
from tests.limits import SECONDS

BATCHES, RECORDS = 3, 50
TXN = "harness.txn"


@pytest.fixture(scope="module")
def produced(kafka: Kafka) -> dict[TopicPartition, LogTotals]:
    """What Kafka's dump says after every codec, an idempotent producer, a commit and an abort."""
    for codec in CODECS:
        create_topic(kafka.bootstrap, f"harness-{codec}")
        client = producer(kafka.bootstrap, codec, idempotent=codec == "lz4")
        client.list_topics(f"harness-{codec}", SECONDS)  # what it is given before it knows the leader may go in two batches
        send(client, f"harness-{codec}", 0, BATCHES, RECORDS)
    create_topic(kafka.bootstrap, TXN, partitions=2)
    client = producer(kafka.bootstrap, transactional_id="harness")
    client.init_transactions(SECONDS)
    with transaction(client):
        send(client, TXN, 0, 1, 3)
        send(client, TXN, 1, 1, 2)
    with transaction(client, commit=False):
        send(client, TXN, 0, 2, 4)
    return log_totals(kafka.log_dirs, [TXN, *(f"harness-{codec}" for codec in CODECS)])


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_a_flush_in_the_codec_asked_for(produced: dict[TopicPartition, LogTotals], codec: str) -> None:
    totals = produced[f"harness-{codec}", 0]
    assert (totals.data_batches, totals.data_records, totals.control_batches) == (BATCHES, BATCHES * RECORDS, 0)
    assert totals.codec_bytes == {codec: totals.bytes}


def test_transactions_end_with_a_marker_in_each_partition(produced: dict[TopicPartition, LogTotals]) -> None:
    first, second = produced[TXN, 0], produced[TXN, 1]
    assert (first.data_batches, first.data_records, first.control_batches, first.next_offset) == (3, 11, 2, 13)
    assert (second.data_batches, second.data_records, second.control_batches, second.next_offset) == (1, 2, 1, 3)


def test_the_brokers_end_offsets_and_sizes_are_those_of_its_files(kafka: Kafka, produced: dict[TopicPartition, LogTotals]) -> None:
    ends, sizes = end_offsets(kafka), log_sizes(kafka)
    for (topic, partition), totals in produced.items():
        assert ends[topic, partition] == totals.next_offset
        assert sizes[1, topic, partition] == totals.bytes
