"""What it costs to read what lies in a broker: ours from its disk, the other one (`tests.bench.naive_job`) through the broker.

Each runs once over everything and once more over nothing; the difference is the reading.

Left out: a cold page cache, transactions, more than one broker; what the broker spends on writing.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.processes import Meter, cpu_seconds
from tests.bench.table import show
from tests.bench.traffic import RECORD_BYTES, Load, values
from tests.broker.clients import create_topic, producer
from tests.broker.kafka import Kafka

LOADS = (Load("lz4, batches of 16 KB", 12, 0, 16, "lz4"), Load("one record of 1 KB a batch", 12, 0, 1, "none"))
BYTES = {16: 2_000_000_000, 1: 1_000_000_000}
_POLL_SECONDS = 0.1


def run() -> None:
    """Print one table."""
    rows = []
    for load in LOADS:
        with tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch:
            kafka = Kafka(Path(scratch, "kafka"))
            try:
                kafka.start()
                rows += _compare(kafka, Path(scratch), load)
            finally:
                kafka.kill()
    show("CPU seconds for each GB of log, start and end of the job left out", ("", "job", "broker", "together"), rows)


def _compare(kafka: Kafka, scratch: Path, load: Load) -> list[tuple[str, ...]]:
    create_topic(kafka.bootstrap, "bench.0", load.partitions)
    _fill(kafka, load)
    size = sum(each.stat().st_size for log_dir in kafka.log_dirs for each in log_dir.glob("bench.0-*/*.log")) / 1e9
    segtail = [
        sys.executable,
        "-m",
        "streaming.terminal.cli",
        "run",
        "--once",
        "--from",
        "earliest",
        "--log-dirs",
        ",".join(map(str, kafka.log_dirs)),
    ]
    naive = [sys.executable, "-m", "tests.bench.naive_job", kafka.bootstrap, str(scratch / "naive"), "--once"]
    jobs = {
        f"{load.name}: segtail": [*segtail, "--checkpoint", str(scratch / "ours"), "--textfile", str(scratch / "page.prom")],
        f"{load.name}: Kafka source": naive,
    }
    rows = []
    for name, command in jobs.items():
        (job, broker), (of_job, of_broker) = _spent(kafka, command, scratch), _spent(kafka, command, scratch)
        shares = (job - of_job) / size, max(0.0, broker - of_broker) / size
        rows.append((name, *(f"{each:.2f}" for each in (*shares, sum(shares)))))
    return rows


def _fill(kafka: Kafka, load: Load) -> None:
    settings = {"batch.num.messages": load.records, "linger.ms": 20, "compression.type": load.codec, "queue.buffering.max.kbytes": 1 << 16}
    client, some = producer(kafka.bootstrap, load.codec, more=settings), values()
    for number in range(BYTES[load.records] // RECORD_BYTES):
        while True:
            try:
                client.produce("bench.0", some[number % len(some)], partition=number // load.records % load.partitions)
                break
            except BufferError:
                client.poll(_POLL_SECONDS)
    if client.flush(120):
        raise RuntimeError("the broker did not take everything")


def _spent(kafka: Kafka, command: Sequence[str], scratch: Path) -> tuple[float, float]:
    """CPU seconds of a job until its end, with all its processes, and of the broker meanwhile."""
    before, spent = cpu_seconds(kafka.pids), 0.0
    with (scratch / "messages").open("ab") as messages:
        process = subprocess.Popen(command, stdout=messages, stderr=messages)
    meter = Meter(process.pid)
    while process.poll() is None:
        spent = meter.check()
        time.sleep(_POLL_SECONDS)
    if process.returncode:
        raise RuntimeError(f"the job failed: {(scratch / 'messages').read_text(errors='replace')[-2000:]}")
    return spent, cpu_seconds(kafka.pids) - before
