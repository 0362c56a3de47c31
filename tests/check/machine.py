"""What a machine lacks: a plugin of pytest, whose line at the end says what was skipped and how to get it, and a command before it.

By ``python -m tests.check.machine`` no run begins without room, and a small machine runs fewer tests side by side.
"""

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

import pytest
from _pytest.terminal import TerminalReporter

ROOM_MIB = 2048
"""What a whole run writes into the folder for temporary files at one time, and half of that again."""

_SKIPPED = "Skipped: "


def too_little_room(wanted_mib: int) -> str:
    """What to do where temporary files have less room than this; "" where they have enough."""
    directory = next(filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP"))), "/tmp")
    make_room = f"the tests write up to {wanted_mib} MiB: make room, or set TMPDIR to a folder that has it"
    if not os.access(directory, os.W_OK | os.X_OK):
        return f"{directory} is no folder in which this user can write, and {make_room}"
    free = shutil.disk_usage(directory).free >> 20
    return "" if free >= wanted_mib else f"{directory} has {free} MiB free, and {make_room}"


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()) if isinstance(report.longrepr, tuple)]
    if reasons:
        terminalreporter.write_line(skipped(reasons))


def skipped(reasons: Iterable[str]) -> str:
    """One line for all tests that were skipped: how many for which reason, most first."""
    counted = Counter(reason.removeprefix(_SKIPPED) for reason in reasons)
    listed = "; ".join(f"{number} because {reason}" for reason, number in counted.most_common())
    return f"Skipped {counted.total()} tests: {listed}"


def processes(cores: int, memory_mib: int) -> int:
    """How many processes the tests get: one more than cores, for those with a JVM wait a lot. Each may need a GiB; four are enough."""
    return max(1, min(cores + 1, memory_mib // 1024, 4))


def _memory_mib() -> int:
    """What this machine has, or what a control group of this process may take of it."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20]
    groups = Path("/proc/self/cgroup")
    for path in limit_files(groups.read_text(encoding="utf-8")) if groups.exists() else ():
        with suppress(OSError, ValueError):  # no such version of control groups here, or no limit ("max")
            found.append(int(path.read_text(encoding="ascii")) >> 20)
    return min(found)


def limit_files(groups: str) -> Iterator[Path]:
    """Where the limits of memory of these groups are (``/proc/self/cgroup``), and of all that they are part of.

    In a container the group's own path may be that of its host, which is not there: its top is the container's.
    """
    for _, controllers, group in (line.split(":", 2) for line in groups.splitlines()):
        if controllers == "":
            top, name = Path("/sys/fs/cgroup"), "memory.max"
        elif "memory" in controllers.split(","):
            top, name = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
        else:
            continue
        path = PurePosixPath(group.lstrip("/"))
        yield from (top / each / name for each in (path, *path.parents))


def _cores() -> int:
    """Those that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main(arguments: Sequence[str]) -> None:
    """Writes how many processes the tests get. With ``--room``, a machine without room ends it with the sentence that says so.

    That is not left to pytest, which has written temporary files before it reads a plugin.
    """
    if "--room" in arguments and (lacking := too_little_room(ROOM_MIB)):
        sys.exit(lacking)
    sys.stdout.write(f"{processes(_cores(), _memory_mib())}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
