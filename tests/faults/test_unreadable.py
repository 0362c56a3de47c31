"""A log that the disk does not give: a run that ends by itself counts everything else, and says so."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.builders import batch, log_dir, partition
from tests.jobs import run_once
from tests.processes import values

pytestmark = pytest.mark.spark


def test_once_counts_everything_else_and_fails_with_the_name_of_the_log(tmp_path: Path, spark: SparkSession) -> None:
    disk = log_dir(tmp_path)
    logs = [partition(disk, "orders", number) for number in range(3)]
    for log in logs:
        log.append(batch(5))
        log.close()
    disk.release()
    segment = logs[1].active.path("log")
    segment.rename(tmp_path / "kept")
    segment.symlink_to(segment)  # which nobody can open
    first = run_once(spark, tmp_path / "checkpoint", disk.path)
    assert first.status == 1, first.error
    assert "everything else was processed, but this could not be read: orders-1 of broker 1" in first.error
    assert values(first.page, "segtail_partition_appended_records_total") == {("orders", 0): 5, ("orders", 2): 5}
    segment.unlink()
    (tmp_path / "kept").rename(segment)
    second = run_once(spark, tmp_path / "checkpoint", disk.path)
    assert second.status == 0, second.error
    assert values(second.page, "segtail_partition_appended_records_total") == {("orders", number): 5 for number in range(3)}
