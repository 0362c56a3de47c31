"""Clients that go on whatever becomes of the brokers: producers, plain and with transactions, and a consumer group for each of these."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from confluent_kafka import Consumer, KafkaException, Producer

from tests.broker.clients import create_topic, producer
from tests.broker.kafka import Kafka
from tests.processes import until

ORDERS, PAYMENTS, LEDGER, AUDIT = "orders", "payments", "ledger", "audit"
"""Plain; with transactions; compacted; with small segments that retention deletes."""

READERS = {"shop": ORDERS, "bank": PAYMENTS}
"""Groups that keep up, by what they read: whatever becomes of the brokers, no alert is about them."""

PARTITIONS = {ORDERS: 6, PAYMENTS: 3, LEDGER: 2, AUDIT: 2}
_SAFE = {"min.insync.replicas": "2"}
_CONFIG = {
    ORDERS: _SAFE,
    PAYMENTS: _SAFE,
    LEDGER: _SAFE | {"cleanup.policy": "compact", "internal.segment.bytes": "20000"},
    AUDIT: _SAFE | {"internal.segment.bytes": "20000"},
}
_PLAIN = (ORDERS, LEDGER, AUDIT)
_PAUSE_SECONDS = 0.5
_FLUSH_SECONDS = 5.0  # what has not arrived by then does so later
_COMMIT_MS = 1_000
_TRY_SECONDS = 20.0
"""After so long a client with transactions gives up, for brokers may be away for longer, and another one begins."""

_VALUE = b"." * 200


class Traffic:
    """Writes a little to all partitions, all the time, and reads it. What a broker refuses is tried again or given up: nobody counts it."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._over = threading.Event()
        self._transactions = threading.Event()
        self._transactions.set()
        self._idle = threading.Event()
        self._refused = ""
        """Why the last transaction that failed did so."""
        for topic, partitions in PARTITIONS.items():
            create_topic(kafka.bootstrap, topic, partitions, replicas=3, config=_CONFIG[topic])

    @contextmanager
    def running(self) -> Iterator[None]:
        work: list[Callable[[], None]] = [self._write_plain, self._write_transactions]
        work += [partial(self._read, group, topic) for group, topic in READERS.items()]
        with ThreadPoolExecutor(len(work)) as threads:
            futures = [threads.submit(each) for each in work]
            try:
                yield
            finally:
                self._over.set()
                self._transactions.set()
            for future in futures:
                future.result()

    @contextmanager
    def without_transactions(self) -> Iterator[None]:
        """None is open inside the block, so that none is left open by what happens in it."""
        self._transactions.clear()
        until("no transaction is open", self._idle.is_set, saw=lambda: self._refused)
        try:
            yield
        finally:
            self._transactions.set()

    def _write_plain(self) -> None:
        client = self._plain()
        number = 0
        while not self._over.wait(_PAUSE_SECONDS):
            number += 1
            try:
                for topic in _PLAIN:
                    for partition in range(PARTITIONS[topic]):
                        client.produce(topic, _VALUE, key=b"%d" % (number % 7), partition=partition)
                client.flush(_FLUSH_SECONDS)
            except (KafkaException, BufferError):  # what was written before an unclean election is gone: the producer cannot go on
                client.purge()
                client = self._plain()

    def _write_transactions(self) -> None:
        client: Producer | None = None
        while not self._over.wait(_PAUSE_SECONDS):
            if not self._transactions.is_set():
                self._idle.set()
                self._transactions.wait()
                self._idle.clear()
            try:
                client = client or self._transactional()
                client.begin_transaction()
                for partition in range(PARTITIONS[PAYMENTS]):
                    client.produce(PAYMENTS, _VALUE, partition=partition)
                client.commit_transaction(_TRY_SECONDS)
            except KafkaException as error:  # its successor aborts what it has left open
                client, self._refused = None, str(error)

    def _read(self, group: str, topic: str) -> None:
        client = Consumer(
            {
                "bootstrap.servers": self._kafka.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": _COMMIT_MS,
                "isolation.level": "read_committed",
            }
        )
        client.subscribe([topic])
        try:
            while not self._over.is_set():
                client.poll(_PAUSE_SECONDS)  # an error comes as a message: the client tries again by itself
        finally:
            client.close()

    def _plain(self) -> Producer:
        return producer(self._kafka.bootstrap)

    def _transactional(self) -> Producer:
        client = producer(self._kafka.bootstrap, transactional_id="till-1")
        client.init_transactions(_TRY_SECONDS)
        return client
