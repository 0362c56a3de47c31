"""The page of a job that starts again, from its first answer until it is ready: no counter of its state is smaller than before."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.builders import NOW, batch, log_dir, partition
from tests.jobs import run_once, serving
from tests.processes import until
from tests.worlds.scraping import counters, scrape

pytestmark = pytest.mark.spark


def test_no_counter_is_smaller_on_any_page_of_a_job_that_starts_again_on_its_checkpoint_or_on_a_copy(
    spark: SparkSession, tmp_path: Path
) -> None:
    disk, checkpoint = log_dir(tmp_path), tmp_path / "checkpoint"
    logs = [partition(disk, "t", number) for number in range(4)]
    for end in (10, 30):
        for log in logs:
            log.append(*[batch(1)] * 10)
            log.roll()
            if end == 30:
                log.append(*[batch(1)] * 10)
                log.roll()
                log.delete_records(end)
                log.delete_old_segments(NOW)
                log.unlink_deleted(NOW + 10**9)
        ended = run_once(spark, checkpoint, disk.path)
        assert ended.status == 0, ended.error
    assert sum(value for series, value in ended.page.items() if series.name == "segtail_skipped_bytes_total") > 0
    copy = tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    before: dict[str, float] = {}
    for directory in (checkpoint, copy, checkpoint):
        with serving(spark, directory, disk.path) as url:
            pages: list[dict[str, float]] = []

            def ready(url: str = url, pages: list[dict[str, float]] = pages) -> bool:
                pages.append(counters(scrape(f"{url}/metrics") or ""))
                return scrape(f"{url}/-/ready") is not None

            until("the job is ready", ready)
            after = counters(scrape(f"{url}/metrics") or "")
        assert {name for page in (*pages, after) for name, value in page.items() if value < before.get(name, 0)} == set()
        assert before.items() <= after.items()
        assert len(pages[0]) < len(after)
        before = after
