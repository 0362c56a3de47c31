"""A query that fails: the job starts it again, and says when it is not well, or why it gave up."""

import shutil
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.spark.job import job
from streaming.spark.job.child import FAILURES
from tests.builders import batch, log_dir, partition
from tests.jobs import run_once, serving
from tests.processes import Page, read_page, until, values

pytestmark = pytest.mark.spark


def health(job: str) -> int:
    try:
        with urllib.request.urlopen(f"{job}/-/healthy") as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def page(job: str) -> Page:
    with urllib.request.urlopen(f"{job}/metrics") as answer:
        return read_page(answer.read().decode())


def moved_checkpoint(directory: Path, spark: SparkSession) -> Path:
    """A checkpoint that is not where it was made, so that Spark does not find the schema of the state; returns its log dir."""
    disk = log_dir(directory)
    log = partition(disk, "orders")
    log.append(batch(5))
    ended = run_once(spark, directory / "made", disk.path)
    assert ended.status == 0, ended.error
    shutil.move(directory / "made", directory / "checkpoint")
    log.append(batch(5))
    return disk.path


def test_it_is_not_well_after_a_few_failures(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(job, "_BACK_OFF_SECONDS", (0.1,))
    disk = moved_checkpoint(tmp_path, spark)
    with serving(spark, tmp_path / "checkpoint", disk) as url:
        assert health(url) == 200
        until("it is not well", lambda: health(url) == 503, saw=lambda: caplog.messages)
        found = page(url)
    assert next(value for series, value in found.items() if series.name == "segtail_query_restarts_total") >= FAILURES
    assert not any(series.name == "segtail_query_last_look_timestamp_seconds" for series in found)
    failures = [record for record in caplog.records if record.message == "the query failed and is started again"]
    assert "_stateSchema" in str(vars(failures[0])["reason"])


def test_a_run_that_ends_by_itself_outlives_a_worker_that_did_not_start(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "orders").append(batch(5))
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python_whose_first_start_fails(tmp_path)))
    ended = run_once(spark, tmp_path / "checkpoint", disk.path)
    assert ended.status == 0, ended.error
    assert values(ended.page, "segtail_partition_appended_records_total") == {("orders", 0): 5}
    assert "not everything was processed: the query is started again" in caplog.messages


def test_a_run_that_ends_by_itself_shows_why_it_gave_up(tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    disk = moved_checkpoint(tmp_path, spark)
    ended = run_once(spark, tmp_path / "checkpoint", disk)
    assert ended.status == 1
    assert ended.error.startswith("the query failed: ")
    assert "_stateSchema" in ended.error
    assert caplog.messages.count("not everything was processed: the query is started again") == job._ONCE_ATTEMPTS - 1


def python_whose_first_start_fails(directory: Path) -> Path:
    """What Spark starts as its workers' daemon, on a machine that had no time for it at first."""
    script, started = directory / "python", directory / "started"
    script.write_text(f'#!/bin/sh\n[ -e {started} ] && exec {sys.executable} "$@"\ntouch {started}\nexit 1\n')
    script.chmod(0o755)
    return script
