"""A query that fails at each start: the job goes on trying, and says that it is not well."""

import urllib.error
import urllib.request
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.job import job
from streaming.job.wellness import FAILURES
from tests.jobs import serving
from tests.processes import Page, read_page, until
from tests.upgrade import before

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


def test_it_is_not_well_after_a_few_failures(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(job, "_BACK_OFF_SECONDS", (0.1,))
    before.unpack("job", tmp_path)  # not where it was made: Spark does not find the schema of the state
    with serving(spark, tmp_path / "checkpoint", tmp_path / "d1") as url:
        assert health(url) == 200
        until("it is not well", lambda: health(url) == 503, saw=lambda: caplog.messages)
        found = page(url)
    assert next(value for series, value in found.items() if series.name == "segtail_query_restarts_total") >= FAILURES
    assert not any(series.name == "segtail_query_last_look_timestamp_seconds" for series in found)
    failures = [record for record in caplog.records if record.message == "the query failed and is started again"]
    assert "_stateSchema" in str(vars(failures[0])["reason"])
