"""What the agent of a job costs on a broker with many partitions, of which few are appended to."""

import tempfile
import time
from pathlib import Path

from tests.bench.bounds import Bounds
from tests.bench.partitions import Partitions
from tests.bench.processes import PARTS
from tests.bench.running import RunningJob, nothing
from tests.bench.table import show

ACTIVE = 20


def run(bounds: Bounds) -> None:
    """Print one table."""
    with (
        tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch,
        Partitions(Path(scratch, "log"), bounds.mostly_idle, 1024) as logs,
        RunningJob(logs.path, Path(scratch, "checkpoint"), "--trigger", "1s") as job,
    ):
        nothing(time.monotonic() + bounds.seconds)
        quiet = job.cost(bounds.seconds, nothing)
        _append(logs, time.monotonic() + bounds.seconds)
        busy = job.cost(bounds.seconds, lambda until: _append(logs, until))
    title = (
        f"the job on {bounds.mostly_idle:,} partitions: all idle, then an append a second to each of {ACTIVE}; % of one core, resident MB"
    )
    rows = [
        (
            part,
            *(f"{100 * each.cpu_seconds[part] / each.seconds:.1f}" for each in (quiet, busy)),
            f"{busy.resident_bytes[part] / 1e6:.0f}",
        )
        for part in PARTS
    ]
    show(title, ("", "idle %", "appends %", "MB"), rows)


def _append(logs: Partitions, until: float) -> None:
    while time.monotonic() < until:
        for item in range(ACTIVE):
            logs.append(item)
        time.sleep(1.0)
