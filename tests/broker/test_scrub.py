"""The scrub beside a real broker that rolls, deletes, compacts and truncates: nothing of that is damage, and a flipped bit is."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from streaming.broker.disk.segment_files import list_segments
from streaming.broker.scrub.passes import LogDirScrub
from streaming.broker.scrub.scrub_progress import ScrubProgress
from tests.broker.clients import create_topic, delete_topic, producer, send, transaction
from tests.broker.kafka import Kafka
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


def now_ms() -> int:
    return int(time.time() * 1000)


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
