"""What a job asks of Spark whatever its user sets."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext

from streaming.job import worker_daemon
from streaming.job.spark import DEFAULTS, FIXED, _short, within
from tests.limits import SECONDS


def test_of_a_task_or_a_stage_there_is_one_attempt_at_a_time() -> None:
    assert (FIXED["spark.speculation"], FIXED["spark.stage.maxConsecutiveAttempts"]) == ("false", "1")
    assert not FIXED.keys() & DEFAULTS.keys()


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
    found = Path(_short(deep))
    assert (len(str(found)) <= 61, found.samefile(deep)) == (True, True)
    assert _short(Path("/tmp")) == "/tmp"


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
