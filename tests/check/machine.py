"""A plugin of pytest for what a machine lacks.

One line at the end says what was skipped and how to get it, no run begins without room, and a small machine runs fewer tests side by side.
"""

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

ROOM_MIB = 2048
"""What a whole run writes into the folder for temporary files at one time, and half of that again."""

_SKIPPED = "Skipped: "


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--room", type=int, default=0, metavar="MIB", help="do not begin where temporary files have less room than this")


def pytest_sessionstart(session: pytest.Session) -> None:
    wanted = session.config.getoption("--room")
    if wanted and not hasattr(session.config, "workerinput") and (lacking := too_little_room(wanted)):
        pytest.exit(lacking, returncode=pytest.ExitCode.USAGE_ERROR)


def too_little_room(wanted_mib: int) -> str:
    """What to do where temporary files have less room than this; "" where they have enough."""
    directory = tempfile.gettempdir()
    free = shutil.disk_usage(directory).free >> 20
    if free >= wanted_mib:
        return ""
    return f"{directory} has {free} MiB free, and the tests write up to {wanted_mib} MiB: make room, or set TMPDIR to a folder that has it"


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
    """What this machine has, or what the control group of this process may take of it."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # no such version of control groups here, or no limit ("max")
            found.append(int(Path(path).read_text(encoding="ascii")) >> 20)
    return min(found)


def _cores() -> int:
    """Those that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    sys.stdout.write(f"{processes(_cores(), _memory_mib())}\n")
