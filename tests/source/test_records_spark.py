"""``relation=records`` inside Spark: planned, pickled, read by its Python workers, and seen with the columns of Spark's Kafka source."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streaming.simulator.batch_writer import Batch, Record
from tests.builders import NOW, batch, log_dir, partition

pytestmark = pytest.mark.spark

KAFKA_SCHEMA = (
    "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int,"
    "headers:array<struct<key:string,value:binary>>>"
)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = log_dir(tmp_path_factory.mktemp("records"))
    log = partition(made, "t")
    log.append(batch(3), batch(2))
    log.append(Batch(records=(Record(None, b"v", NOW, (("h", None), ("h", b"x"))), Record(b"", None, NOW))))
    made.write_high_watermarks()
    return made.path


def test_rows_of_the_columns_of_sparks_kafka_source(spark: SparkSession, disk: Path) -> None:
    source = spark.read.format("segtail").options(log_dirs=str(disk), relation="records")
    records = source.load()
    assert records.schema.simpleString() == KAFKA_SCHEMA
    rows = records.orderBy("offset").collect()
    assert [row.offset for row in rows] == list(range(7))
    assert [row.headers for row in rows] == [*[None] * 5, [("h", None), ("h", b"x")], None]
    assert [(row.key, row.value) for row in rows[5:]] == [(None, b"v"), (b"", None)]
    assert records.selectExpr("unix_millis(timestamp) AS ms").orderBy("ms").first() == (NOW,)
    assert source.option("columns", "topic").load().groupBy("topic").count().collect() == [("t", 7)]


def test_nothing_to_read_is_no_rows_and_a_wrong_path_fails_before_tasks(spark: SparkSession, disk: Path) -> None:
    source = spark.read.format("segtail").option("relation", "records")
    assert source.options(log_dirs=str(disk), startingTimestamp=1 << 50).load().count() == 0
    with pytest.raises(PySparkException, match="option log_dirs: log dir /nowhere does not exist"):
        source.options(log_dirs="/nowhere").load().collect()
