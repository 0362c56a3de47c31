"""The run of `make soak` with a job that is away, in small: what is written meanwhile is more than the agent keeps."""

from pathlib import Path

import pytest

from bench.soak.away import Plan, run_away

pytestmark = [pytest.mark.spark, pytest.mark.long]

SMALL = Plan(minutes=0.2, partitions=20, appends_a_second=100, kept_bytes=128 << 10, seed=3)


def test_a_job_that_comes_back_counts_all_that_was_written(kafka_jars: None, tmp_path: Path) -> None:
    report = run_away(tmp_path, SMALL)
    assert report.problems == ()
    assert all(each.records for each in report.absences)
    assert report.compared > SMALL.partitions
