"""What the commands on log dirs hold in memory at most: on very many segments, and on very many committed offsets.

The peak of the largest process, from start to end. Between a command and a broker that share a limit, as in a broker's pod, this is what
has to be free there.

Left out: what the page cache holds for a command, and CPU.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measuring import Bounds, show
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.coordinators import offset_commit_record
from tests.builders import NOW, batch, log_dir, partition

SEGMENTS = 20
COMMITS, LOGS, GROUPS = 100_000, 50, 1_000
_TOPICS, _A_BATCH = 10, 500
_HOUR = 3_600_000
_COMMANDS = ("why", "groups", "transactions", "retention", "count", "top", "doctor", "disk")


def run(bounds: Bounds) -> None:
    """One table: a row for each command."""
    with tempfile.TemporaryDirectory(prefix="segtail-bench-") as directory:
        small, committed = Path(directory, "small"), Path(directory, "committed")
        small.mkdir()
        committed.mkdir()
        worlds = (_one_log(small), _many_logs(Path(directory), bounds.mostly_idle), _commits(committed))
        rows = [(f"segtail {name}", *(_peak(name, world) for world in worlds)) for name in _COMMANDS]
        heads = ("", "one log", f"{bounds.mostly_idle:,} x {SEGMENTS} segments", f"{COMMITS:,} commits of {GROUPS:,} groups")
        show("MB at most, of the largest process", heads, rows)


def _peak(name: str, path: Path) -> str:
    given = {"disk": (str(path),), "top": ("--once", "--log-dirs", str(path))}.get(name, ("--log-dirs", str(path)))
    moment = () if name in ("count", "doctor") else ("--at", str(NOW))
    words = (sys.executable, "-m", "streaming.terminal.cli", name, *given, *moment)
    done = subprocess.run([sys.executable, "-S", "-c", _MEASURED, *words], check=True, stdout=subprocess.PIPE)
    return f"{int(done.stdout) * 1024 / 1e6:.0f}"


def _one_log(directory: Path) -> Path:
    made = log_dir(directory)
    log = partition(made, "orders", 0)
    log.append(batch(5, timestamp=NOW))
    log.close()
    made.release()
    return made.path


def _commits(directory: Path) -> Path:
    """As many commits as are kept, each of a group, a topic and a partition of its own."""
    made = log_dir(directory)
    for number in range(LOGS):
        log = partition(made, OFFSETS_TOPIC, number)
        for begin in range(0, COMMITS // LOGS, _A_BATCH):
            log.append(Batch(records=tuple(_commit(number, each) for each in range(begin, begin + _A_BATCH))))
        log.close()
    made.release()
    return made.path


def _commit(log: int, number: int) -> Record:
    group, topic = number // (COMMITS // LOGS // (GROUPS // LOGS)), number % _TOPICS
    return offset_commit_record(f"consumer-group-{log}-{group}", f"some-topic-name-{topic}", number, number, NOW)


_MEASURED = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
if os.waitstatus_to_exitcode(status) not in (0, 3, 4):
    sys.exit(f"{sys.argv[1:]} ended with status {os.waitstatus_to_exitcode(status)}")
print(used.ru_maxrss)
"""
"""A small process starts the command: the peak that is reported for a process is never below that of the one that started it.
0, 3 and 4 are the status of a command that did what it was asked."""


def _many_logs(directory: Path, count: int) -> Path:
    """A log dir whose logs have the same content, in files of their own."""
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
    return made.path
