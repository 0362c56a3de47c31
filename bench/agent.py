"""What the agent of a job costs on a broker with many partitions, of which few are appended to.

Each partition has an idempotent producer of its own, and the broker's checkpoints are written at their time (`bench.partitions`).

Left out: segments that roll, closed segments, which take memory for their ladders, transactions and consumer groups.
"""

import tempfile
import time
from pathlib import Path

from bench.measuring import Bounds, show
from bench.partitions import Partitions
from bench.processes import PARTS
from bench.running import RunningJob, nothing

ACTIVE = 20


def run(bounds: Bounds) -> None:
    """Print one table."""
    with (
        tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch,
        Partitions(Path(scratch, "log"), bounds.mostly_idle, 1024) as logs,
        logs.alive(),
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
    whole = (f"{100 * each.cores:.1f}" for each in (quiet, busy))
    rows.append(("all", *whole, f"{sum(busy.resident_bytes.values()) / 1e6:.0f}"))
    show(title, ("", "idle %", "appends %", "MB"), rows)
    written = busy.written_bytes["jvm"], busy.written_bytes["agent"]
    print(f"  written a micro-batch, KB: checkpoint {written[0] / busy.batches / 1e3:.0f}, agent {written[1] / busy.batches / 1e3:.0f}\n")


def _append(logs: Partitions, until: float) -> None:
    while time.monotonic() < until:
        for item in range(ACTIVE):
            logs.append(item)
        time.sleep(1.0)
