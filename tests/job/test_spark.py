"""What a job asks of Spark whatever its user sets."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.worker import EvalConf

from streaming.spark.job import job, query_progress, worker_daemon
from streaming.spark.job.spark import DEFAULTS, FIXED, _directories, _socket_directory, within, zip_package
from tests.job_without_spark import NoSpark, Query
from tests.limits import SECONDS


def test_what_stands_for_spark_has_all_that_a_job_asks_of_it() -> None:
    asked = set(re.findall(r"self\._spark\.(\w+)", Path(job.__file__).read_text()))
    assert {"hadoop", "status", "stop"} <= asked
    assert asked - set(dir(NoSpark())) == {"class_path", "planned_in"}  # of a JVM, and of a checkpoint that only a JVM can read

    of_query = {
        name for module in (job, query_progress) for name in re.findall(r"(?<![.\w])query\.(\w+)", Path(module.__file__).read_text())
    }
    assert {"recentProgress", "isActive", "awaitTermination"} <= of_query
    assert of_query <= set(dir(Query))


def test_of_a_task_or_a_stage_there_is_one_attempt_at_a_time() -> None:
    assert (FIXED["spark.speculation"], FIXED["spark.stage.maxConsecutiveAttempts"]) == ("false", "1")
    assert not FIXED.keys() & DEFAULTS.keys()


def test_a_worker_has_two_minutes_to_connect_unless_the_user_says_otherwise() -> None:
    """Within Spark's own 15 s no Python starts on a host that is busy."""
    limit = "spark.python.authenticate.socketTimeout"
    assert DEFAULTS[limit] == "120s"
    assert limit not in FIXED


@pytest.mark.parametrize("local", [True, False])
def test_the_configuration_of_the_log_is_for_the_job_s_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, local: bool) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    (tmp_path / "scratch").mkdir()
    before = os.umask(0o022)
    try:
        _directories(tmp_path, tmp_path / "scratch", local=local, debug=False)
    finally:
        os.umask(before)
    assert (tmp_path / "log4j2.properties").stat().st_mode & 0o777 == 0o600


def test_workers_are_forked_from_one_thread(tmp_path: Path) -> None:
    """What a library's own thread holds at that moment would be held for ever in the child."""
    script = tmp_path / "threads.py"
    script.write_text(f"import os\nfrom {worker_daemon.__name__} import load\nload()\nprint(len(os.listdir('/proc/self/task')))\n")
    done = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, **worker_daemon.ENVIRON}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"


def test_a_socket_has_a_path_that_is_short_enough_however_deep_the_checkpoint_lies(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / "scratch"
    deep.mkdir(parents=True)
    found = Path(_socket_directory(deep))
    assert (len(str(found)) <= 61, found.samefile(deep)) == (True, True)
    assert _socket_directory(Path("/tmp")) == "/tmp"


def test_a_socket_has_a_path_without_capitals_because_workers_get_it_in_lower_case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PySpark takes the path for a flag."""
    assert EvalConf({"state_server_socket_port": "/K/s.sock"}).get("state_server_socket_port") == "/k/s.sock"
    (tmp_path / "Kafka").mkdir()
    monkeypatch.setattr("streaming.spark.job.spark._SOCKET_DIRECTORY_CHARACTERS", 1000)
    found = _socket_directory(tmp_path / "Kafka")
    assert (found, Path(found).samefile(tmp_path / "Kafka")) == (found.lower(), True)


class Gone:
    """The JVM's side of a context, after the JVM."""

    def stop(self) -> None:
        raise Py4JNetworkError("Answer from Java side is empty")


def test_a_jvm_that_ended_first_is_no_warning() -> None:
    context = object.__new__(SparkContext)
    setattr(context, "_jsc", Gone())  # noqa: B010 - PySpark declares another type
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        within(SECONDS, context.stop)
    assert context._jsc is None
    assert shown == []


CODE = """
import sys
sys.path = [sys.argv[1], *(path for path in sys.path if "site-packages" in path or "/lib/python" in path)]
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in repr(finder).lower()]
from streaming.spark.source.job_data_source import JobDataSource
from streaming.spark.query.processor import ShardProcessor
import streaming.spark.client.agent_client
print(streaming.__file__)
"""


def test_source_and_fold_are_imported_from_the_zip_alone(tmp_path: Path) -> None:
    made = zip_package(tmp_path)
    done = subprocess.run([sys.executable, "-I", "-c", CODE, str(made)], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == f"{made}/streaming/__init__.py"


def test_the_same_sources_make_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    assert zip_package(tmp_path).read_bytes() == zip_package(tmp_path / "again").read_bytes()
