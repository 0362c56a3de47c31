"""The scrub beside a real broker that rolls, deletes, compacts and truncates: nothing of that is damage, and a flipped bit is."""

import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, TopicPartition

from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.ladder.positions import count_log
from streaming.broker.scrub.scrub_progress import ScrubProgress
from streaming.broker.scrub.threads import LogDirScrub
from tests.broker.clients import CODECS, create_topic, delete_topic, producer, send, transaction
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import run_tool
from tests.broker.observed import now_ms
from tests.commands import run_command
from tests.limits import SECONDS
from tests.scrub.real import flip

_SMALL = {"internal.segment.bytes": "8000"}
TOPICS = {
    "scrubbed-compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0", **_SMALL},
    "scrubbed-deleted": {"retention.bytes": "30000", "file.delete.delay.ms": "0", **_SMALL},
    "scrubbed-preallocated": {"preallocate": "true", **_SMALL},
    "scrubbed-kept": _SMALL,
}
ROUNDS = 60


def pass_of(log_dir: Path, scrub: LogDirScrub) -> None:
    """One whole pass, without rests."""
    ended, buffer = scrub.progress.ended_ms, np.empty(1 << 20, np.uint8)
    while scrub.progress.ended_ms == ended:
        scrub.step(buffer)


def write(kafka: Kafka, done: threading.Event) -> None:
    """Plain and transactional batches of every codec into all topics, and a topic that comes and goes."""
    try:
        plain = [producer(kafka.bootstrap, codec) for codec in ("none", "lz4", "zstd")]
        in_transactions = producer(kafka.bootstrap, transactional_id="scrubbed")
        in_transactions.init_transactions(SECONDS)
        for number in range(ROUNDS):
            for topic in TOPICS:
                send(plain[number % 3], topic, 0, batches=1, records=20)
                with transaction(in_transactions, commit=number % 3 > 0):
                    send(in_transactions, topic, 0, batches=1, records=5)
            if number % 20 == 0:
                create_topic(kafka.bootstrap, f"scrubbed-gone-{number}", config=_SMALL)
                send(plain[0], f"scrubbed-gone-{number}", 0, batches=20, records=10)
                delete_topic(kafka.bootstrap, f"scrubbed-gone-{number}")
    finally:
        done.set()


def test_a_broker_at_work_damages_nothing_and_a_flipped_bit_is_found(kafka: Kafka) -> None:
    for topic, config in TOPICS.items():
        create_topic(kafka.bootstrap, topic, config=config)
    scrubs = {log_dir: LogDirScrub(log_dir, 1, now_ms, ScrubProgress()) for log_dir in kafka.log_dirs}
    done = threading.Event()
    passes = 0
    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write, kafka, done)
        while not done.is_set():
            for log_dir, scrub in scrubs.items():
                pass_of(log_dir, scrub)
            passes += 1
        writing.result()
    for log_dir, scrub in scrubs.items():
        pass_of(log_dir, scrub)
    assert [found for scrub in scrubs.values() for found in scrub.progress.segments] == []
    assert passes > 10
    assert sum(scrub.progress.checked for scrub in scrubs.values()) > 1_000_000

    (directory,) = (log_dir / "scrubbed-kept-0" for log_dir in kafka.log_dirs if (log_dir / "scrubbed-kept-0").exists())
    first = list_segments(directory)[0]
    flip(first.path, 8 * (first.size - 1))
    scrub = scrubs[directory.parent]
    pass_of(directory.parent, scrub)
    assert [(found.path, str(damage.fault)) for found in scrub.progress.segments for damage in found.damages] == [(first.path, "crc")]
    flip(first.path, 8 * (first.size - 1))
    pass_of(directory.parent, scrub)
    assert scrub.progress.segments == ()


def test_what_count_takes_for_damaged_is_what_kafkas_own_readers_refuse(kafka: Kafka, tmp_path: Path) -> None:
    """A bit flips in each batch of a compressed log, one at a time; and in the log that the broker itself serves."""
    create_topic(kafka.bootstrap, "rotten", config=_SMALL)
    for codec in CODECS:
        send(producer(kafka.bootstrap, codec), "rotten", 0, batches=4, records=30)
    (directory,) = (log_dir / "rotten-0" for log_dir in kafka.log_dirs if (log_dir / "rotten-0").exists())
    sound = count_log(list_segments(directory), 0, window())
    batches = [(segment.base_offset, *found) for segment in list_segments(directory) for found in _valid(run_dump(segment.path))]
    assert len(batches) == 4 * len(CODECS) > len(list_segments(directory)) > 2
    assert all(valid for *_, valid in batches)
    copies: dict[Path, tuple[Path, int]] = {}
    for number, (base, position, size, _) in enumerate(batches):
        copy = Path(shutil.copytree(directory, tmp_path / str(number) / directory.name))
        path = next(segment.path for segment in list_segments(copy) if segment.base_offset == base)
        byte = (17, 22, 58, 61, size - 1)[number % 5]  # the CRC itself, attributes, number of records, the records
        flip(path, 8 * (position + byte) + 3)
        copies[copy] = path, position
    printed = run_dump(*(path for path, _ in copies.values())).split("Dumping ")[1:]
    for (copy, (path, position)), reported in zip(copies.items(), printed, strict=True):
        assert reported.startswith(str(path))
        refused = [at for at, _, valid in _valid(reported) if not valid]
        counted = count_log(list_segments(copy), 0, window())
        assert refused == [position]
        assert counted.damage(0).startswith(f"{path}: bad ")
        assert counted.damage(0).endswith(f" at position {position}")
        assert counted.between(0, sound.end_offset) is None

    base, position, size, _ = batches[7]
    served = next(segment.path for segment in list_segments(directory) if segment.base_offset == base)
    flip(served, 8 * (position + size - 1))
    try:
        damage = count_log(list_segments(directory), 0, window()).damage(0)
        offset = int(damage.partition("offsets ")[2].partition(" to ")[0])
        given, error = consumed(kafka, "rotten")
    finally:
        flip(served, 8 * (position + size - 1))
    assert (given, damage.endswith(f" at position {position}")) == (offset, True)
    assert "CRC" in error
    assert run_command("count", "--log-dirs", ",".join(map(str, kafka.log_dirs)), "rotten").returncode == 0


def run_dump(*paths: Path) -> str:
    return run_tool("dump-log", "--files", ",".join(map(str, paths)))


def _valid(text: str) -> list[tuple[int, int, bool]]:
    """Position, size and validity of each batch that kafka-dump-log printed."""
    lines = re.findall(r"position: (\d+) .* size: (\d+) .* isvalid: (\w+)", text)
    return [(int(position), int(size), valid == "true") for position, size, valid in lines]


def consumed(kafka: Kafka, topic: str) -> tuple[int, str]:
    """How many records a consumer that checks CRCs gets from the first on, and the error that it ends with."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "rotten", "check.crcs": "true", "enable.partition.eof": "true"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        given = 0
        while True:
            message = consumer.poll(SECONDS)
            assert message is not None
            if (error := message.error()) is not None:
                return given, str(error)
            given += 1
    finally:
        consumer.close()
