"""What a broker says of the transactions in its partitions, and the load that makes them."""

import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from confluent_kafka import Producer

from tests.broker.clients import producer, send, transaction
from tests.broker.kafka import Kafka
from tests.broker.oracle import TopicPartition, run_tool
from tests.broker.wire import OpenProducer, ProducerId, RefusedError, Wire
from tests.limits import SECONDS
from tests.processes import until

Topics = Mapping[str, int]
"""How many partitions each topic has."""

_OF_ALL_AGES = "0"
_BUSY = (14, 15, 16, 51)
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS."""

_T = TypeVar("_T")
_LEAST = 5
"""So many transactions each producer of a load ends, however short it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What a broker says of one partition: its high watermark, its last stable offset, and what is open."""

    high_watermark: int
    last_stable_offset: int
    opened: tuple[OpenProducer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Markers:
    """The markers of one partition: those that ended a transaction, and those that ended nothing on it."""

    committed: int = 0
    aborted: int = 0
    empty: int = 0


def reported_by(port: int, topics: Topics) -> dict[TopicPartition, Reported]:
    """DescribeProducers and ListOffsets of all partitions of some topics, which the broker at that port has to lead."""
    found = {}
    with Wire(port) as wire:
        for topic, count in topics.items():
            opened = wire.open_producers(topic, range(count))
            ends, stable = (wire.end_offsets(topic, range(count), committed=committed) for committed in (False, True))
            for partition in range(count):
                found[topic, partition] = Reported(
                    high_watermark=ends[partition], last_stable_offset=stable[partition], opened=tuple(opened[partition])
                )
    return found


def find_hanging(kafka: Kafka, broker: int = 1) -> set[tuple[str, int, int, int]]:
    """(topic, partition, producer id, first offset) of what Kafka's own tool calls hanging, of whatever age."""
    arguments = ("find-hanging", "--broker-id", str(broker), "--max-transaction-timeout", _OF_ALL_AGES)
    lines = run_tool("transactions", "--bootstrap-server", kafka.bootstrap, *arguments).splitlines()
    cells = [line.split() for line in lines[1:] if line.strip()]
    return {(topic, int(partition), int(producer_id), int(first)) for topic, partition, producer_id, _, _, first, *_ in cells}


def owners(kafka: Kafka) -> dict[int, str]:
    """The transactional id of each producer id, as Kafka's own tool lists them."""
    lines = run_tool("transactions", "--bootstrap-server", kafka.bootstrap, "list").splitlines()
    cells = [line.split() for line in lines[1:] if line.strip()]
    return {int(producer_id): transactional_id for transactional_id, _, producer_id, *_ in cells}


def markers(log_dirs: Iterable[Path], topics: Iterable[str], begins: Mapping[TopicPartition, int]) -> dict[TopicPartition, Markers]:
    """The markers from an offset on (0 where none is given), distinguished by going through every batch that kafka-dump-log prints."""
    wanted = set(topics)
    segments = sorted(path for each in log_dirs for path in each.glob("*-*/*.log") if path.parent.name.rpartition("-")[0] in wanted)
    counts: dict[TopicPartition, dict[str, int]] = {}
    opened: set[tuple[str, int, str]] = set()
    topic, partition, producer_id = "", 0, ""
    for line in run_tool("dump-log", "--deep-iteration", "--files", ",".join(map(str, segments))).splitlines():
        if line.startswith("Dumping "):
            topic, _, number = Path(line.removeprefix("Dumping ")).parent.name.rpartition("-")
            partition = int(number)
        elif header := _HEADER.match(line):
            producer_id = header["id"]
            if header["transactional"] == "true" and header["control"] == "false":
                opened.add((topic, partition, producer_id))
        elif marker := _MARKER.match(line):
            key = (topic, partition, producer_id)
            what = {"COMMIT": "committed", "ABORT": "aborted"}[marker["kind"]] if key in opened else "empty"
            opened.discard(key)
            if int(marker["offset"]) >= begins.get((topic, partition), 0):
                found = counts.setdefault((topic, partition), {})
                found[what] = found.get(what, 0) + 1
    return {key: Markers(**found) for key, found in counts.items()}


_HEADER = re.compile(r"baseOffset: .* producerId: (?P<id>-?\d+) .* isTransactional: (?P<transactional>\w+) isControl: (?P<control>\w+) ")
_MARKER = re.compile(r"\| offset: (?P<offset>\d+) .* endTxnMarker: (?P<kind>COMMIT|ABORT) ")


