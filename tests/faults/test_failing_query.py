"""A query that fails at each start: the job goes on trying, and says that it is not well."""

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from streaming.job.wellness import FAILURES
from tests.processes import Segtail, segtail, until
from tests.upgrade import before

pytestmark = pytest.mark.spark


def health(job: Segtail) -> int | None:
    if job.url is None:
        return None
    try:
        with urllib.request.urlopen(f"{job.url.removesuffix('/metrics')}/-/healthy") as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def restarts(job: Segtail) -> float | None:
    return next((value for series, value in job.page().items() if series.name == "segtail_query_restarts_total"), None)


def test_it_is_not_well_after_a_few_failures(tmp_path: Path) -> None:
    before.unpack("job", tmp_path)  # not where it was made: Spark does not find the schema of the state
    run = ("run", "--log-dirs", tmp_path / "d1", "--listen", "127.0.0.1:0", "--checkpoint", tmp_path / "checkpoint")
    with segtail(*run, said=tmp_path / "said") as job:
        until("it is well at first", lambda: health(job) == 200)
        until("it is not well", lambda: health(job) == 503)
        assert (restarts(job) or 0) >= FAILURES
        assert not any(series.name == "segtail_query_last_look_timestamp_seconds" for series in job.page())
        assert "_stateSchema" in job.said
