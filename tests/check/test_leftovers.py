"""What a run of the tests has started ends with it, also when it is interrupted."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.limits import SECONDS
from tests.processes import take_interrupts, until

_ROOT = Path(__file__).parents[2]

LEAVING = """\
import os, subprocess, sys, time
from pathlib import Path

def test_it():
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
    Path("pid").write_text(str(left.pid))
    left.returncode = 0  # it is not waited for
    while WAITS: time.sleep(0.01)
"""


@contextmanager
def started(directory: Path, *, waits: bool) -> Iterator[subprocess.Popen[bytes]]:
    """A run of a test that leaves a process, and waits for an interrupt or not."""
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "test_it.py").write_text(LEAVING.replace("WAITS", str(waits)))
    command = [sys.executable, "-m", "pytest", "-p", "tests.check.leftovers", "-n", "1"]
    environ = {"PYTHONPATH": str(_ROOT), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(
        command,
        cwd=directory,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=take_interrupts,
    ) as run:
        try:
            yield run
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)


def runs(pid: int) -> bool:
    """Whether a process is alive; nobody waits for one that has ended, where its parent has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are found by /proc")
@pytest.mark.parametrize("interrupted", [False, True])
def test_what_a_run_has_started_ends_with_it(tmp_path: Path, interrupted: bool) -> None:
    pid = tmp_path / "pid"
    with started(tmp_path, waits=interrupted) as run:
        if interrupted:
            until("the test has begun", lambda: pid.exists() and pid.read_text(), saw=run.poll)
            os.killpg(run.pid, signal.SIGINT)  # as Ctrl-C does
        printed, _ = run.communicate(timeout=SECONDS)
    assert b"left by the tests, and ended: " in printed, printed
    until("it has ended", lambda: not runs(int(pid.read_text())))
    assert (run.returncode == 0) is not interrupted
