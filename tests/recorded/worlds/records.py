"""Every kind of batch on the disk of a broker at work, and of one that was killed, beside what a consumer got, byte for byte."""

from contextlib import ExitStack
from typing import Any, NamedTuple, cast

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.broker.clients import CODECS, create_topic, producer, send, transaction
from tests.broker.kafka import Kafka
from tests.limits import SECONDS
from tests.recorded.making import Making
from tests.recorded.worlds.count import COMPACTED, ISOLATIONS, SMALL_SEGMENTS, place_old_messages, write_compacted

SEGMENTS = {"internal.segment.bytes": "20000"}
CODEC_TOPICS = {f"records-{codec}": {**SEGMENTS, "compression.type": codec.replace("none", "uncompressed")} for codec in CODECS}
TOPICS = {
    **CODEC_TOPICS,
    "records-appended": {"message.timestamp.type": "LogAppendTime"},
    "records-txn": SMALL_SEGMENTS,
    "count-compacted": COMPACTED,
    "count-old": {"retention.ms": "-1"},
}


class Row(NamedTuple):
    """A record; bytes are hexadecimal, ``timestamp`` is in milliseconds."""

    topic: str
    offset: int
    key: str | None
    value: str | None
    timestamp: int
    timestamp_type: int
    headers: list[tuple[str, str | None]]


def make(making: Making) -> None:
    """The states are `at_work`, with all high watermarks on the disk, and `killed`; a transaction stays open until the end."""
    kafka = Kafka(making.directory / "kafka", version=making.version)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        still_open = write(kafka)
        for isolation in ISOLATIONS:
            making.answer(isolation, consumed(kafka, isolation), by=f"a consumer with isolation.level={isolation}")
        kafka.until(lambda: watermarks(kafka) == ends(kafka), "the high watermarks are written", lambda: (watermarks(kafka), ends(kafka)))
        making.disk(kafka, "at_work")
        kafka.kill()
        making.disk(kafka, "killed")
        del still_open


def watermarks(kafka: Kafka) -> dict[str, int]:
    """Of each topic's only partition, as the broker has written them down."""
    lines = [line.split() for each in kafka.log_dirs for line in (each / "replication-offset-checkpoint").read_text().splitlines()]
    return {words[0]: int(words[2]) for words in lines if len(words) == 3 and words[0] in TOPICS}


def ends(kafka: Kafka) -> dict[str, int]:
    """The same, as it says itself."""
    client = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "ends", "isolation.level": "read_uncommitted"})
    try:
        return {topic: client.get_watermark_offsets(TopicPartition(topic, 0), SECONDS)[1] for topic in TOPICS}
    finally:
        client.close()


def write(kafka: Kafka) -> Producer:
    """Every kind of batch. Returns the client of the transaction that stays open."""
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
    return first


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
        headers = [(name, shown(value)) for name, value in sent]
        dated = (timestamp, kind - 1) if kind else (-1, -1)
        rows.append(Row(topic, message.offset(), shown(message.key()), shown(message.value()), *dated, headers))
    consumer.close()
    return sorted(rows, key=lambda row: row[:2])


def shown(value: Any) -> str | None:
    return None if value is None else bytes(value).hex()
