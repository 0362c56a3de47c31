"""Clients of the events about consumer groups: members that read at a pace, stand at a record, or leave a transaction open."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from tests.broker.clients import create_topic, delete_topic, producer
from tests.broker.kafka import Kafka
from tests.limits import SECONDS
from tests.processes import until

VALUE = b"." * 200
_TURN_SECONDS = 0.2
_LIFE_SECONDS = 5.0
_SESSION_MS = 10_000
"""A member that dies without a word is missed after so long."""


class Member:
    """A consumer of one topic that commits every second, on a thread of its own.

    ``pace``: records a second that it reads at most. ``stands``: it does not get beyond its record, and commits all the same.
    """

    def __init__(self, kafka: Kafka, group: str, topic: str, *, pace: float = 1e6) -> None:
        self.pace = pace
        self.stands = False
        self.read = 0
        self._kafka, self._group, self._topic = kafka, group, topic
        self._again, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Member":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def await_read(self, records: int = 1) -> None:
        """Until it has read some more."""
        wanted = self.read + records
        until(f"{self._group} has read {records}", lambda: self.read >= wanted, saw=lambda: self.read)

    def read_again(self) -> None:
        """As after a reset to earliest."""
        self._again.set()

    def _run(self) -> None:
        client = _consumer(self._kafka, self._group)
        client.subscribe([self._topic])
        try:
            while not self._over.is_set():
                self._turn(client)
        finally:
            client.close()

    def _turn(self, client: Consumer) -> None:
        began = time.monotonic()
        if self._again.is_set() and client.assignment():
            self._again.clear()
            for each in client.assignment():
                client.seek(TopicPartition(each.topic, each.partition, OFFSET_BEGINNING))
        if self.stands:
            client.pause(client.assignment())
            client.poll(0)
        else:
            client.resume(client.assignment())
            most = max(int(self.pace * _TURN_SECONDS), 1)
            self.read += sum(not each.error() for each in client.consume(min(most, 10_000), _TURN_SECONDS))
        positions = [each for each in client.position(client.assignment()) if each.offset >= 0]
        if positions:
            with suppress(KafkaException):  # a rebalance: the next turn commits
                client.commit(offsets=positions, asynchronous=False)  # also where they are those of before
        self._over.wait(max(_TURN_SECONDS - (time.monotonic() - began), 0))


@contextmanager
def topic(kafka: Kafka, name: str, retention_ms: int | None = None) -> Iterator[str]:
    """A topic of one partition with small segments, for as long as the block lasts."""
    config = {"min.insync.replicas": "2", "internal.segment.bytes": "20000"}
    create_topic(kafka.bootstrap, name, replicas=3, config=config | ({} if retention_ms is None else {"retention.ms": str(retention_ms)}))
    try:
        yield name
    finally:
        delete_topic(kafka.bootstrap, name)


@contextmanager
def writing(kafka: Kafka, name: str, rate: float) -> Iterator[None]:
    """So many records a second are appended inside the block."""
    client = producer(kafka.bootstrap)

    def write() -> None:
        for _ in range(max(int(rate), 1)):
            client.produce(name, VALUE, partition=0)
        client.flush(SECONDS)

    with _again_and_again(write):
        yield


@contextmanager
def late(kafka: Kafka, name: str, delay_ms: int) -> Iterator[None]:
    """Inside the block records are appended all the time whose timestamps are so old."""
    client = producer(kafka.bootstrap)

    def write() -> None:
        client.produce(name, VALUE, partition=0, timestamp=time.time_ns() // 1_000_000 - delay_ms)
        client.flush(SECONDS)

    with _again_and_again(write):
        yield


@contextmanager
def restarting(kafka: Kafka, group: str, name: str) -> Iterator[None]:
    """Inside the block one more member joins the group, reads for a moment, and leaves it, again and again."""

    def live() -> None:
        with Member(kafka, group, name):
            time.sleep(_LIFE_SECONDS)

    with _again_and_again(live):
        yield


@contextmanager
def _again_and_again(do: Callable[[], None]) -> Iterator[None]:
    over = threading.Event()

    def run() -> None:
        while not over.wait(1.0):
            do()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def fill(kafka: Kafka, name: str, seconds: float, rate: float) -> None:
    """What a producer would have written in the last seconds, with the times of then."""
    client = producer(kafka.bootstrap)
    now_ms = time.time_ns() // 1_000_000
    for number in range(int(seconds * rate)):
        client.produce(name, VALUE, partition=0, timestamp=round(now_ms - 1000 * (seconds - number / rate)))
        if number % 1_000 == 999:
            client.flush(SECONDS)
    client.flush(SECONDS)


def read_once(kafka: Kafka, group: str, name: str, records: int = 1) -> None:
    """A group reads some records at least, from the earliest or its last one on, commits, and leaves."""
    with Member(kafka, group, name) as member:
        member.await_read(records)


class Leaving:
    """A producer of transactions whose process dies in one: nothing of it is left that could end it."""

    def __init__(self, kafka: Kafka, transactional_id: str, timeout_ms: int) -> None:
        self._client: Producer | None = producer(
            kafka.bootstrap, transactional_id=transactional_id, more={"transaction.timeout.ms": timeout_ms}
        )
        self._client.init_transactions(SECONDS)

    def commit(self, *outputs: str, reads: Consumer) -> None:
        """Write a record to each of some topics and the offset of the application's reader, in a transaction."""
        self._write(outputs, reads).commit_transaction(SECONDS)

    def leave_open(self, *outputs: str, reads: Consumer | None = None) -> None:
        """Write records, and, for an application that reads too, the offset of its reader, in a transaction that stays open."""
        self._write(outputs, reads)
        self._client = None

    def _write(self, outputs: Sequence[str], reads: Consumer | None) -> Producer:
        assert self._client is not None
        self._client.begin_transaction()
        for each in outputs:
            self._client.produce(each, VALUE, partition=0)
        self._client.flush(SECONDS)
        if reads is not None:
            self._client.send_offsets_to_transaction(reads.position(reads.assignment()), reads.consumer_group_metadata(), SECONDS)
        return self._client


def reading_in_transactions(kafka: Kafka, group: str, name: str) -> Consumer:
    """The reader of an application with exactly-once, which has read a record and commits nothing by itself."""
    client = _consumer(kafka, group)
    client.subscribe([name])
    read_more(client)
    return client


def read_more(client: Consumer) -> None:
    """One record at least."""
    until("it reads", lambda: client.consume(1, 1.0))


def _consumer(kafka: Kafka, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": _SESSION_MS,
            "isolation.level": "read_committed",
        }
    )
