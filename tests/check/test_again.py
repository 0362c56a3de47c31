"""A test that fails beside others is run again alone, and only what fails twice makes a run red."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.check.again import MOST, listed, name_of

_ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow

SUITE = """\
import os
from pathlib import Path

import pytest

def test_sound(): pass
@pytest.mark.parametrize("case", ["a@b"])
def test_beside_others(case): assert "PYTEST_XDIST_WORKER" not in os.environ, "the machine was busy"
def test_broken(): assert not BROKEN
"""


def run(directory: Path, suite: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A run of a suite in two processes, with the plugin alone."""
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "test_it.py").write_text(suite)
    command = [sys.executable, "-m", "pytest", "-p", "tests.check.again", "-n", "1", "--dist", "loadgroup", *options]
    return subprocess.run(command, cwd=directory, env=environment("tests.check.again"), capture_output=True, text=True, check=False)


def environment(plugin: str) -> dict[str, str]:
    """Of a run that knows nothing of this one, with one of our plugins alone, also in its processes."""
    return {"PYTHONPATH": str(_ROOT), "PATH": "/usr/bin:/bin", "PYTEST_ADDOPTS": f"-p {plugin}"}


def test_who_passes_alone_is_listed_with_the_failure_and_the_run_is_green(tmp_path: Path) -> None:
    done = run(tmp_path, SUITE.replace("BROKEN", "False"), "--again")
    assert done.returncode == 0, done.stdout
    assert "the machine was busy" in done.stdout
    assert "test_it.py::test_beside_others[a@b]: failed, then passed\n" in done.stdout
    assert "2 passed, 1 passed alone in" in done.stdout.splitlines()[-1]
    again = run(tmp_path, SUITE.replace("BROKEN", "False"), "--again")
    assert "failed, then passed; 2 times in the last 2 runs here: it has to be mended, or to go" in again.stdout


def test_what_cannot_be_remembered_is_stated_and_makes_nothing_red(tmp_path: Path) -> None:
    """A cache that is read-only, or that another version has written."""
    (tmp_path / ".pytest_cache/v/segtail").mkdir(parents=True)
    (tmp_path / ".pytest_cache/v/segtail/again").touch()
    done = run(tmp_path, "def test_sound(): pass\n", "--again", "-Werror")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "could not create cache path" in done.stdout + done.stderr


def test_who_fails_twice_makes_the_run_red_with_both_failures(tmp_path: Path) -> None:
    done = run(
        tmp_path, SUITE.replace("BROKEN", "True") + "def test_broken_too(): assert not BROKEN\n".replace("BROKEN", "True"), "--again"
    )
    assert done.returncode == 1
    assert done.stdout.count("- run again, alone -") == 1
    assert done.stdout.count("assert not True") > 3
    assert "2 failed, 1 passed, 1 passed alone in" in done.stdout.splitlines()[-1]


def test_without_the_option_nothing_is_run_again(tmp_path: Path) -> None:
    done = run(tmp_path, SUITE.replace("BROKEN", "False"))
    assert done.returncode == 1
    assert "1 failed, 2 passed in" in done.stdout.splitlines()[-1]


def test_many_failures_are_not_run_again(tmp_path: Path) -> None:
    done = run(tmp_path, f"import pytest\n@pytest.mark.parametrize('n', range({MOST + 1}))\ndef test_it(n): assert False\n", "--again")
    assert done.returncode == 1
    assert f"{MOST + 1} failed in" in done.stdout.splitlines()[-1]
    assert "run again" not in done.stdout


def test_a_module_that_cannot_be_read_is_red(tmp_path: Path) -> None:
    assert run(tmp_path, "import nothing_of_that_name\n", "--again").returncode not in (0, 5)


@pytest.mark.parametrize(
    ("nodeid", "test"),
    [
        ("t.py::test_a", "t.py::test_a"),
        ("t.py::test_a@cli/test_run", "t.py::test_a"),
        ("t.py::test_a[x@y]", "t.py::test_a[x@y]"),
        ("t.py::test_a[x@y]@spark session", "t.py::test_a[x@y]"),
    ],
)
def test_the_group_is_no_part_of_a_name(nodeid: str, test: str) -> None:
    assert name_of(nodeid) == test


def test_one_that_comes_back_is_to_be_mended() -> None:
    assert listed("a", [["a"], [], ["b"]]) == "a: failed, then passed"
    assert listed("a", [["a"], [], ["a"]]).endswith("; 2 times in the last 3 runs here: it has to be mended, or to go")
