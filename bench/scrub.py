"""What the scrub costs: CPU for what it checks, from the disk and from the page cache, by the size of batches and of its windows.

Left out: what else happens on that disk meanwhile, and the agent's pace.
"""

import os
import statistics
import tempfile
from pathlib import Path
from time import perf_counter, thread_time

import numpy as np

from bench.measuring import Bounds, show
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.scrub.scrub_progress import ScrubProgress
from streaming.broker.scrub.threads import CPU_SHARE, WINDOW_BYTES, LogDirScrub
from tests.builders import NOW, batch, log_dir, partition

BYTES = 96 << 20
ROUNDS = 5
IDLE_LOGS = 2_000
KINDS = {"batches of 500 bytes": 430, "batches of 16 KiB": 16 << 10, "batches of 256 KiB": 256 << 10}


def run(_: Bounds) -> None:
    """Print a table of three kinds of logs, and what logs cost that have no closed segment."""
    rows = []
    for name, value_bytes in KINDS.items():
        with tempfile.TemporaryDirectory(prefix="segtail-bench-") as directory:
            path = _log_dir(Path(directory), value_bytes)
            for where, drop in (("page cache", False), ("disk", True)):
                rows.append((f"{name}, from the {where}", *_measured(path, drop=drop)))
    title = f"scrub of a segment of {BYTES >> 20} MiB, in windows of {WINDOW_BYTES >> 20} MiB; medians of {ROUNDS}"
    show(title, ("", "CPU ms for a MB", "MB/s at 1 % of a core", f"MB/s at its bound of {CPU_SHARE:.0%}"), rows)
    with tempfile.TemporaryDirectory(prefix="segtail-bench-") as directory:
        disk = log_dir(Path(directory))
        for number in range(IDLE_LOGS):
            partition(disk, "idle", number).append(batch())
        cpu, _, _ = _pass(disk.path)
        show(f"a pass over {IDLE_LOGS:,} logs without a closed segment", ("", "CPU s"), [("all of them", f"{cpu:.2f}")])


def _log_dir(directory: Path, value_bytes: int) -> Path:
    disk = log_dir(directory)
    log = partition(disk, "bench", segment_bytes=2 * BYTES)
    one = batch(1, value_bytes=value_bytes)
    count = BYTES // (value_bytes + 70)
    for begin in range(0, count, 64):
        log.append(*[one] * min(64, count - begin))
    log.roll()
    log.append(batch())
    return disk.path


def _measured(path: Path, *, drop: bool) -> tuple[str, str, str]:
    taken = []
    for _ in range(ROUNDS):
        if drop:
            _drop(path)
        cpu, _, checked = _pass(path)
        taken.append(cpu / checked)
    of_a_byte = statistics.median(taken)
    return f"{of_a_byte * 1e9:.2f}", f"{0.01 / of_a_byte / 1e6:.0f}", f"{CPU_SHARE / of_a_byte / 1e6:.0f}"


def _pass(path: Path) -> tuple[float, float, int]:
    """CPU seconds and seconds of one whole pass without rests, and the bytes that it checked."""
    scrub = LogDirScrub(path, 1, lambda: NOW, ScrubProgress())
    buffer = np.empty(WINDOW_BYTES, np.uint8)
    cpu, began = thread_time(), perf_counter()
    while scrub.progress.ended_ms < 0:
        scrub.step(buffer)
    cpu, seconds = thread_time() - cpu, perf_counter() - began
    assert not scrub.progress.segments
    return cpu, seconds, scrub.progress.checked


def _drop(path: Path) -> None:
    for segment in list_segments(path / "bench-0"):
        fd = os.open(segment.path, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
