"""Ours beside what somebody would write in an hour on Spark's Kafka source (`bench.naive_job`), on one live broker.

Each job runs at the slowest pace that lets a scraper that comes every 15 s see what is no older than 2 s: ours at its own, the other one at
a trigger of 1.5 s, besides which its micro-batch takes a part of a second. What the broker spends on a consumer counts for the job that is
one.

Clients are idempotent, and transactional in the last load.

Left out: more than one broker, TLS; the broker's disk.
"""

import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measuring import Bounds, show
from bench.processes import cpu_seconds
from bench.running import RunningJob
from bench.traffic import Load, Traffic
from tests.broker.clients import create_topic
from tests.broker.kafka import Kafka

PERIOD_SECONDS = 15
UNTIL_LEARNED = 6
NAIVE_TRIGGER = 1.5
SCRAPES = 10
LOADS = (
    Load("12 partitions, 5 MB/s of lz4", 12, 320, 16, "lz4"),
    Load("1,000 partitions, 5 MB/s of lz4", 1000, 320, 16, "lz4"),
    Load("12 partitions, 4,000 batches of one record a second", 12, 4000, 1, "none"),
    Load("12 partitions, 5 MB/s of lz4 in transactions of a second", 12, 320, 16, "lz4", transactional=True),
)
_ENDS = re.compile(
    r'^(?:segtail_partition_log_end_offset|naive_end_offset)\{(?=[^}]*topic="bench\.0").*?partition="(\d+)".*?\} (\S+)$', re.MULTILINE
)


class _NaiveJob(RunningJob):
    def __init__(self, bootstrap: str, checkpoint: Path) -> None:
        super().__init__(checkpoint, checkpoint)
        self._command = [sys.executable, "-m", "bench.naive_job", bootstrap, str(checkpoint), "--trigger", str(NAIVE_TRIGGER)]


def run(_: Bounds) -> None:
    """Print a table a load."""
    for load in LOADS:
        with _broker() as (kafka, scratch):
            create_topic(kafka.bootstrap, "bench.0", load.partitions)
            traffic = Traffic(kafka.bootstrap, "bench.0", load)
            try:
                rows = _compare(kafka, scratch, traffic)
            finally:
                traffic.close()
            if traffic.failures:
                raise RuntimeError(f"the broker did not take {len(traffic.failures)} records: {traffic.failures[0]}")
        title = f"{load.name}: {SCRAPES} scrapes, one every {PERIOD_SECONDS} s; % of a core, ages at a scrape"
        show(title, ("", "job", "broker", "together", "p50 s", "oldest s"), rows)


@contextmanager
def _broker() -> Iterator[tuple[Kafka, Path]]:
    with tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch:
        kafka = Kafka(Path(scratch, "kafka"), settings={"log.retention.bytes": 1 << 30})
        try:
            kafka.start()
            yield kafka, Path(scratch)
        finally:
            kafka.kill()


def _compare(kafka: Kafka, scratch: Path, traffic: Traffic) -> list[tuple[str, ...]]:
    time.sleep(PERIOD_SECONDS)
    began, spent = time.monotonic(), cpu_seconds(kafka.pids)
    time.sleep(2 * PERIOD_SECONDS)
    alone = (cpu_seconds(kafka.pids) - spent) / (time.monotonic() - began)
    jobs = {
        "segtail, trigger auto": RunningJob(("--log-dirs", ",".join(map(str, kafka.log_dirs))), scratch / "ours"),
        f"Kafka source, trigger {NAIVE_TRIGGER} s": _NaiveJob(kafka.bootstrap, scratch / "naive"),
    }
    rows = []
    for name, job in jobs.items():
        with job:
            _scrape(job, traffic, UNTIL_LEARNED)
            began, spent, of_job = time.monotonic(), cpu_seconds(kafka.pids), sum(job.usage().cpu_seconds.values())
            ages = _scrape(job, traffic, SCRAPES)
            seconds = time.monotonic() - began
            job_share = (sum(job.usage().cpu_seconds.values()) - of_job) / seconds
            broker_share = (cpu_seconds(kafka.pids) - spent) / seconds - alone
        shares = (f"{100 * each:.1f}" for each in (job_share, broker_share, job_share + broker_share))
        rows.append((name, *shares, f"{statistics.median(ages):.2f}", f"{max(ages):.2f}"))
    return [*rows, ("the broker with nobody reading", "", f"{100 * alone:.1f}", "", "", "")]


def _scrape(job: RunningJob, traffic: Traffic, times: int) -> list[float]:
    """Take so many pages; of each how old the newest is that it does not show."""
    ages, due = [], time.monotonic()
    for _ in range(times):
        due += PERIOD_SECONDS
        time.sleep(max(0.0, due - time.monotonic()))
        asked, page = time.monotonic(), job.scrape().decode()
        ages.append(traffic.age({int(partition): int(float(end)) for partition, end in _ENDS.findall(page)}, asked))
    return ages
