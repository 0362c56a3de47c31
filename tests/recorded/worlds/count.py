"""Topics with all that makes records hard to count, and what Kafka's own consumer got of them; the broker was stopped after that."""

from collections.abc import Mapping
from contextlib import ExitStack

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from streaming.simulator.batch_writer import Codec, Record
from tests.broker.clients import CODECS, create_topic, producer, send, transaction
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import run_tool
from tests.legacy_messages import Messages
from tests.limits import SECONDS
from tests.recorded.making import Making

SMALL_SEGMENTS = {"internal.segment.bytes": "4000"}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "internal.segment.bytes": "4000",
    "delete.retention.ms": "0",
}
TOPICS: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "count-transactions": (2, SMALL_SEGMENTS),
    "count-codecs": (1, SMALL_SEGMENTS),
    "count-compacted": (1, COMPACTED),
    "count-deleted": (1, SMALL_SEGMENTS),
    "count-old": (1, {"retention.ms": "-1"}),
}
"""How many partitions each topic has, and its configuration."""

ISOLATIONS = ("read_committed", "read_uncommitted")


def make(making: Making) -> None:
    """What is consumed is a row a topic and partition: all offsets that came."""
    kafka = Kafka(making.directory / "kafka", settings={"log.cleaner.backoff.ms": 500}, version=making.version)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        for topic, (partitions, config) in TOPICS.items():
            create_topic(kafka.bootstrap, topic, partitions, config=config)
        write_compacted(kafka)
        kafka.stop()
        place_old_messages(kafka)
        kafka.start()
        write_codecs(kafka.bootstrap)
        write_deleted(kafka.bootstrap)
        forgotten = write_transactions(kafka.bootstrap)
        for isolation in ISOLATIONS:
            making.answer(isolation, consume(kafka, isolation), by=f"kafka-console-consumer --isolation-level {isolation}")
        kafka.stop()
        making.disk(kafka)
        assert forgotten, "a producer that is forgotten earlier aborts its transaction"


def write_transactions(bootstrap: str) -> Producer:
    """Commits and aborts of two producers, some over several segments, beside data without a transaction; the last one stays open."""
    plain = producer(bootstrap)
    clients = [producer(bootstrap, transactional_id=f"count-{number}") for number in range(2)]
    for client in clients:
        client.init_transactions(SECONDS)
    for number in range(8):
        with transaction(clients[0], commit=number % 3 != 0):
            send(clients[0], "count-transactions", 0, 1, 3)
            with transaction(clients[1], commit=number % 2 == 0):
                send(clients[1], "count-transactions", number % 2, 2 + 4 * (number == 5), 5)
                send(plain, "count-transactions", number % 2, 1, 2)
            send(clients[0], "count-transactions", 1, 1, 4)
    clients[0].begin_transaction()
    send(clients[0], "count-transactions", 1, 1, 3)
    send(plain, "count-transactions", 1, 1, 7)
    return clients[0]


def write_codecs(bootstrap: str) -> None:
    """Each of them in one log."""
    for codec in CODECS:
        send(producer(bootstrap, codec), "count-codecs", 0, 3, 11)


def write_compacted(kafka: Kafka) -> None:
    """Few keys, so that most records go; transactions among them, some of them aborted; the cleaner has noted how far it came."""
    client = producer(kafka.bootstrap, "lz4", transactional_id="count-compacted")
    client.init_transactions(SECONDS)
    for number in range(24):
        with transaction(client, commit=number % 4 != 0):
            send(client, "count-compacted", 0, 1, 3 + number % 5)
        if number % 5 == 0:
            send(producer(kafka.bootstrap), "count-compacted", 0, 1, 10 + number // 2)
    cleaned = [each / "cleaner-offset-checkpoint" for each in kafka.log_dirs]
    kafka.until(lambda: any(path.exists() and "count-compacted 0" in path.read_text() for path in cleaned), "the cleaner has run")


def write_deleted(bootstrap: str) -> None:
    """Records of which the first were deleted, in the middle of a batch."""
    send(producer(bootstrap), "count-deleted", 0, 6, 20)
    admin, offset = AdminClient({"bootstrap.servers": bootstrap}), TopicPartition("count-deleted", 0, 47)
    admin.delete_records([offset])[offset].result(SECONDS)


def place_old_messages(kafka: Kafka) -> None:
    """Messages of magic 0 and 1 in the log of a stopped broker, which has to recover it: brokers of today write none."""
    (target,) = (path / "count-old-0" for path in kafka.log_dirs if (path / "count-old-0").exists())
    for path in target.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    (target / "leader-epoch-checkpoint").write_text("0\n0\n")
    (target / f"{0:020}.log").write_bytes(old_messages())
    (target.parent / ".kafka_cleanshutdown").unlink()
    (target.parent / "recovery-point-offset-checkpoint").write_bytes(b"")


def old_messages() -> bytes:
    """Of both formats, alone and in wrappers."""
    records = tuple(Record(value=b"old %d" % number, timestamp=1_500_000_000_000 + number) for number in range(9))
    segment, offset = bytearray(), 0
    for magic in (0, 1):
        for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY):
            for entry, content in Messages(magic=magic, records=records, codec=codec).entries(offset, leader_epoch=0):
                segment += content
                following = entry.last_offset + 1
            offset = following
    return bytes(segment)


def consume(kafka: Kafka, isolation: str) -> list[tuple[str, int, list[int]]]:
    """All offsets that come to a consumer, by topic and partition."""
    found: dict[tuple[str, int], list[int]] = {(topic, each): [] for topic, (count, _) in TOPICS.items() for each in range(count)}
    for topic in TOPICS:
        printed = run_tool(
            "console-consumer",
            *("--bootstrap-server", kafka.bootstrap, "--topic", topic, "--from-beginning"),
            *("--isolation-level", isolation, "--timeout-ms", "4000"),
            *("--formatter-property", "print.partition=true", "--formatter-property", "print.offset=true"),
            *("--formatter-property", "print.value=false"),
        )
        for line in printed.splitlines():
            if line.startswith("Partition:"):
                number, offset = (int(part.partition(":")[2]) for part in line.split("\t")[:2])
                found[topic, number].append(offset)
    return [(*place, offsets) for place, offsets in found.items()]
