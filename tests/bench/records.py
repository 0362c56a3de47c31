"""What a record costs: ``records`` and ``batches`` from a broker's disk beside Spark's own Kafka source, on the same topic and cores.

All read the whole topic into nothing, all columns, by turns in Sparks that are warm. What a query costs that finds nothing is measured in
the same way and left out: it stands in columns of its own. What the broker spends meanwhile counts for the Kafka source, but for what it
does with nobody reading.

Left out: a cold page cache, more than one broker, TLS; sinks.
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.processes import cpu_seconds, usage
from tests.bench.table import show
from tests.broker.clients import create_topic, producer
from tests.broker.kafka import Kafka
from tests.processes import until

PARTITIONS = 4
EMPTY = "bench.empty"
WARM_UPS = 2
ROUNDS = 5
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class RecordLoad:
    """Records of one size; ``records`` of them in the topic."""

    name: str
    value_bytes: int
    records: int
    codec: str
    headers: bool = False


LOADS = (
    RecordLoad("100 B, none", 100, 1_500_000, "none"),
    RecordLoad("100 B, lz4", 100, 1_500_000, "lz4"),
    RecordLoad("1 KB, none", 1000, 400_000, "none"),
    RecordLoad("1 KB, lz4", 1000, 400_000, "lz4"),
    RecordLoad("1 KB, zstd, headers", 1000, 400_000, "zstd", headers=True),
    RecordLoad("1 KB, gzip", 1000, 200_000, "gzip"),
    RecordLoad("1 KB, snappy", 1000, 400_000, "snappy"),
    RecordLoad("10 KB, none", 10_000, 40_000, "none"),
)


@dataclass(frozen=True, slots=True)
class _Job:
    process: subprocess.Popen[str]

    def read(self, kafka: Kafka, topic: str, records: int) -> tuple[float, float, float]:
        """Read a topic once. CPU seconds of the job and of the broker, and the seconds that it took."""
        began, job, broker = time.monotonic(), self._spent(), cpu_seconds(kafka.pids)
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{topic}\n")
        self.process.stdin.flush()
        found = self.process.stdout.readline().strip()
        if found != str(records):
            raise RuntimeError(f"{found} records were read, and {records} were written")
        return self._spent() - job, cpu_seconds(kafka.pids) - broker, time.monotonic() - began

    def _spent(self) -> float:
        return sum(usage(self.process.pid).cpu_seconds.values())


def run() -> None:
    """Print one table."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch:
        kafka = Kafka(Path(scratch, "kafka"))
        try:
            kafka.start()
            create_topic(kafka.bootstrap, EMPTY, PARTITIONS)
            for number, load in enumerate(LOADS):
                topic = f"bench.{number}"
                create_topic(kafka.bootstrap, topic, PARTITIONS)
                _fill(kafka, topic, load)
                rows.append(_compare(kafka, Path(scratch), topic, load))
        finally:
            kafka.kill()
    heads = ("", "records us", "batches us", "Kafka us", "of it broker", "records", "least to most", "batches", "records s", "Kafka s")
    show(f"CPU microseconds a record, medians of {ROUNDS}; times as many records a CPU second; CPU seconds of an empty query", heads, rows)


def _compare(kafka: Kafka, scratch: Path, topic: str, load: RecordLoad) -> tuple[str, ...]:
    dirs = ",".join(map(str, kafka.log_dirs))
    with (
        _job("records", dirs, scratch) as disk,
        _job("batches", dirs, scratch) as headers,
        _job("kafka", kafka.bootstrap, scratch) as other,
    ):
        jobs = (disk, headers, other)
        for _ in range(WARM_UPS):
            for each in jobs:
                each.read(kafka, topic, load.records)
        empty = [statistics.median(each.read(kafka, EMPTY, 0)[0] for _ in range(ROUNDS)) for each in jobs]
        began, before = time.monotonic(), cpu_seconds(kafka.pids)
        time.sleep(2)
        idle = (cpu_seconds(kafka.pids) - before) / (time.monotonic() - began)
        spent: list[list[float]] = [[], [], []]
        brokers = list[float]()
        for _ in range(ROUNDS):
            for each, found, nothing in zip(jobs, spent, empty, strict=True):
                job, broker, seconds = each.read(kafka, topic, load.records)
                found.append((job - nothing) / load.records * 1e6)
            brokers.append(max(0.0, broker - idle * seconds) / load.records * 1e6)
            spent[2][-1] += brokers[-1]
    ratios = sorted(kafkas / own for own, kafkas in zip(spent[0], spent[2], strict=True))
    # a read of batches may cost less than what one that finds nothing varies by
    by_batches = statistics.median(spent[2]) / max(statistics.median(spent[1]), 0.001)
    medians = [f"{statistics.median(each):.2f}" for each in (*spent, brokers, ratios)]
    costs = [f"{empty[0]:.2f}", f"{empty[2]:.2f}"]
    return (load.name, *medians, f"{ratios[0]:.1f} to {ratios[-1]:.1f}", f"{by_batches:.0f}", *costs)


@contextmanager
def _job(kind: str, where: str, scratch: Path) -> Iterator[_Job]:
    command = [sys.executable, "-m", "tests.bench.records_job", kind, where]
    with (scratch / "messages").open("ab") as messages:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=messages, text=True)
    try:
        assert process.stdout
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"the job failed: {(scratch / 'messages').read_text(errors='replace')[-2000:]}")
        yield _Job(process)
    finally:
        process.kill()
        process.communicate()


def _fill(kafka: Kafka, topic: str, load: RecordLoad) -> None:
    settings: dict[str, str | int] = {"linger.ms": 20, "compression.type": load.codec, "queue.buffering.max.kbytes": 1 << 16}
    client, values = producer(kafka.bootstrap, load.codec, more={**settings, "batch.size": 64 << 10}), _values(load.value_bytes)
    headers = [("trace", b"0123456789abcdef"), ("source", b"bench")] if load.headers else []
    for number in range(load.records):
        key, value = b"key-%09d" % number, values[number % len(values)]
        while True:
            try:
                client.produce(topic, value, key, partition=number // 64 % PARTITIONS, headers=headers)
                break
            except BufferError:
                client.poll(_POLL_SECONDS)
    if client.flush(120):
        raise RuntimeError("the broker did not take everything")
    _until_replicated(kafka, topic)


def _until_replicated(kafka: Kafka, topic: str) -> None:
    """Wait until the broker has written the high watermarks of everything: it does so every five seconds."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "bench"})
    ends = {f"{topic} {each} {consumer.get_watermark_offsets(TopicPartition(topic, each))[1]}" for each in range(PARTITIONS)}
    consumer.close()

    def written() -> bool:
        lines = {line for log_dir in kafka.log_dirs for line in (log_dir / "replication-offset-checkpoint").read_text().splitlines()}
        return ends <= lines

    until("high watermarks are written", written)


def _values(size: int) -> list[bytes]:
    """Values that a codec makes about a third of: events in JSON."""
    chosen = random.Random(1)
    found = []
    for number in range(500):
        text = ""
        while len(text) < size:
            event = {"id": chosen.randrange(10**9), "user": f"user-{chosen.randrange(10**5)}", "amount": chosen.random(), "number": number}
            text += json.dumps(event)
        found.append(text[:size].encode())
    return found
