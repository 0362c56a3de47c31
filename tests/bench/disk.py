"""``segtail disk`` on very many files: the walk over all names and sizes, and the whole command with its forecast.

Left out: a cold cache of names and inodes, network disks, more than one log dir.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from streaming.broker.disk.dir_usage import DirUsage, read_usage
from streaming.broker.disk.two_readers import read_log_dir
from tests.bench.bounds import Bounds
from tests.bench.table import show
from tests.builders import NOW, batch, log_dir, partition

SEGMENTS = 20
ROUNDS = 5
_HOUR = 3_600_000


def run(bounds: Bounds) -> None:
    """Wall and CPU seconds, the best of a few rounds, and the largest memory; the names and inodes are in the page cache."""
    with tempfile.TemporaryDirectory(prefix="segtail-bench-") as directory:
        path, files = many_logs(Path(directory), bounds.mostly_idle)
        du = min(command("du", "-s", str(path)) for _ in range(ROUNDS))
        whole = min(command(sys.executable, "-m", "streaming.terminal.cli", "disk", str(path), "--at", str(NOW)) for _ in range(ROUNDS))
        walk = min(_walked(path, read_usage) for _ in range(ROUNDS))
        both = min(_walked(path, read_log_dir) for _ in range(ROUNDS))
        rows = [
            (name, f"{wall:.1f}", f"{cpu:.1f}", f"{peak >> 10}" if peak else "")
            for name, (wall, cpu, peak) in (
                ("sizes of all files, by one process", walk),
                ("by two, as the command does", both),
                ("the command, with its forecast", whole),
                ("du -s", du),
            )
        ]
        title = f"{bounds.mostly_idle:,} partitions of {SEGMENTS} segments, {files:,} files"
        show(title, ("", "seconds", "CPU seconds", "MB"), rows)


def _walked(path: Path, read: Callable[[Path], DirUsage]) -> tuple[float, float, int]:
    wall, cpu = time.perf_counter(), _cpu()
    read(path)
    return time.perf_counter() - wall, _cpu() - cpu, 0


def _cpu() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    times = os.times()
    return sum(times[:4])


_MEASURED = """
import json, os, subprocess, sys, time
begun = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
if os.waitstatus_to_exitcode(status) not in (0, 3, 4):
    sys.exit(f"{sys.argv[1:]} ended with status {os.waitstatus_to_exitcode(status)}")
print(json.dumps([time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""
"""A small process starts the command: the peak that is reported for a process is never below that of the one that started it.
0, 3 and 4 are the status of a command that did what it was asked."""


def command(*words: str) -> tuple[float, float, int]:
    """Wall and CPU seconds and KiB of memory of a process."""
    done = subprocess.run([sys.executable, "-S", "-c", _MEASURED, *words], check=True, stdout=subprocess.PIPE)
    wall, cpu, peak = json.loads(done.stdout)
    return wall, cpu, peak


def many_logs(directory: Path, count: int) -> tuple[Path, int]:
    """A log dir whose logs have the same content, in files of their own; and the number of files."""
    made = log_dir(directory)
    first = partition(made, "topic-0", 0)
    for hour in range(SEGMENTS, 0, -1):
        first.append(batch(5, timestamp=NOW - hour * _HOUR))
        first.roll()
    first.append(batch(5, timestamp=NOW))
    first.close()
    files = [(file.name, file.read_bytes().rstrip(b"\0"), file.stat().st_size) for file in first.directory.iterdir() if file.is_file()]
    for number in range(1, count):
        copy = made.path / f"topic-{number // SEGMENTS}-{number}"
        copy.mkdir()
        for name, content, size in files:
            (copy / name).write_bytes(content)
            if size > len(content):  # the indexes of an active segment are preallocated, and nearly all of them is a hole
                os.truncate(copy / name, size)
    made.release()
    return made.path, count * len(files)
