"""What a restart costs, held against what a broker reads after SIGKILL and after a clean stop, and what is left while it starts."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streaming.broker.protocol.status_messages import LogDirStatus
from streaming.kafka.formats.names import METADATA_TOPIC
from tests.broker.clients import create_topic, producer, send
from tests.broker.install import BROKER_VERSION, OLDER_VERSION
from tests.broker.kafka import Kafka
from tests.broker.recovered import LOGGERS, recovered
from tests.broker.restart_look import RestartLook

_SEGMENT_BYTES = 4 << 20


@contextmanager
def starting(kafka: Kafka) -> Iterator[threading.Event]:
    """A start beside the test. Its thread stays as long as the block: the broker ends with it."""
    served, over = threading.Event(), threading.Event()

    def start() -> None:
        kafka.start()
        served.set()
        over.wait()

    thread = threading.Thread(target=start)
    thread.start()
    try:
        yield served
    finally:
        kafka.kill()
        over.set()
        thread.join()


def segment_sizes(kafka: Kafka) -> dict[tuple[str, int], tuple[Path, int]]:
    """The log dir and the size of each segment, by partition and base offset."""
    files = (file for log_dir in kafka.log_dirs for file in log_dir.glob("*/*.log"))
    return {(file.parent.name, int(file.stem)): (file.parent.parent, file.stat().st_size) for file in files}


def read_by_kafka(kafka: Kafka, begin: int, sizes: dict[tuple[str, int], tuple[Path, int]]) -> Counter[Path]:
    """Bytes of the segments of each log dir that the broker has recovered, by its own log from a position on."""
    found = Counter[Path]()
    for partition, base_offset in recovered(kafka.brokers[0].log.read_bytes()[begin:].decode().splitlines()):
        if not partition.startswith(METADATA_TOPIC):
            log_dir, size = sizes[partition, base_offset]
            found[log_dir] += size
    return found


@pytest.mark.parametrize(("version", "threads"), [(BROKER_VERSION, 2), pytest.param(OLDER_VERSION, 1, marks=pytest.mark.long)])
def test_what_a_start_reads_is_foretold_and_what_is_left_of_it_falls(kafka_jars: None, tmp_path: Path, version: str, threads: int) -> None:
    settings = {"num.recovery.threads.per.data.dir": threads, "log.segment.bytes": _SEGMENT_BYTES}
    kafka = Kafka(tmp_path, settings=settings, version=version, loggers=LOGGERS)
    look = None
    try:
        kafka.start()
        create_topic(kafka.bootstrap, "orders", 4)
        client = producer(kafka.bootstrap, idempotent=True)
        for partition in range(4):
            send(client, "orders", partition, 25, 100, value_bytes=9_000)
        look = RestartLook(kafka.log_dirs)
        look.look()
        kafka.kill()
        killed = look.look()
        sizes, begin = segment_sizes(kafka), kafka.brokers[0].log.stat().st_size
        assert all(each.recovering_bytes < 0 and each.recovery_threads == threads for each in killed.values())
        assert sum(each.recovery_bytes for each in killed.values()) > 10 * _SEGMENT_BYTES
        assert all(0 < each.not_fsynced_bytes <= each.recovery_bytes for each in killed.values())

        lefts: dict[Path, list[int]] = {path: [] for path in killed}
        with starting(kafka) as served:
            while not served.is_set():
                for path, each in look.look().items():
                    lefts[path] += [each.recovering_bytes] if each.recovering_bytes >= 0 else []
            foretold = {path: each.recovery_bytes for path, each in killed.items() if each.recovery_bytes}
            assert read_by_kafka(kafka, begin, sizes) == foretold
            for path, left in lefts.items():
                assert left == sorted(left, reverse=True)
                assert all(0 <= each <= killed[path].recovery_bytes for each in left)
            kafka.until(lambda: all(each.recovering_bytes < 0 for each in look.look().values()), "nothing is recovered")

            kafka.stop()
            stopped = settled(kafka, look)
            assert {(each.recovery_logs, each.recovery_bytes, each.not_fsynced_bytes) for each in stopped.values()} == {(0, 0, 0)}
        begin = kafka.brokers[0].log.stat().st_size
        with starting(kafka) as served:
            while not served.is_set():
                assert all(each.recovering_bytes < 0 for each in look.look().values())
            assert not read_by_kafka(kafka, begin, sizes)
    finally:
        kafka.kill()
        if look is not None:
            look.close()


def settled(kafka: Kafka, look: RestartLook) -> dict[Path, LogDirStatus]:
    """What is known once the checkpoints of a broker that has stopped are read, which they are once a second."""
    found: dict[Path, LogDirStatus] = {}

    def nothing_above() -> bool:
        found.update(look.look())
        return not any(each.not_fsynced_bytes for each in found.values())

    kafka.until(nothing_above, "recovery points are at the ends")
    return found
