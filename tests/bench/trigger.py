"""What the running job costs, idle and while every one of its partitions is appended to: CPU of all its processes, from /proc.

Each partition has an idempotent producer of its own, and the broker's checkpoints are written at their time (`tests.bench.partitions`).
They are a JVM's first minutes, in which a micro-batch costs more than later.

Left out: transactions, segments that roll, consumer groups, more than one broker, scrapers, and a job that has run for hours.
"""

import tempfile
import time
from pathlib import Path

from tests.bench.bounds import Bounds
from tests.bench.partitions import Partitions
from tests.bench.processes import PARTS
from tests.bench.running import Cost, RunningJob, nothing
from tests.bench.table import show

BATCH_BYTES = 16_384
ROUNDS_A_SECOND = 2


def run(bounds: Bounds) -> None:
    """Print one table."""
    with (
        tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch,
        Partitions(Path(scratch, "log"), bounds.active, BATCH_BYTES) as logs,
        logs.alive(),
        RunningJob(logs.path, Path(scratch, "checkpoint"), "--trigger", "1s") as job,
    ):
        nothing(time.monotonic() + bounds.seconds)
        idle = job.cost(bounds.seconds, nothing)
        load = _Load(logs)
        load.append(time.monotonic() + bounds.seconds)
        load.written = 0
        active = job.cost(bounds.seconds, load.append)
    _show(bounds, idle, active, load.written)


class _Load:
    """Appends to all partitions in turn, ``ROUNDS_A_SECOND`` times a second."""

    def __init__(self, logs: Partitions) -> None:
        self._logs = logs
        self.written = 0

    def append(self, until: float) -> None:
        """Go on until the moment ``until``; what is late is made up for."""
        began, done = time.monotonic(), 0
        while (now := time.monotonic()) < until:
            due = int((now - began) * ROUNDS_A_SECOND * len(self._logs))
            for number in range(done, due):
                self._logs.append(number % len(self._logs))
            self.written += (due - done) * self._logs.batch_bytes
            done = due
            time.sleep(0.01)


def _show(bounds: Bounds, idle: Cost, active: Cost, written: int) -> None:
    megabytes = written / active.seconds / 1e6
    title = (
        f"the job on {bounds.active:,} partitions, trigger 1 s: {active.seconds:.0f} s idle, then {active.seconds:.0f} s with "
        f"{ROUNDS_A_SECOND * bounds.active:,} batches of 16 KB ({megabytes:.0f} MB) a second; % of one core"
    )
    rows = [
        *((part, *(f"{100 * each.cpu_seconds[part] / each.seconds:.1f}" for each in (idle, active))) for part in PARTS),
        ("all", *(f"{100 * each.cores:.1f}" for each in (idle, active))),
        ("micro-batches", str(idle.batches), str(active.batches)),
        ("mean seconds of one", *(_mean(each.batch_seconds, each.batches) for each in (idle, active))),
        ("CPU seconds of one, above idle", "", _mean((active.cores - idle.cores) * active.seconds, active.batches)),
        ("CPU seconds a GB of log", "", f"{sum(active.cpu_seconds.values()) / (written / 1e9):.2f}"),
    ]
    show(title, ("", "idle", "active"), rows)


def _mean(total: float, count: int) -> str:
    return f"{total / count:.2f}" if count else ""
