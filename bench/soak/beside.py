"""What an agent does to the broker beside it: how long producers wait with and without one, and what a backlog leaves of the page cache."""

import os
import random
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from pyspark.sql.streaming.datasource import ReadAllAvailable

from streaming.spark.source.job_options import parse_options
from streaming.spark.source.stream import EventStreamReader
from tests.broker.clients import create_topic
from tests.broker.kafka import Kafka
from tests.limits import SECONDS
from tests.ports import free_ports
from tests.processes import until
from tests.worlds.page_cache import resident
from tests.worlds.services import service

LATENCY, BACKLOG = "beside.latency", "beside.backlog"
SENDS_A_SECOND = 200
_VALUE_BYTES = 1000
_PIECE = 1 << 20
_HOT_SEGMENTS = 2


@dataclass(frozen=True, slots=True)
class Waits:
    """How long sends with acks=all took to be acknowledged, in milliseconds."""

    sends: int
    p50: float
    p99: float
    longest: float


@dataclass(frozen=True, slots=True)
class Cached:
    """Bytes in the page cache: of segments that readers are at, of those that nobody has read for long, of files that no one touches."""

    hot: int
    cold: int
    control: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Rounds without and with an agent in turn; the page cache before and after an agent read ``backlog_bytes`` in ``backlog_seconds``."""

    without: Sequence[Waits]
    beside: Sequence[Waits]
    backlog_bytes: int
    backlog_seconds: float
    before: Cached
    after: Cached
    hot_bytes: int


def run_beside(directory: Path, rounds: int, seconds: float, backlog_bytes: int) -> Report:
    """Measure both."""
    kafka = Kafka(directory / "kafka")
    try:
        kafka.start()
        create_topic(kafka.bootstrap, LATENCY, 4)
        without, beside = [], []
        _waits(kafka, seconds / 2)  # the first ones are those of a broker that warms up
        for number in range(rounds):
            without.append(_waits(kafka, seconds))
            with _agent(kafka, directory / f"round-{number}") as reader:
                until("it has caught up", reader.caught_up)
                beside.append(_waits(kafka, seconds))
        cold, hot = _make_backlog(kafka, backlog_bytes)
        # A machine that is short of memory takes the pages away first that were read first: one file on either side of the hot ones.
        control = [_make_control(directory / "control-0", _size(hot))]
        _keep_cached(hot)
        control.append(_make_control(directory / "control-1", _size(hot)))
        before = Cached(resident(hot), resident(cold), resident(control))
        began = time.monotonic()
        with _agent(kafka, directory / "backlog") as reader:
            until("it has caught up", reader.caught_up)
            took = time.monotonic() - began
        after = Cached(resident(hot), resident(cold), resident(control))
        return Report(
            without=without,
            beside=beside,
            backlog_bytes=_size(cold) + _size(hot),
            backlog_seconds=took,
            before=before,
            after=after,
            hot_bytes=_size(hot),
        )
    finally:
        kafka.kill()


def is_disturbed(report: Report) -> bool:
    """Whether the machine takes pages out of the cache of its own accord, as some virtual machines do: then nothing follows from a loss."""
    return report.after.control < report.before.control or report.before.hot < report.hot_bytes


def problems_of(report: Report) -> list[str]:
    """A backlog that was read must not push out what readers are at, nor stay in the cache itself. Times are for people to judge."""
    problems = []
    if report.after.hot < 0.95 * report.before.hot:
        problems.append(f"the newest segments left the page cache: {report.before.hot} bytes before, {report.after.hot} after")
    if report.after.cold > report.before.cold + 0.05 * report.backlog_bytes:
        problems.append(f"the backlog stays in the page cache: {report.before.cold} bytes before, {report.after.cold} after")
    return problems


class _Reader:
    """What a job's source does, without Spark: plan, read and commit once a second."""

    def __init__(self, address: str) -> None:
        self._reader = EventStreamReader(parse_options({"agents": address, "consumer": "beside", "start_from": "earliest"}))
        self._end: dict[str, Any] = {}
        self._caught_up = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, name="reader")
        self._thread.start()

    def caught_up(self) -> bool:
        return self._caught_up

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._over.wait(1.0):
            following = self._reader.latestOffset(self._end, ReadAllAvailable())
            for task in self._reader.partitions(self._end, following):
                for _ in self._reader.read(task):
                    pass
            self._reader.commit(following)
            self._end = following
            self._caught_up = bool(following) and all(status.caught_up for status in self._statuses())

    def _statuses(self) -> list[Any]:
        from streaming.spark.client.agent_client import AgentClient

        return [AgentClient(address).status() for address in self._reader._options.addresses()]


@contextmanager
def _agent(kafka: Kafka, directory: Path) -> Iterator[_Reader]:
    """An agent beside the broker that has a job."""
    (port,) = free_ports(1)
    dirs = ",".join(map(str, kafka.log_dirs))
    arguments = ("--log-dirs", dirs, "--listen", f"127.0.0.1:{port}", "--name", "beside")
    with service("agent", "agent", *arguments, directory=directory):
        reader = _Reader(f"http://127.0.0.1:{port}")
        try:
            yield reader
        finally:
            reader.close()


def _waits(kafka: Kafka, seconds: float) -> Waits:
    client = Producer({"bootstrap.servers": kafka.bootstrap, "acks": "all", "linger.ms": 0})
    value = random.Random(1).randbytes(_VALUE_BYTES)
    took: list[float] = []
    pause = threading.Event()
    began = time.monotonic()
    while (now := time.monotonic()) < began + seconds:
        client.produce(LATENCY, value, partition=len(took) % 4)
        assert client.flush(SECONDS) == 0
        took.append(1000 * (time.monotonic() - now))
        pause.wait(max(0.0, began + len(took) / SENDS_A_SECOND - time.monotonic()))
    percentiles = statistics.quantiles(took, n=100)
    return Waits(len(took), percentiles[49], percentiles[98], max(took))


def _make_backlog(kafka: Kafka, size: int) -> tuple[list[Path], list[Path]]:
    """Segments of a topic, written by the broker, none of them cached: those nobody has read for long, and the newest."""
    create_topic(kafka.bootstrap, BACKLOG, 1, config={"segment.bytes": str(64 << 20)})
    client = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 20, "batch.size": _PIECE, "queue.buffering.max.kbytes": 65536})
    value = random.Random(2).randbytes(100_000)
    for _ in range(size // len(value)):
        client.produce(BACKLOG, value, partition=0, on_delivery=_fail)
        while len(client) > 200:
            client.poll(0.1)
    assert client.flush(SECONDS) == 0
    os.sync()  # a dirty page cannot leave the cache
    segments = sorted(path for log_dir in kafka.log_dirs for path in log_dir.glob(f"{BACKLOG}-0/*.log"))
    cold, hot = segments[:-_HOT_SEGMENTS], segments[-_HOT_SEGMENTS:]
    for path in segments:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return cold, hot


def _make_control(path: Path, size: int) -> Path:
    """A file of this size that is in the page cache and that nobody reads."""
    path.write_bytes(random.Random(3).randbytes(size))
    os.sync()
    _keep_cached([path])
    return path


def _keep_cached(files: Sequence[Path]) -> None:
    """Read files as consumers do that follow a log: pages that were read twice are the last that a machine short of memory takes away."""
    for path in (*files, *files):
        with path.open("rb") as file:
            while file.read(_PIECE):
                pass


def _fail(error: object, _message: object) -> None:
    assert error is None, error


def _size(files: Sequence[Path]) -> int:
    return sum(path.stat().st_size for path in files)
