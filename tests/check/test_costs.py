"""What a run cost stands at its end, also where several processes ran it."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.check.costs import room, summary

TESTS = """\
import os, subprocess
def test_cpu():
    sum(range(30_000_000))
def test_starts():
    subprocess.run(["true", "kafka.Kafka"])
    subprocess.run(["sh", "-c", '. "$SPARK_CONF_DIR/spark-env.sh"'])
"""


def test_the_dearest_rooms_come_first_and_the_rest_is_one_figure() -> None:
    costs = Counter({f"room{number}": float(number) for number in range(1, 23)})
    rooms, spark, brokers = summary(costs, Counter({("Spark", "test_a.py"): 1, ("Spark", "test_b.py"): 2})).split("\n")
    assert rooms.startswith("253.0 in all: room22 22.0, room21 21.0, ")
    assert rooms.endswith("room3 3.0; 3.0 in others")
    assert (spark, brokers) == ("JVMs started, Spark: 3: test_b.py 2, test_a.py 1", "JVMs started, Kafka: 0: ")


def test_a_room_is_a_folder_or_a_file_at_the_top() -> None:
    assert [room("tests/rules/sub/test_a.py::test_b[::]"), room("tests/test_words.py::test_a")] == ["rules", "test_words.py"]


@pytest.mark.parametrize("processes", ["0", "2"])
def test_cpu_and_starts_are_those_of_all_processes(tmp_path: Path, processes: str) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ("tests.check.costs",)\n')
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", processes, "--durations=1", "--rootdir", ".", "."]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    (line,) = [line for line in done.stdout.splitlines() if " in all: " in line]
    assert line.endswith("; 0.0 in others"), done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("JVMs")] == [
        f"JVMs started, {jvm}: 1: test_it.py 1" for jvm in ("Spark", "Kafka")
    ]
    assert not line.startswith("0.0 in all")
