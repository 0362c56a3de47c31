"""The steady run of `make soak`, in small: everything is counted, and no file stays open beside logs that roll, come and go."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.live]

ROOT = Path(__file__).parents[2]
SMALL = ("--minutes=0.4", "--partitions=60", "--active=20", "--appends=100", "--backlog=128MiB", "--seed=3")


def test_a_short_run_beside_logs_that_roll_come_and_go() -> None:
    done = subprocess.run([sys.executable, "-m", "bench.soak", "steady", *SMALL], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, "steady: PASSED" in done.stdout) == (0, True), done.stdout + done.stderr