class Writer:
    """A transactional producer of the second protocol version, with a connection for each request."""

    def __init__(self, kafka: Kafka, transactional_id: str, timeout_ms: int = 600_000) -> None:
        self.transactional_id = transactional_id
        self._port = kafka.brokers[0].port
        self.producer = self._ask(lambda wire: wire.init_producer(transactional_id, timeout_ms))
        self._sequences: dict[tuple[str, int], int] = {}

    def write(self, topic: str, partition: int, records: int) -> int:
        """One batch; returns its base offset."""
        sequence = self._sequences.get((topic, partition), 0)
        self._sequences[topic, partition] = sequence + records
        return self._produce(self.producer, topic, partition, sequence, records, age_ms=0, implicit=True)

    def end(self, *, commit: bool) -> None:
        self.producer = self._ask(lambda wire: wire.end_transaction(self.transactional_id, self.producer, commit=commit))
        self._sequences.clear()

    def hang(self, topic: str, partition: int, records: int, *, producer: ProducerId | None = None, age_ms: int = 0) -> int:
        """A batch that no coordinator hears of: of another producer than this one if one is given. Returns its base offset.

        Args:
            age_ms: so long ago it was written by its timestamp, which who did not see it arrive has to believe.
        """
        return self._produce(producer or self.producer, topic, partition, 0, records, age_ms=age_ms, implicit=False)

    def hang_offsets(self, group: str, topic: str, partition: int) -> None:
        """Offsets of a group that no coordinator of transactions hears of."""
        self._ask(lambda wire: wire.commit_in_transaction(self.transactional_id, self.producer, group, topic, partition))

    def _produce(self, author: ProducerId, topic: str, partition: int, sequence: int, records: int, *, age_ms: int, implicit: bool) -> int:
        then_ms = time.time_ns() // 1_000_000 - age_ms
        return self._ask(
            lambda wire: wire.produce(self.transactional_id, author, topic, partition, sequence, records, now_ms=then_ms, implicit=implicit)
        )

    def _ask(self, ask: Callable[[Wire], _T]) -> _T:
        with Wire(self._port) as wire:
            return _patiently(lambda: ask(wire))


def _patiently(ask: Callable[[], _T]) -> _T:
    """Asks again while the coordinator is busy with what was asked before."""

    def answer() -> tuple[_T] | None:
        try:
            return (ask(),)
        except RefusedError as error:
            if error.code not in _BUSY:
                raise
            return None

    return until("the coordinator answers", answer)[0]


def opened(kafka: Kafka, transactional_id: str, pieces: Iterable[tuple[str, int, int]]) -> Producer:
    """A producer of the first protocol version that has begun a transaction; pieces are (topic, partition, records)."""
    client = producer(kafka.bootstrap, transactional_id=transactional_id)
    client.init_transactions(SECONDS)
    client.begin_transaction()
    for topic, partition, records in pieces:
        send(client, topic, partition, 1, records)
    return client


@contextmanager
def load(kafka: Kafka, topic: str, partitions: int, name: str) -> Iterator[None]:
    """Producers of both versions that commit and abort in all partitions, interleaved, until the block ends."""
    over = threading.Event()
    with ThreadPoolExecutor(4) as threads:
        work = [
            threads.submit(write, kafka, topic, partitions, f"{name}-{write.__name__}-{number}", over)
            for write in (_first_version, _second_version)
            for number in range(2)
        ]
        try:
            yield
        finally:
            over.set()
        for each in work:
            each.result()


def _first_version(kafka: Kafka, topic: str, partitions: int, name: str, over: threading.Event) -> None:
    chance, client = random.Random(name), producer(kafka.bootstrap, transactional_id=name)
    client.init_transactions(SECONDS)
    ended = 0
    while not over.is_set() or ended < _LEAST:
        with transaction(client, commit=_commits(ended)):
            for partition in chance.sample(range(partitions), chance.randint(1, partitions)):
                send(client, topic, partition, chance.randint(1, 3), 3)
        ended += 1


def _second_version(kafka: Kafka, topic: str, partitions: int, name: str, over: threading.Event) -> None:
    chance, writer = random.Random(name), Writer(kafka, name)
    ended = 0
    while not over.is_set() or ended < _LEAST:
        for _ in range(chance.randint(1, 6)):
            writer.write(topic, chance.randrange(partitions), chance.randint(1, 3))
        writer.end(commit=_commits(ended))
        ended += 1


def _commits(number: int) -> bool:
    return number % 3 != 1
