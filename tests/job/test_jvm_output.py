import logging

import pytest

from streaming.job.jvm_output import forward_line


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
