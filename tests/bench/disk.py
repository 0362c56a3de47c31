"""``segtail disk`` on very many files: the walk over all names and sizes, and the whole command with its forecast."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from streaming.disk.dir_usage import read_usage
from tests.bench.bounds import Bounds
from tests.bench.table import show
from tests.builders import NOW, batch, log_dir, partition

SEGMENTS = 20
ROUNDS = 5
_HOUR = 3_600_000


def run(bounds: Bounds) -> None:
    """Wall and CPU seconds, the best of a few rounds, and the largest memory; the names and inodes are in the page cache."""
    with tempfile.TemporaryDirectory(prefix="segtail-bench-") as directory:
        path, files = _logs(Path(directory), bounds.mostly_idle)
        walk = min(_walked(path) for _ in range(ROUNDS))
        du = min(_command("du", "-s", str(path)) for _ in range(ROUNDS))
        whole = min(_command(sys.executable, "-m", "streaming.cli", "disk", str(path), "--at", str(NOW)) for _ in range(ROUNDS))
        rows = [
            (name, f"{wall:.1f}", f"{cpu:.1f}", f"{peak >> 10}" if peak else "")
            for name, (wall, cpu, peak) in (("sizes of all files", walk), ("the command, with its forecast", whole), ("du -s", du))
        ]
        title = f"{bounds.mostly_idle:,} partitions of {SEGMENTS} segments, {files:,} files"
        show(title, ("", "seconds", "CPU seconds", "MB"), rows)


def _walked(path: Path) -> tuple[float, float, int]:
    wall, cpu = time.perf_counter(), time.process_time()
    read_usage(path)
    return time.perf_counter() - wall, time.process_time() - cpu, 0


def _command(*words: str) -> tuple[float, float, int]:
    """Wall and CPU seconds and KiB of memory of a process."""
    begun = time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss


def _logs(directory: Path, count: int) -> tuple[Path, int]:
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
