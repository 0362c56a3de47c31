"""Producers that write to a real broker until they are told to stop: plain, compressed, and in transactions of both protocol versions."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from confluent_kafka import Producer

from tests.broker.clients import CODECS, create_topic, producer, transaction
from tests.broker.kafka import Kafka
from tests.broker.oracle import TopicPartition
from tests.broker.transactions import Topics, Writer, opened
from tests.limits import SECONDS

PLAIN, PACKED, PAID = "crash.plain", "crash-packed-1", "crash_paid"
TOPICS: Topics = {PLAIN: 3, PACKED: 5, PAID: 4}
_CONFIG = {"internal.segment.bytes": "262144", "retention.ms": "-1"}
"""Segments roll now and then; nothing is deleted, so that a job that begins later finds everything."""

_PAUSE_SECONDS = 0.1


class Load:
    """``records`` are those that the broker has acknowledged, by partition; ``failures`` are empty while all is well."""

    def __init__(self, kafka: Kafka, seed: int) -> None:
        self.records: Counter[TopicPartition] = Counter()
        self.failures: list[str] = []
        self._kafka = kafka
        self._seed = seed
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._left_open: list[Producer] = []
        for topic, partitions in TOPICS.items():
            create_topic(kafka.bootstrap, topic, partitions, config=_CONFIG)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write while the block runs. What a producer could not do fails at its end."""
        work: list[Callable[[random.Random], None]] = [self._plain, self._packed, self._first_version, self._second_version]
        with ThreadPoolExecutor(len(work)) as threads:
            futures = [threads.submit(each, random.Random(f"{self._seed} {each.__name__}")) for each in work]
            try:
                yield
            finally:
                self._over.set()
            for future in futures:
                future.result()
        assert not self.failures, self.failures

    def leave_open(self) -> None:
        """One transaction that has begun on every partition and ends when nobody looks any more."""
        pieces = [(PAID, partition, 3) for partition in range(TOPICS[PAID])]
        self._left_open.append(opened(self._kafka, "crash-left-open", pieces))
        for topic, partition, records in pieces:
            self._acknowledged(topic, partition, records)

    def _plain(self, chance: random.Random) -> None:
        client = producer(self._kafka.bootstrap, idempotent=True)
        while not self._over.wait(_PAUSE_SECONDS):
            self._send(client, PLAIN, chance.sample(range(TOPICS[PLAIN]), 2), chance)

    def _packed(self, chance: random.Random) -> None:
        clients = [producer(self._kafka.bootstrap, codec, idempotent=True) for codec in CODECS]
        while not self._over.wait(_PAUSE_SECONDS):
            number = chance.randrange(len(clients))
            self._send(clients[number], PACKED, [number, chance.randrange(TOPICS[PACKED])], chance)

    def _first_version(self, chance: random.Random) -> None:
        client = producer(self._kafka.bootstrap, "lz4", transactional_id="crash-first")
        client.init_transactions(SECONDS)
        while not self._over.wait(_PAUSE_SECONDS):
            with transaction(client, commit=chance.random() < 0.7):
                for _ in range(chance.randint(1, 3)):
                    self._send(client, PAID, chance.sample(range(TOPICS[PAID]), chance.randint(1, TOPICS[PAID])), chance)
                    self._over.wait(chance.random() * 2 * _PAUSE_SECONDS)

    def _second_version(self, chance: random.Random) -> None:
        writer = Writer(self._kafka, "crash-second")
        while not self._over.wait(_PAUSE_SECONDS):
            for _ in range(chance.randint(1, 6)):
                partition, records = chance.randrange(TOPICS[PAID]), chance.randint(1, 5)
                writer.write(PAID, partition, records)
                self._acknowledged(PAID, partition, records)
            writer.end(commit=chance.random() < 0.7)

    def _send(self, client: Producer, topic: str, partitions: list[int], chance: random.Random) -> None:
        """One batch to each."""

        def delivered(error: object, message: object) -> None:
            if error is not None:
                self.failures.append(str(error))
            else:
                self._acknowledged(topic, message.partition(), 1)  # type: ignore[attr-defined]

        for partition in partitions:
            for _ in range(chance.randint(1, 20)):
                client.produce(topic, chance.randbytes(20).hex() * chance.randint(1, 20), partition=partition, on_delivery=delivered)
        if client.flush(SECONDS):
            self.failures.append(f"{topic} is not written within {SECONDS} s")

    def _acknowledged(self, topic: str, partition: int, records: int) -> None:
        with self._lock:
            self.records[topic, partition] += records
