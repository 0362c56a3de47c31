"""How long an append takes to be seen in /metrics: from the write to the first page that holds the log end offset behind it.

Ten appends a second go to twenty partitions while pages are fetched one after the other. What it takes to notice, up to the time of one
page, is part of the figures.

Left out: a broker's own delay before it writes, and a scraper's interval.
"""

import re
import statistics
import tempfile
import time
from collections import deque
from pathlib import Path

from tests.bench.bounds import Bounds
from tests.bench.partitions import Partitions
from tests.bench.running import RunningJob
from tests.bench.table import show

TRIGGERS = ("1s", "0s")
PARTITIONS = 20
APPENDS_A_SECOND = 10
_PAUSE_SECONDS = 0.01
_END_OFFSET = re.compile(rb'^segtail_partition_log_end_offset\{broker="1",topic="bench\.0",partition="(\d+)"\} (\d+)$', re.MULTILINE)


def run(bounds: Bounds) -> None:
    """Print one table."""
    rows = [_measure(trigger, bounds.seconds) for trigger in TRIGGERS]
    heads = ("", "appends", "p50 s", "p99 s", "longest s", "micro-batches", "% of a core")
    show(f"append to /metrics, {APPENDS_A_SECOND} appends a second, {bounds.seconds:.0f} s after as many of warm-up", heads, rows)


def _measure(trigger: str, seconds: float) -> tuple[str, ...]:
    seen: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch,
        Partitions(Path(scratch, "log"), PARTITIONS, 1024) as logs,
        logs.alive(),
        RunningJob(logs.path, Path(scratch, "checkpoint"), "--trigger", trigger) as job,
    ):
        _appends_seen(job, logs, seconds)
        cost = job.cost(seconds, lambda until: seen.extend(_appends_seen(job, logs, until - time.monotonic())))
    percentiles = statistics.quantiles(seen, n=100)
    latencies = (f"{took:.2f}" for took in (percentiles[49], percentiles[98], max(seen)))
    return f"trigger {trigger}", str(len(seen)), *latencies, str(cost.batches), f"{100 * cost.cores:.0f}"


def _appends_seen(job: RunningJob, logs: Partitions, seconds: float) -> list[float]:
    """Append for so long, and wait for the last ones: the seconds that each took to be seen."""
    waiting: list[deque[tuple[int, float]]] = [deque() for _ in range(len(logs))]
    took: list[float] = []
    began, done = time.monotonic(), 0
    while done < int(seconds * APPENDS_A_SECOND) or any(waiting):
        due = min(int((time.monotonic() - began) * APPENDS_A_SECOND), int(seconds * APPENDS_A_SECOND))
        for number in range(done, due):
            item = number % len(logs)
            waiting[item].append((logs.append(item), time.monotonic()))
        done = due
        page = job.scrape()
        now = time.monotonic()
        for partition, offset in _END_OFFSET.findall(page):
            queue = waiting[int(partition)]
            while queue and queue[0][0] <= int(offset):
                took.append(now - queue.popleft()[1])
        time.sleep(_PAUSE_SECONDS)
    return took
