"""What the job does beside its query: an error of the system there is no error of Spark's JVM."""

import errno
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkRuntimeError

from streaming.common.pace import WorkCheck, last_check, write_check
from streaming.spark.job.job import Job, repeated
from streaming.spark.job.jvm import SparkError
from streaming.spark.job.spark import DEFAULTS, PATIENCE
from tests.limits import SECONDS


def refusal(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EAGAIN, errno.ENOMEM, errno.EMFILE])
def test_what_the_system_refuses_is_tried_again(number: int, caplog: pytest.LogCaptureFixture) -> None:
    polled: list[int] = []

    def poll() -> None:
        polled.append(1)
        if len(polled) == 1:
            raise refusal(number)

    job: Any = SimpleNamespace(_child=None, _counting=None, _poll=poll, _polls=SimpleNamespace(due=True))
    for _ in range(2):
        Job._care_until(job, threading.Event(), 0.0)
    assert len(polled) == 2
    assert caplog.text.count("tried again") == 1
    assert os.strerror(number) in str([record.__dict__ for record in caplog.records])


class Query:
    """A query, as far as the job's loop looks at it."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        if self._error is not None:
            raise self._error
        return False

    def awaitTermination(self) -> None:  # noqa: N802
        """It has ended."""


class RaisedError(Py4JJavaError):
    """What a call into the JVM has raised there, whose text only the JVM has."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text


def run(start: Exception | None, look: Exception | None) -> str:
    """Why a query failed whose start, or a look at which, raises this."""

    def query(*, once: bool) -> Query:
        if start is not None:
            raise start
        return Query(look)

    progress = SimpleNamespace(begins=lambda checks: None, poll=lambda query: None)
    spark, checkpoint = SimpleNamespace(status="running"), SimpleNamespace(checks=None)
    job: Any = SimpleNamespace(_progress=progress, _query=query, _spark=spark, _checkpoint=checkpoint, _agents=progress)
    return Job._run_query(job, threading.Event(), once=False)


def test_only_an_error_of_the_connection_to_the_jvm_is_one_of_the_jvm() -> None:
    assert run(None, None) == "it ended by itself"
    assert "No space left" in run(refusal(errno.ENOSPC), None)
    for start, look in ((ConnectionRefusedError(111, "refused"), None), (None, ConnectionResetError(104, "reset"))):
        with pytest.raises(SparkError, match="Spark's JVM does not answer"):
            run(start, look)


LATE = (
    RaisedError(
        "An error occurred while calling o71.load.\n: org.apache.spark.SparkException: Python worker failed to connect back.\n\tat a.b"
    ),
    RaisedError("An error occurred while calling o71.load.\n: java.net.SocketTimeoutException: Accept timed out\n\tat a.b"),
    PySparkRuntimeError(errorClass="CANNOT_OPEN_SOCKET", messageParameters={"errors": "[]"}),
)


@pytest.mark.parametrize("error", LATE, ids=["worker", "accept", "driver"])
def test_a_python_process_that_was_too_slow_to_start_is_waited_for_again(error: Exception) -> None:
    """Spark's limits are fixed, and on a busy host Python takes longer: the JVM is well."""
    assert run(error, None) in str(error)


def test_whatever_else_the_start_of_a_query_raises_is_raised() -> None:
    with pytest.raises(SparkError, match=r"o71\.load"):
        run(RaisedError("An error occurred while calling o71.load."), None)
    with pytest.raises(PySparkRuntimeError, match="pandas"):
        run(PySparkRuntimeError("pandas"), None)


@pytest.mark.parametrize(("failed", "well"), [(False, 1), (True, 0)])
def test_a_query_that_cannot_go_on_without_what_is_counted_is_not_well(failed: bool, well: int) -> None:
    """It checks for work again and again, and plans nothing."""
    checked: list[int] = []
    job: Any = SimpleNamespace(_counting=SimpleNamespace(failed=failed), _wellness=SimpleNamespace(checked=lambda: checked.append(1)))
    Job._checked(job)
    assert len(checked) == well


def test_what_is_counted_is_written_again_if_it_is_gone() -> None:
    kept: list[int] = []
    counting = SimpleNamespace(keep=lambda: kept.append(1))
    job: Any = SimpleNamespace(_child=None, _counting=counting, _polls=SimpleNamespace(due=False))
    Job._care_until(job, threading.Event(), 0.0)
    assert kept == [1]


@pytest.mark.parametrize(("ready", "age", "quickly"), [(False, None, False), (False, 1.0, True), (True, 1.0, False)])
def test_agents_are_asked_quickly_from_the_first_micro_batch_until_the_page_is_whole(ready: bool, age: float | None, quickly: bool) -> None:
    job: Any = SimpleNamespace(table=SimpleNamespace(ready=ready), _progress=SimpleNamespace(age=lambda now: age))
    assert Job._is_landing.__get__(job) is quickly


def test_the_driver_waits_for_a_socket_as_long_as_workers_do() -> None:
    seconds = DEFAULTS["spark.python.authenticate.socketTimeout"].removesuffix("s")
    assert (PATIENCE["SPARK_AUTH_SOCKET_TIMEOUT"], seconds) == ("120", "120")


def test_a_check_for_work_that_cannot_be_read_is_not_known_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "checks"
    path.mkdir()
    assert last_check(path) is None
    assert "cannot be read" in caplog.text
    path.rmdir()
    write_check(path, WorkCheck(1.0, 1, idle=True, first=1.0))
    assert last_check(path) is not None


def test_it_is_called_again_and_again_and_not_after_the_block() -> None:
    calls, thrice = [], threading.Event()

    def action() -> None:
        calls.append(threading.current_thread())
        if len(calls) == 3:
            thrice.set()

    with repeated(action, 0.001):
        assert thrice.wait(SECONDS)
    count = len(calls)
    assert threading.current_thread() not in calls
    assert not any(thread.is_alive() for thread in calls)
    assert len(calls) == count


def test_it_ends_with_the_block_whatever_ends_that() -> None:
    calls: list[threading.Thread] = []
    with pytest.raises(ValueError, match="no Spark"), repeated(lambda: calls.append(threading.current_thread()), 0.0):
        raise ValueError("no Spark")
    assert not any(thread.is_alive() for thread in calls)
