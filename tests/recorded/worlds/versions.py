"""A broker with something of everything, and what it and its clients answered: the same on each version that segtail is tried with."""

import subprocess
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from tests.broker.clients import CODECS, create_topic, delete_topic, producer, send, transaction
from tests.broker.install import BROKER_VERSION, OLDER_VERSION, compiled, java_command
from tests.broker.kafka import Kafka
from tests.limits import SECONDS
from tests.recorded.making import Making

QUEUE = "dlq.letters"  # with the prefix that errors.deadletterqueue.topic.name.prefix asks for
READ = 60
COUNTED = (("codecs", 0), ("codecs", 1), ("ledger", 0), ("ledger", 1), (QUEUE, 0))
GROUPS = ("plain", "in transactions")
_SHARING = Path(__file__).parents[2] / "broker" / "sharing"

Key = tuple[str, int]


def make(making: Making) -> None:
    """Nothing is appended any more when the disk is kept; one transaction is open."""
    kafka = Kafka(making.directory / "kafka", version=making.version)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        opened = fill(kafka)
        making.answer("shared", share(kafka), by="Kafka's Java admin client")
        consumed = [(*key, *(consume(kafka, *key, f"read_{which}committed") for which in ("un", ""))) for key in COUNTED]
        making.answer("consumed", consumed, by="librdkafka's consumer")
        making.answer("committed", committed(kafka), by="a coordinator, to librdkafka")
        ends = rested(kafka)
        making.answer("ends", [(*key, end) for key, end in ends.items()], by="a broker, to librdkafka")
        stable = offsets(kafka, IsolationLevel.READ_COMMITTED)
        making.answer("stable", [(*key, end) for key, end in stable.items()], by="a broker, to librdkafka")
        making.disk(kafka)
        assert opened, "it would be aborted if its client were gone"


def fill(kafka: Kafka) -> Producer:
    """Every codec; transactions that commit, abort and stay open; deleted records; a topic that is gone; commits, some in transactions."""
    for topic in ("codecs", "ledger", "gone"):
        create_topic(kafka.bootstrap, topic, partitions=2)
    create_topic(kafka.bootstrap, QUEUE, config={"errors.deadletterqueue.group.enable": "true"} if kafka.version == BROKER_VERSION else {})
    for codec in CODECS:
        send(producer(kafka.bootstrap, codec), "codecs", 0, batches=2, records=10)
    send(producer(kafka.bootstrap), "codecs", 1, batches=1, records=40)
    delete_topic(kafka.bootstrap, "gone")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.delete_records([TopicPartition("codecs", 0, 15)])[TopicPartition("codecs", 0)].result(SECONDS)
    client = producer(kafka.bootstrap, transactional_id="ended")
    client.init_transactions(SECONDS)
    for number in range(4):
        with transaction(client, commit=number % 2 == 0):
            send(client, "ledger", number % 2, batches=1, records=5)
    reader, in_transaction = (
        Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group, "enable.auto.commit": False}) for group in GROUPS
    )
    reader.commit(offsets=[TopicPartition("codecs", 0, 40), TopicPartition("codecs", 1, 7)], asynchronous=False)
    client.begin_transaction()
    client.send_offsets_to_transaction([TopicPartition("ledger", 0, 3)], in_transaction.consumer_group_metadata(), SECONDS)
    client.commit_transaction(SECONDS)
    opened = producer(kafka.bootstrap, transactional_id="open")
    opened.init_transactions(SECONDS)
    opened.begin_transaction()
    send(opened, "ledger", 1, batches=1, records=3)
    reader.close()
    in_transaction.close()
    return opened


def share(kafka: Kafka) -> list[tuple[str, int, int, int]]:
    """A share group reads, where there are any: start offset and lag of each of its partitions."""
    if kafka.version == OLDER_VERSION:
        return []
    words = (kafka.bootstrap, "sharing", "codecs", str(READ), *([QUEUE] if kafka.version == BROKER_VERSION else []))
    command = java_command("Sharing", *words, classes=compiled(_SHARING))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return [(topic, int(number), int(start), int(lag)) for topic, number, start, lag in rows]


def offsets(kafka: Kafka, isolation: IsolationLevel) -> dict[Key, int]:
    """The ends that a broker tells consumers of this isolation."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    pairs = [(name, number) for name, topic in admin.list_topics(timeout=SECONDS).topics.items() for number in topic.partitions]
    asked = admin.list_offsets({TopicPartition(*pair): OffsetSpec.latest() for pair in pairs}, isolation_level=isolation)
    return {(at.topic, at.partition): answer.result(SECONDS).offset for at, answer in asked.items()}


def rested(kafka: Kafka) -> dict[Key, int]:
    """Where logs end when the broker has noted all of that; a share group's state is appended to after its members have left."""
    ends: dict[Key, int] = {}

    def is_noted() -> bool:
        ends.update(offsets(kafka, IsolationLevel.READ_UNCOMMITTED))
        noted = {line for log_dir in kafka.log_dirs for line in (log_dir / "replication-offset-checkpoint").read_text().splitlines()}
        return noted >= {f"{topic} {partition} {end}" for (topic, partition), end in ends.items()}

    kafka.until(is_noted, "all checkpoints are current", lambda: ends)
    return ends


def committed(kafka: Kafka) -> list[tuple[str, str, int, int]]:
    """Group, topic, partition and offset."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    asked = {name: admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name].result(SECONDS) for name in GROUPS}
    return [(name, at.topic, at.partition, at.offset) for name, found in asked.items() for at in found.topic_partitions]


def consume(kafka: Kafka, topic: str, number: int, isolation: str) -> int:
    """How many records come to a consumer of this isolation from the first on."""
    reading = {"bootstrap.servers": kafka.bootstrap, "group.id": "counting", "enable.partition.eof": True, "isolation.level": isolation}
    consumer = Consumer({**reading, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, number, 0)])
    got = 0
    try:
        while True:
            message = consumer.poll(SECONDS)
            assert message is not None
            if message.error() is not None:
                assert message.error().name() == "_PARTITION_EOF"
                return got
            got += 1
    finally:
        consumer.close()
