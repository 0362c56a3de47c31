"""The start of a job: CPU of its parts, and time, until the page has the numbers of the first micro-batch.

With an archive of the classes that Spark's JVM loads (`segtail warm-up`) and without one, in turn.

Left out: agents on other hosts, a checkpoint that a job goes on with, a cold page cache, and what a browser or Prometheus adds.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measuring import Bounds, show
from bench.pace import BATCH_BYTES, LOADS
from bench.partitions import Partitions
from bench.processes import PARTS
from bench.running import RunningJob

PAIRS = 5
PARTITIONS, _, _ = LOADS[0]


def run(_: Bounds) -> None:
    """Print one table."""
    with tempfile.TemporaryDirectory(prefix="segtail-bench-") as directory:
        scratch = Path(directory)
        warm, cold = scratch / "warm", scratch / "cold"
        began = time.monotonic()
        subprocess.run([sys.executable, "-m", "streaming.terminal.cli", "warm-up", "--class-archives", warm], check=True)
        made = time.monotonic() - began
        starts: dict[Path, list[dict[str, float]]] = {cold: [], warm: []}
        with Partitions(scratch / "log", PARTITIONS, BATCH_BYTES) as logs:
            for number in range(PAIRS):
                for archives, found in starts.items():
                    found.append(_start(logs.path, scratch / f"{archives.name}-{number}", archives))
    rows = [_row(name, starts[cold], starts[warm]) for name in starts[cold][0]]
    title = f"a start until the first page with numbers, {PAIRS} pairs, load {os.getloadavg()[0]:.0f}; the archive took {made:.0f} s"
    show(title, ("", "without", "with an archive", "ratio", "of pairs"), rows)


def _start(log_dir: Path, checkpoint: Path, archives: Path) -> dict[str, float]:
    """CPU seconds by part, seconds, and MB when the page has its first numbers."""
    began = time.monotonic()
    with RunningJob(log_dir, checkpoint, "--from", "earliest", "--set", f"class_archives={archives}") as job:
        seconds, usage = time.monotonic() - began, job.usage()
    cpu = {f"CPU s: {part}": usage.cpu_seconds[part] for part in PARTS}
    return {**cpu, "CPU s: all": sum(cpu.values()), "s": seconds, "MB": sum(usage.resident_bytes.values()) / 1e6}


def _row(name: str, without: Sequence[dict[str, float]], having: Sequence[dict[str, float]]) -> tuple[str, ...]:
    before, after = ([each[name] for each in starts] for starts in (without, having))
    ratios = [new / old for old, new in zip(before, after, strict=True)]
    middle = statistics.median(before), statistics.median(after)
    return name, *(f"{each:.1f}" for each in middle), f"{middle[1] / middle[0]:.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"
