"""Checkpoints on file systems of Hadoop's: what the JVM says of them is what a directory of this machine has."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from streaming.errors import QueryCheckpointError
from streaming.queries import CheckpointReader, LocalCheckpoint
from streaming.spark.job.exporting import HadoopFiles
from tests.builders import NOW, batch, log_dir, partition
from tests.jobs import serving
from tests.limits import SECONDS
from tests.processes import read_page, until
from tests.queries.written import CHECKPOINTS, Written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def hadoop(spark: "SparkSession", tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """The JVM, and a configuration in which ``viewfs://NAME/`` is a folder of the test's."""
    context = spark.sparkContext
    configuration = context._jsc.hadoopConfiguration()
    configuration.set(f"fs.viewfs.mounttable.{tmp_path.name}.link./checkpoints", tmp_path.as_uri())
    yield context._jvm, configuration
    configuration.unset(f"fs.viewfs.mounttable.{tmp_path.name}.link./checkpoints")


def test_it_reads_what_is_there(hadoop: tuple[Any, Any]) -> None:
    for directory in CHECKPOINTS.iterdir():
        by_jvm, plain = HadoopFiles(directory.as_uri(), lambda: hadoop), LocalCheckpoint(directory)
        for folder in ("offsets", "commits"):
            assert sorted(by_jvm.entries(folder), key=str) == sorted(plain.entries(folder), key=str)
        assert by_jvm.content("offsets/1") == plain.content("offsets/1")
        assert CheckpointReader("c", by_jvm).look() == CheckpointReader("c", plain).look()


def test_what_is_missing_or_refused_is_reported(hadoop: tuple[Any, Any], tmp_path: Path) -> None:
    files = HadoopFiles(tmp_path.as_uri(), lambda: hadoop)
    assert files.entries("offsets") == []
    with pytest.raises(FileNotFoundError):
        files.content("metadata")
    with pytest.raises(QueryCheckpointError, match="c is no checkpoint of a streaming query"):
        CheckpointReader("c", files).look()
    with pytest.raises(OSError, match="nosuch"):
        HadoopFiles("nosuch://b/c", lambda: hadoop).entries("offsets")
    with pytest.raises(QueryCheckpointError, match="Spark is being started"):
        CheckpointReader("c", HadoopFiles("s3a://b/c", lambda: None)).look()


def test_a_job_shows_queries_with_checkpoints_anywhere(spark: "SparkSession", hadoop: tuple[Any, Any], tmp_path: Path) -> None:
    disk = log_dir(tmp_path / "disk")
    orders = partition(disk, "orders", topic_id=8)
    orders.append(*(batch(1, timestamp=NOW) for _ in range(5)))
    disk.write_high_watermarks()
    for name, offset in (("far", 2), ("near", 4)):
        Written(tmp_path / name, name).both(0, {"orders": {0: offset}}, at=NOW / 1000)
    checkpoints = f"far=viewfs://{tmp_path.name}/checkpoints/far,near={tmp_path / 'near'},gone=viewfs://{tmp_path.name}/checkpoints/gone"
    with serving(spark, tmp_path / "job", disk.path, spark_checkpoints=checkpoints) as url:
        found: dict[str, float] = {}

        def lags() -> dict[str, float]:
            with urlopen(f"{url}/metrics", timeout=SECONDS) as answer:
                page = read_page(answer.read().decode())
            found.clear()
            found.update({dict(each.labels)["group"]: value for each, value in page.items() if each.name == "segtail_group_lag_offsets"})
            return found

        until("the lag of both is there", lambda: lags() == {"spark:far": 3, "spark:near": 1}, saw=lambda: found)
