"""A run goes on where one of its processes dies: every other test has an outcome, and the run ends."""

import subprocess
import sys
from collections.abc import Container
from pathlib import Path

import pytest

from tests.check.workers import name_of

_ROOT = Path(__file__).parents[2]


ENVIRONMENT = {"PYTHONPATH": str(_ROOT), "PATH": "/usr/bin:/bin", "PYTEST_ADDOPTS": "-p tests.check.workers"}
"""Of a run that knows nothing of this one, with one of our plugins alone, also in its processes."""


def suite(tests: int, dying: Container[int], mark: str = "") -> str:
    """So many tests with this mark; some kill their process."""
    bodies = ("import os; os.kill(os.getpid(), 9)" if number in dying else "pass" for number in range(tests))
    return "".join(f"{mark}\ndef test_{number}(): {body}\n" for number, body in enumerate(bodies))


def run(directory: Path, tests: str, processes: int) -> list[str]:
    """The outcomes of a run, sorted: the word of pytest and the test."""
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "test_it.py").write_text("import pytest\n" + tests)
    options = ["-n", str(processes), "--dist", "loadgroup", "--no-loadscope-reorder", "-rA", "--no-header"]
    command = [sys.executable, "-m", "pytest", *options]
    done = subprocess.run(command, cwd=directory, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=False, timeout=120)
    assert done.returncode == 1, done.stdout
    return sorted(
        {line.partition(" - ")[0].partition("@")[0] for line in done.stdout.splitlines() if line.startswith(("PASSED", "FAILED"))}
    )


def test_a_name_is_what_pytest_takes() -> None:
    assert [name_of("a.py::test_b@the group"), name_of("a.py::test_b[c@d]"), name_of("a.py::test_b[c@d]@e"), name_of("x@a.py::test_b")] == [
        "a.py::test_b",
        "a.py::test_b[c@d]",
        "a.py::test_b[c@d]",
        "x@a.py::test_b",
    ]


def test_what_failed_in_a_group_is_what_pytest_runs_again(tmp_path: Path) -> None:
    body = (
        "\n@pytest.mark.xdist_group('g@h')\n@pytest.mark.parametrize('a', ['b@c'])\ndef test_fails(a): assert 0\ndef test_passes(): pass\n"
    )
    run(tmp_path, body, 2)
    again = [sys.executable, "-m", "pytest", "--lf", "--lfnf=none"]
    done = subprocess.run(again, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=False)
    assert "1 failed, 1 deselected in" in done.stdout.splitlines()[-1] or "1 failed in" in done.stdout.splitlines()[-1], done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("dies", [0, 4, 5])
def test_each_test_has_an_outcome_wherever_a_process_dies(tmp_path: Path, dies: int, processes: int) -> None:
    outcomes = [f"{'FAILED' if number == dies else 'PASSED'} test_it.py::test_{number}" for number in range(6)]
    assert run(tmp_path, suite(6, {dies}), processes) == sorted(outcomes)


@pytest.mark.slow
def test_the_rest_of_a_group_goes_on_in_another_process(tmp_path: Path) -> None:
    group = suite(3, {1}, "@pytest.mark.xdist_group('one')")
    assert run(tmp_path, group, 1) == ["FAILED test_it.py::test_1", "PASSED test_it.py::test_0", "PASSED test_it.py::test_2"]


@pytest.mark.slow
def test_two_that_kill_their_processes_have_failed_once_each(tmp_path: Path) -> None:
    assert [line.split()[0] for line in run(tmp_path, suite(5, {1, 3}), 2)] == ["FAILED", "FAILED", "PASSED", "PASSED", "PASSED"]
