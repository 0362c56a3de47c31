"""The log dirs of a broker at work, and what kafka-dump-log printed of their files."""

import random
from collections.abc import Mapping
from contextlib import ExitStack

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.broker.clients import CODECS, create_topic
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import run_tool
from tests.limits import SECONDS
from tests.recorded.making import Making

TOPIC = "dump.live"
PARTITIONS = 2
_CONFIG = {"internal.segment.bytes": "150000", "index.interval.bytes": "1024"}
_CLIENT = {"linger.ms": 5, "batch.size": 60_000}  # less than a segment
_DECODERS: Mapping[str, tuple[str, str]] = {
    "offsets": ("--offsets-decoder", "__consumer_offsets-*/*.log"),
    "transactions": ("--transaction-log-decoder", "__transaction_state-*/*.log"),
    "metadata": ("--cluster-metadata-decoder", "__cluster_metadata-0/*.log"),
}
DECODED = tuple(_DECODERS)


def make(making: Making) -> None:
    """Kafka's tool prints the names of the files from the folder of the node on. The broker goes on writing, so the disk is kept last."""
    kafka = Kafka(making.directory / "kafka", version=making.version)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        create_topic(kafka.bootstrap, TOPIC, partitions=PARTITIONS, config=_CONFIG)
        write(kafka.bootstrap)
        read(kafka.bootstrap)

        def print_files(name: str, pattern: str, *options: str) -> None:
            paths = [path for log_dir in kafka.log_dirs for path in sorted(log_dir.glob(pattern))]
            said = run_tool("dump-log", *options, "--files", ",".join(map(str, paths)))
            making.answer(name, said.replace(f"{making.directory / 'kafka'}/", ""), by=f"kafka-dump-log {' '.join(options)}".strip())

        print_files("logs", f"{TOPIC}-*/*.log", "--deep-iteration")
        for kind in ("index", "timeindex", "txnindex", "snapshot"):
            print_files(kind, f"{TOPIC}-*/*.{kind}")
        for name, (option, pattern) in _DECODERS.items():
            print_files(name, pattern, option)
        making.disk(kafka)


def write(bootstrap: str) -> None:
    """In every way that the client knows, over several segments."""
    chosen = random.Random(5)
    for codec in CODECS:
        plain = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, **_CLIENT})
        for number in range(300):
            _produce(plain, chosen, number)
        plain.flush()
    for transaction in range(12):
        own = {"transactional.id": f"dump-{transaction % 3}", "compression.type": chosen.choice(CODECS)}
        client = Producer({"bootstrap.servers": bootstrap, **own, **_CLIENT})
        client.init_transactions()
        client.begin_transaction()
        for number in range(chosen.randrange(1, 200)):
            _produce(client, chosen, number)
        client.flush()
        if transaction % 3:
            client.commit_transaction()
        else:
            client.abort_transaction()


def read(bootstrap: str) -> None:
    """By a group of either protocol."""
    for protocol in ("classic", "consumer"):
        consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": protocol, "group.protocol": protocol, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([TOPIC])
        assert consumer.consume(1, SECONDS)
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 7, metadata="é")], asynchronous=False)
        consumer.close()


def _produce(client: Producer, chosen: random.Random, number: int) -> None:
    client.produce(
        TOPIC,
        key=chosen.choice([None, b"", f"key {number}".encode()]),
        value=chosen.choice([None, b"", chosen.randbytes(chosen.randrange(900)), b"text " * chosen.randrange(3000)]),
        headers=[(f"h{at}", chosen.choice([None, b"", b"value"])) for at in range(chosen.randrange(3))],
        partition=number % PARTITIONS,
    )
    client.poll(0)
