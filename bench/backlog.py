"""What it costs to read what lies in a broker: ours from its disk, the other one (`bench.naive_job`) through the broker.

Both read logs of several sizes from their beginning to their end, in a run of their own each. A figure is the slope over the sizes: what
starts and ends with a job is the same for all, so that it drops out. A live broker has written the smallest size as one topic; for the
others it is stopped, and gets more topics whose segments are links to the same files. What it spends while a job reads counts for the
job.

The sizes of ``--gigabytes`` are multiples of the first. The default takes some minutes; ``--gigabytes 2,10,20`` takes half an hour.

Left out: a cold disk, as links share the page cache, on both sides; transactions, more than one broker, what the broker spends on
writing; ladders, which an agent fills in the background afterwards.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.measuring import Bounds, show
from bench.processes import Meter, cpu_seconds
from bench.traffic import RECORD_BYTES, Load, values
from tests.broker.clients import create_topic, producer
from tests.broker.kafka import Kafka

LOADS = (Load("lz4, batches of 16 KB", 12, 0, 16, "lz4"), Load("one record of 1 KB a batch", 12, 0, 1, "none"))
SHARES = {16: 1.0, 1: 0.5}
"""How much of the sizes is read, by the records of a batch."""

_POLL_SECONDS = 0.1
_COPIED = ("*.index", "*.timeindex", "*.snapshot", "leader-epoch-checkpoint")
_RECORDS = re.compile(r'^segtail_partition_appended_records_total\{[^}]*topic="bench\.\d+"[^}]*\} (\S+)$', re.MULTILINE)


def run(bounds: Bounds) -> None:
    """Print one table."""
    rows = []
    for load in LOADS:
        with tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch:
            kafka = Kafka(Path(scratch, "kafka"))
            try:
                kafka.start()
                rows += _compare(kafka, Path(scratch), load, bounds.gigabytes)
            finally:
                kafka.kill()
    sizes = ", ".join(f"{each:g}" for each in bounds.gigabytes)
    heads = ("", "job", "broker", "together", "Kafka source's / it", "CPU s of a whole run by GB of log")
    show(f"CPU seconds for each GB of log, the slope over {sizes} GB of values, half of them for batches of one record", heads, rows)


def _compare(kafka: Kafka, scratch: Path, load: Load, gigabytes: Sequence[float]) -> list[tuple[str, ...]]:
    topics = [round(each / gigabytes[0]) for each in gigabytes]
    for number in range(max(topics)):
        create_topic(kafka.bootstrap, f"bench.{number}", load.partitions)
    records = int(gigabytes[0] * SHARES[load.records] * 1e9) // RECORD_BYTES
    _fill(kafka, load, records)
    sizes, ours, theirs = list[float](), list[tuple[float, float]](), list[tuple[float, float]]()
    for count in topics:
        kafka.stop()
        for number in range(1, count):
            _link(kafka.log_dirs, number)
        kafka.start()
        sizes.append(sum(each.stat().st_size for log_dir in kafka.log_dirs for each in log_dir.glob("bench.*-*/*.log")) / 1e9)
        page = scratch / f"{count}.prom"
        ours.append(_spent(kafka, _segtail(kafka, scratch / f"ours-{count}"), scratch, page))
        found = sum(map(float, _RECORDS.findall(page.read_text())))
        if found != count * records:
            raise RuntimeError(f"{found:.0f} records of {count * records} were read")
        naive = [sys.executable, "-m", "bench.naive_job", kafka.bootstrap, str(scratch / f"naive-{count}"), "--once"]
        theirs.append(_spent(kafka, naive, scratch, scratch / "naive.out"))
    return _rows(load.name, sizes, ours, theirs)


def _rows(name: str, sizes: list[float], ours: list[tuple[float, float]], theirs: list[tuple[float, float]]) -> list[tuple[str, ...]]:
    rows = []
    for reader, spent in (("segtail", ours), ("Kafka source", theirs)):
        slopes = _slope(sizes, [job for job, _ in spent]), _slope(sizes, [broker for _, broker in spent])
        times = _slope(sizes, [sum(each) for each in theirs]) / sum(slopes)
        whole = ", ".join(f"{size:.1f}: {sum(each):.0f}" for size, each in zip(sizes, spent, strict=True))
        rows.append((f"{name}: {reader}", *(f"{each:.2f}" for each in (*slopes, sum(slopes))), f"{times:.1f}", whole))
    return rows


def _slope(sizes: list[float], spent: list[float]) -> float:
    """Of the straight line through all sizes."""
    return float(np.polyfit(sizes, spent, 1)[0])


def _segtail(kafka: Kafka, checkpoint: Path) -> list[str]:
    read = ["run", "--once", "--from", "earliest", "--log-dirs", ",".join(map(str, kafka.log_dirs))]
    return [sys.executable, "-m", "streaming.terminal.cli", *read, "--checkpoint", str(checkpoint)]


def _link(log_dirs: Sequence[Path], number: int) -> None:
    """Let a topic hold what ``bench.0`` holds: its segments are the same files, what the broker writes anew is copied."""
    for source in (each for log_dir in log_dirs for each in log_dir.glob("bench.0-*")):
        (target,) = (each for log_dir in log_dirs for each in log_dir.glob(f"bench.{number}-{source.name.rpartition('-')[2]}"))
        for old in (each for pattern in ("*.log", *_COPIED) for each in target.glob(pattern)):
            old.unlink()
        for segment in source.glob("*.log"):
            os.link(segment, target / segment.name)
        for copied in (each for pattern in _COPIED for each in source.glob(pattern)):
            shutil.copy2(copied, target / copied.name)


def _fill(kafka: Kafka, load: Load, records: int) -> None:
    settings = {"batch.num.messages": load.records, "linger.ms": 20, "compression.type": load.codec, "queue.buffering.max.kbytes": 1 << 16}
    client, some = producer(kafka.bootstrap, load.codec, idempotent=True, more=settings), values()
    for number in range(records):
        while True:
            try:
                client.produce("bench.0", some[number % len(some)], partition=number // load.records % load.partitions)
                break
            except BufferError:
                client.poll(_POLL_SECONDS)
    if client.flush(600):
        raise RuntimeError("the broker did not take everything")


def _spent(kafka: Kafka, command: Sequence[str], scratch: Path, printed: Path) -> tuple[float, float]:
    """CPU seconds of a job until its end, with all its processes, and of the broker meanwhile."""
    before, spent = cpu_seconds(kafka.pids), 0.0
    with (scratch / "messages").open("ab") as messages, printed.open("wb") as page:
        process = subprocess.Popen(command, stdout=page, stderr=messages)
    meter = Meter(process.pid)
    while process.poll() is None:
        spent = meter.check()
        time.sleep(_POLL_SECONDS)
    if process.returncode:
        raise RuntimeError(f"the job failed: {(scratch / 'messages').read_text(errors='replace')[-2000:]}")
    return spent, cpu_seconds(kafka.pids) - before
