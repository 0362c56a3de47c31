"""No test begins behind the end of the minute, and each that did not begin is reported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LATE = ["tests left out by room: test_two.py 2, test_one.py 1"]


@pytest.mark.parametrize(
    ("processes", "options", "summary", "late"),
    [
        ("0", ["--until=0"], "no tests ran in", LATE),
        ("0", ["--until=0", "--least=600"], "3 passed in", []),
        ("0", ["--until=inf"], "3 passed in", []),
        ("0", [], "3 passed in", []),
        ("2", ["--until=0"], "no tests ran in", LATE),
        ("2", ["--until=0", "--least=600"], "3 passed in", []),
    ],
)
def test_tests_behind_the_moment_do_not_run_and_are_counted_by_room(
    tmp_path: Path, options: list[str], summary: str, late: list[str], processes: str
) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ("tests.check.budget",)\n')
    (tmp_path / "test_one.py").write_text("def test_a(): pass\n")
    (tmp_path / "test_two.py").write_text("def test_a(): pass\n\n\ndef test_b(): pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", processes, *options, "--rootdir", ".", "."]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert summary in done.stdout.splitlines()[-1]
    reported = sorted(line.strip() for line in done.stdout.splitlines() if "left out by room" in line)
    assert reported == late
