"""What the tests of a module start is seen and held against a table."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.check.order import LONGEST
from tests.check.starts import BROKERS, FAST, LIVE, ROOT, SPARK, TEST, TOOLS, Place, allowed, excess, read, started, written

TABLE = f"""\
| tests of | run by | start |
|---|---|---|
| `tests/a.py` | {TEST} | Spark (2), promtool |
| `tests/b.py` | {LIVE} | Kafka (3), Kafka's tools |
"""
READ = {
    Place("tests/a.py", TEST): Counter({SPARK: 2, "promtool": 1 << 30}),
    Place("tests/b.py", LIVE): Counter({BROKERS: 3, TOOLS: 1 << 30}),
}


def test_the_table_is_read_and_written() -> None:
    assert read(TABLE) == READ
    assert read(written(READ)) == READ
    assert written(READ) in TABLE


def test_what_is_started_more_often_is_named() -> None:
    assert list(excess(READ, READ)) == []
    found = {Place("tests/a.py", TEST): Counter({SPARK: 3}), Place("tests/c.py", TEST): Counter({"podman": 1})}
    more, other = excess(found, READ)
    assert more.startswith("tests/a.py starts Spark (3) in make test; ")
    assert other.endswith("says 0")


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (["/jdk/bin/java", "-Xmx512m", "-cp", "/a/kafka-clients-4.3.1.jar", "kafka.Kafka", "server.properties"], BROKERS),
        (["/jdk/bin/java", "-cp", "/a/kafka-clients-4.3.1.jar", "kafka.tools.StorageTool", "format"], TOOLS),
        (["python", "-S", "-c", "execv", "/jdk/bin/java", "kafka.Kafka", "server.properties"], BROKERS),
        (["/usr/bin/promtool", "check", "metrics"], "promtool"),
        (["python", "-S", "-c", "execv", "/usr/bin/prometheus-alertmanager", "--x"], "prometheus-alertmanager"),
        (["java", "-version"], ""),
        (["git", "status"], ""),
        (["make", "--dry-run", "rpm"], ""),
        ([], ""),
    ],
)
def test_programs_are_known_by_their_command_lines(command: list[str], what: str) -> None:
    assert started(command) == what


def test_what_starts_nothing_has_no_row() -> None:
    """`make fast` has those tests: one that starts something without a mark of its own would be there, and in no row."""
    assert [place.module for place in allowed() if place.target == FAST] == []


def test_every_row_is_of_tests_that_there_are() -> None:
    assert allowed()
    assert [place.module for place in allowed() if not (ROOT / place.module).is_file()] == []


def test_the_longest_modules_are_there() -> None:
    assert [name for name in LONGEST if not (ROOT / "tests" / f"{name}.py").is_file()] == []


STARTING = """\
import subprocess
def test_it():
    named = {{"PYTEST_CURRENT_TEST": "test_it.py::test_it (call)"}}
    subprocess.run([{script!r}], env={{**named, **__import__("os").environ}}, check=True)
"""


@pytest.mark.slow
def test_a_module_that_starts_more_than_the_table_says_fails(tmp_path: Path) -> None:
    """Spark's JVM is seen by the script that Spark runs, whoever starts it."""
    script = tmp_path / "promtool"
    script.write_text('#!/bin/sh\n. "$SPARK_CONF_DIR/spark-env.sh"\n[ -z "$SPARK_CONF_DIR" ]\n')
    script.chmod(0o755)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(STARTING.format(script=str(script)))
    command = [sys.executable, "-m", "pytest", "-p", "tests.check.starts"]
    environ = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert "test_it.py starts promtool (1) in make fast" in done.stdout
    assert "test_it.py starts Spark (1) in make fast" in done.stdout
    assert done.returncode == 1
    done = subprocess.run([*command, "--starts", "rows"], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, (tmp_path / "rows").read_text()) == (0, "| `test_it.py` | make fast | Spark (1), promtool |\n")
