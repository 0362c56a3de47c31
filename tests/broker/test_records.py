"""``relation=records`` of a broker's disk equals what a consumer gets, byte for byte: while the broker runs, and after it was killed."""

from typing import NamedTuple, cast

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.broker.clients import CODECS, create_topic, producer, send, transaction
from tests.broker.kafka import Kafka
from tests.limits import SECONDS
from tests.recorded.worlds.count import COMPACTED, SMALL_SEGMENTS, place_old_messages, write_compacted
from tests.source.record_reading import record_rows

SEGMENTS = {"internal.segment.bytes": "20000"}
CODEC_TOPICS = {f"records-{codec}": {**SEGMENTS, "compression.type": codec.replace("none", "uncompressed")} for codec in CODECS}
TOPICS = {
    **CODEC_TOPICS,
    "records-appended": {"message.timestamp.type": "LogAppendTime"},
    "records-txn": SMALL_SEGMENTS,
    "count-compacted": COMPACTED,
    "count-old": {"retention.ms": "-1"},
}
ISOLATIONS = ("read_committed", "read_uncommitted")


class Row(NamedTuple):
    """A record, as both have it; ``timestamp`` in milliseconds."""

    topic: str
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    timestamp_type: int
    headers: tuple[tuple[str, bytes | None], ...]


@pytest.fixture(scope="module")
def written(kafka: Kafka) -> Kafka:
    """Every kind of batch; a transaction stays open until the end."""
    for topic, config in TOPICS.items():
        create_topic(kafka.bootstrap, topic, config=config)
    write_compacted(kafka)
    kafka.stop()
    place_old_messages(kafka)
    kafka.start()
    client = producer(kafka.bootstrap)
    for topic in (*CODEC_TOPICS, "records-appended"):
        send(client, topic, 0, 3, 40)
        write_special(client, topic)
    first, second = (producer(kafka.bootstrap, "lz4", transactional_id=f"records-{number}") for number in range(2))
    for each in (first, second):
        each.init_transactions(SECONDS)
    for number in range(6):
        with transaction(first, commit=number % 2 == 0):
            send(first, "records-txn", 0, 2, 10)
            with transaction(second, commit=number % 3 == 0):
                send(second, "records-txn", 0, 1, 30)
            send(client, "records-txn", 0, 1, 3)
    first.begin_transaction()
    send(first, "records-txn", 0, 1, 5)
    send(client, "records-txn", 0, 1, 7)
    return kafka


def write_special(client: Producer, topic: str) -> None:
    """Null keys and values, empty ones, headers with and without values, one large record."""
    headers = [("trace", b"\x00\xff"), ("empty", b""), ("none", None), ("trace", "é".encode())]
    for key, value in ((None, None), (b"", b""), (b"k", None), (None, b"v"), (b"large", bytes(range(256)) * 60)):
        client.produce(topic, value, key, partition=0, headers=headers if key else [], timestamp=1_600_000_000_123)
    assert client.flush(SECONDS) == 0


def consumed(kafka: Kafka, isolation: str) -> list[Row]:
    """All that a consumer gets, up to the end that its isolation allows."""
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": isolation, "isolation.level": isolation, "enable.partition.eof": True}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0) for topic in TOPICS])
    rows, ended = list[Row](), set[str]()
    while len(ended) < len(TOPICS):
        message = consumer.poll(SECONDS)
        assert message is not None, f"only {sorted(ended)} ended"
        topic = message.topic()
        assert topic is not None
        if message.error():
            ended.add(topic)
            continue
        kind, timestamp = message.timestamp()
        sent = cast("list[tuple[str, bytes | None]]", message.headers() or [])
        headers = tuple((name, None if value is None else bytes(value)) for name, value in sent)
        dated = (timestamp, kind - 1) if kind else (-1, -1)
        rows.append(Row(topic, message.offset(), message.key(), message.value(), *dated, headers))
    consumer.close()
    return sorted(rows, key=lambda row: row[:2])


def read(kafka: Kafka, isolation: str) -> list[Row]:
    """All that is read of the disk."""
    rows = record_rows(*kafka.log_dirs, topics=",".join(TOPICS), isolation=isolation)
    found = []
    for row in rows:
        timestamp = round(row["timestamp"].timestamp() * 1000)
        headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
        found.append(Row(row["topic"], row["offset"], row["key"], row["value"], timestamp, row["timestampType"], headers))
    return sorted(found, key=lambda row: row[:2])


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_what_a_consumer_gets(written: Kafka, isolation: str) -> None:
    """The watermarks on the disk are up to five seconds old; then all of it is there."""
    expected = consumed(written, isolation)
    written.until(lambda: len(read(written, isolation)) == len(expected), "the watermarks are written")
    assert read(written, isolation) == expected
    assert {row.timestamp_type for row in expected} == {-1, 0, 1}


def test_of_a_broker_that_was_killed_the_same(written: Kafka) -> None:
    expected = {isolation: consumed(written, isolation) for isolation in ISOLATIONS}
    written.kill()
    assert {isolation: read(written, isolation) for isolation in ISOLATIONS} == expected
    written.start()
