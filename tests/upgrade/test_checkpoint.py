"""A job goes on from the checkpoint of the version before it: its own agent's journal, Spark's offsets and the state of the fold."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.builders import batch, commit
from tests.jobs import run_once
from tests.processes import values
from tests.upgrade import before

pytestmark = pytest.mark.spark


def unpack(tmp_path: Path) -> None:
    before.unpack("job", tmp_path)
    # Spark keeps the whole path of its schema, which was that of a directory that is no more
    metadata = tmp_path / "checkpoint" / "spark" / "state" / "0" / "_metadata" / "v2" / "0"
    text = metadata.read_text()
    assert "file:/kafka/checkpoint/" in text
    metadata.write_text(text.replace("file:/kafka/checkpoint/", f"file:{tmp_path}/checkpoint/"))


def test_its_counters_go_on(tmp_path: Path, spark: SparkSession) -> None:
    unpack(tmp_path)
    grown = tmp_path / "d1" / "orders-0" / "00000000000000000000.log"
    before.append(grown, 8, commit(9), batch(2))
    ended = run_once(spark, tmp_path / "checkpoint", tmp_path / "d1")
    assert ended.status == 0, ended.error
    page = ended.page
    assert values(page, "segtail_partition_appended_bytes_total") == before.sizes(tmp_path / "d1")
    assert values(page, "segtail_partition_appended_records_total") == {("orders", 0): 3 + 4 + 2, ("orders", 1): 2 + 1 + 5, ("bills", 0): 9}
    assert values(page, "segtail_partition_committed_transactions_total") == {("orders", 0): 2}  # the second opened before the upgrade
    assert values(page, "segtail_partition_open_transactions") == {("orders", 0): 0}
    assert values(page, "segtail_partition_segments_rolled_total") == {("orders", 0): 0, ("orders", 1): 1, ("bills", 0): 0}
    assert {value for series, value in page.items() if series.name == "segtail_skipped_bytes_total"} == {0}
