import io
import logging
import threading

import pytest

from streaming.spark.job.jvm import forward, forward_line

HUNG_UP = """\
Traceback (most recent call last):
  File "/site-packages/pyspark/python/lib/pyspark.zip/pyspark/daemon.py", line 264, in manager
  File "/site-packages/pyspark/python/lib/pyspark.zip/pyspark/daemon.py", line 95, in worker
BrokenPipeError: [Errno 32] Broken pipe
"""
"""What PySpark's daemon prints of a worker whose JVM has closed the socket."""

WITH_SOURCE = """\
Traceback (most recent call last):
  File "/site-packages/pyspark/daemon.py", line 264, in manager
    code = worker(sock, authenticated)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/site-packages/pyspark/daemon.py", line 95, in worker
    outfile.flush()
BrokenPipeError: [Errno 32] Broken pipe
"""
"""The same where PySpark is no zip."""


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("segtail-log ERROR RocksDB cannot write | java.io.IOException: No space left", logging.ERROR),
        ("segtail-log WARN NativeCodeLoader Unable to load native-hadoop library", logging.WARNING),
        ("WARNING: Using incubator modules: jdk.incubator.vector", logging.DEBUG),
        ("Streaming TransformWithStateInPandas Python worker finish init stage of Python runner.", logging.DEBUG),
        ("Starting Streaming TransformWithStateInPandas Python worker.", logging.DEBUG),
        ("", logging.DEBUG),
        ("java.lang.OutOfMemoryError: Java heap space", logging.WARNING),
        ("Fatal Python error: Segmentation fault", logging.WARNING),
    ],
)
def test_each_line_has_the_level_it_deserves(line: str, level: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    forward_line(line)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("spark", level)


def test_message_and_logger_of_spark(caplog: pytest.LogCaptureFixture) -> None:
    forward_line("segtail-log ERROR RocksDB cannot write")
    (record,) = caplog.records
    assert (record.getMessage(), vars(record)["source"]) == ("cannot write", "RocksDB")


def test_percent_signs_are_no_format(caplog: pytest.LogCaptureFixture) -> None:
    forward_line("100 %s")
    forward_line("segtail-log ERROR X 100 %d")
    assert [record.getMessage() for record in caplog.records] == ["100 %s", "100 %d"]


def test_what_is_cut_short_by_a_stop_may_complain_unheard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    forward_line("java.lang.StackOverflowError", ending=True)
    forward_line("segtail-log ERROR RocksDB cannot write", ending=True)
    assert [record.levelno for record in caplog.records] == [logging.DEBUG, logging.ERROR]


@pytest.mark.parametrize(
    ("printed", "warned"),
    [
        (HUNG_UP, []),
        (WITH_SOURCE * 2, []),
        (WITH_SOURCE.replace("Broken", "Other"), WITH_SOURCE.replace("Broken", "Other").splitlines()),
        (HUNG_UP + "after", ["after"]),
        (HUNG_UP.replace("BrokenPipeError", "MemoryError"), HUNG_UP.replace("BrokenPipeError", "MemoryError").splitlines()),
        (HUNG_UP.replace("daemon.py", "other.py"), HUNG_UP.replace("daemon.py", "other.py").splitlines()),
        (HUNG_UP.splitlines()[0], HUNG_UP.splitlines()[:1]),
    ],
    ids=["alone", "with its source, twice", "with its source, another error", "then more", "another error", "elsewhere", "cut off"],
)
def test_a_worker_on_which_the_jvm_hung_up_is_no_crash(printed: str, warned: list[str], caplog: pytest.LogCaptureFixture) -> None:
    forward(io.StringIO(printed), threading.Event()).join()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == warned
