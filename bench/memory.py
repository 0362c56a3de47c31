"""What each process of a running job holds in memory, once the first minutes are over: 12 partitions, a scraper every 15 s.

Proportional (PSS): of a page that several processes share each has its part.

Left out: closed segments, whose ladders take memory, consumer groups, transactions, and what hours add.
"""

import tempfile
import time
from pathlib import Path

from bench.measuring import Bounds, show
from bench.pace import BATCH_BYTES, LOADS, Scraper
from bench.partitions import Partitions
from bench.running import RunningJob

PARTITIONS, APPENDS, _ = LOADS[0]
SCRAPES = 12
"""Three minutes: Spark ends workers that were idle for one, and the daemons of those that make a query end after that."""


def run(_: Bounds) -> None:
    """Print one table."""
    with (
        tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch,
        Partitions(Path(scratch, "log"), PARTITIONS, BATCH_BYTES) as logs,
        logs.alive(),
        RunningJob(logs.path, Path(scratch, "checkpoint"), "--trigger", "auto") as job,
    ):
        young = sum(each.proportional_bytes for each in job.processes())
        began = time.monotonic()
        Scraper(job, logs, APPENDS).go_on(SCRAPES)
        processes = sorted(job.processes(), key=lambda each: -each.proportional_bytes)
        minutes = (time.monotonic() - began) / 60
    rows = [(each.name, f"{each.proportional_bytes / 1e6:.0f}") for each in processes]
    whole = sum(each.proportional_bytes for each in processes)
    rows += [("all", f"{whole / 1e6:.0f}"), ("all, when the job got ready", f"{young / 1e6:.0f}")]
    show(f"memory of a job on {PARTITIONS} partitions after {minutes:.0f} minutes", ("process", "PSS MB"), rows)
