"""``format("segtail")`` in a Spark session that has registered nothing of it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streaming.simulator.log import PartitionLog
from tests.builders import batch, commit, log_dir, partition
from tests.docs.documented import blocks

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> PartitionLog:
    made = partition(log_dir(tmp_path_factory.mktemp("world")), "orders")
    made.append(batch(3), batch(2, producer=7, transactional=True), commit(7), batch(1, producer=8, transactional=True))
    return made


def test_a_view_of_sql_needs_no_python(spark: SparkSession, log: PartitionLog) -> None:
    where = f"log_dirs '{log.directory.parent}'"
    spark.sql(f"CREATE TEMPORARY VIEW batches USING segtail OPTIONS ({where}, relation 'batches')")
    spark.sql(f"CREATE TEMPORARY VIEW ranges USING segtail OPTIONS ({where})")
    found = spark.sql("SELECT topic, count(*) AS batches, sum(size) AS bytes FROM batches GROUP BY topic").toArrow().to_pylist()
    assert found == [{"topic": "orders", "batches": 4, "bytes": log.active.size}]
    (row,) = spark.sql("SELECT bytes, codec_bytes['none'] AS plain, markers[0].kind AS marker, is_leader FROM ranges").collect()
    assert (row.bytes, row.marker, row.is_leader) == (log.active.size, "commit", None)
    assert row.plain == log.active.size - log.active.entries[2].size


def test_a_table_and_a_path_are_read_as_people_know_them(spark: SparkSession, log: PartitionLog) -> None:
    where = str(log.directory.parent)
    spark.sql(f"CREATE TABLE of_sql USING segtail OPTIONS (log_dirs '{where}', relation 'batches')")
    spark.catalog.createTable("of_catalog", path=where, source="segtail", relation="batches")
    for table in ("of_sql", "of_catalog"):
        assert spark.table(table).count() == 4
        assert [row.codec for row in spark.table(table).select("codec").distinct().collect()] == ["none"]
        assert spark.read.option("topics", "orders").table(table).count() == 4
        spark.sql(f"DROP TABLE {table}")
    spark.sql("CREATE TABLE with_columns (topic STRING) USING segtail OPTIONS (log_dirs '/a')")
    with pytest.raises(Exception, match="a table gets its options only if CREATE TABLE names no columns"):
        spark.table("with_columns").collect()
    spark.sql("DROP TABLE with_columns")
    for path in (where, [where], f"{Path(where).parent}/*"):
        assert spark.read.format("segtail").option("relation", "batches").load(path).count() == 4


def test_the_documented_questions_have_answers(spark: SparkSession, log: PartitionLog) -> None:
    (text,) = (text for path, text in blocks("sql") if path.name == "spark.md" and text.startswith("SELECT topic"))
    for relation in ("records", "batches", "transactions"):
        more = ", isolation 'read_uncommitted', until 'end'" if relation == "records" else ""
        where = f"log_dirs '{log.directory.parent}', relation '{relation}'{more}"
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {relation} USING segtail OPTIONS ({where})")
    answers = [spark.sql(question).collect() for question in text.strip().rstrip(";").split(";\n")]
    assert len(answers) == 5
    assert [(row.producer_id, row.topic) for row in answers[-1]] == [(8, "orders")]


def test_all_that_is_read_arrives_whether_filters_are_pushed_or_not(spark: SparkSession, log: PartitionLog) -> None:
    batches = spark.read.format("segtail").option("log_dirs", str(log.directory.parent)).option("relation", "batches").load()
    wanted = batches.where((F.col("topic") == "orders") & (F.col("base_offset") > 2) & (F.col("max_timestamp") > "2020-01-01"))
    options = {"log_dirs": str(log.directory.parent), "relation": "records", "until": "end", "isolation": "read_uncommitted"}
    records = spark.read.format("segtail").options(**options).load().where("topic = 'orders' AND offset > 2 AND offset < 6")
    found = []
    for pushed in ("false", "true"):
        spark.conf.set("spark.sql.python.filterPushdown.enabled", pushed)
        found.append(sorted(row.base_offset for row in wanted.select("base_offset").collect()))
        assert sorted(row.offset for row in records.collect()) == [3, 4]
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert found == [[3, 5, 6]] * 2


def test_transactions_that_are_open(spark: SparkSession, log: PartitionLog) -> None:
    found = spark.read.format("segtail").options(log_dirs=str(log.directory.parent), relation="transactions").load()
    assert sorted((row.kind, row.producer_id) for row in found.collect()) == [("committed", 7), ("open", 8)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"log_dirs": "/nowhere"}, "option log_dirs: log dir /nowhere does not exist"),
        ({"agnets": "a:1"}, "has no option 'agnets', did you mean agents"),
        ({"topic": "t"}, "has no option 'topic', did you mean topics"),
        ({"xyz": "red"}, "has no option 'xyz'; it knows relation, "),
        ({"agents": "127.0.0.1:1"}, "nobody listens there: is it running"),
    ],
)
def test_bad_input_is_an_error_before_anything_is_read(spark: SparkSession, options: dict[str, str], words: str) -> None:
    with pytest.raises(Exception, match=words):
        spark.read.format("segtail").options(**options).load().collect()


def test_a_stream_of_log_dirs_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "orders")
    log.append(batch(3))
    disk.write_high_watermarks()
    options = {"log_dirs": str(disk.path), "relation": "records", "startingOffsets": "earliest", "maxBytesPerTrigger": "300"}
    for appended in (2, 0, 4):
        stream = spark.readStream.format("segtail").options(**options).load().select("topic", "offset")
        written = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = written.option("path", str(tmp_path / "rows")).trigger(availableNow=True).start()
        query.awaitTermination()
        ends = [each["sources"][0]["latestOffset"] for each in query.recentProgress]
        if appended:
            log.append(*[batch(1) for _ in range(appended)])
            disk.write_high_watermarks()
    assert '"orders": {"0": 5}' in str(ends[-1])
    rows = spark.read.parquet(str(tmp_path / "rows")).orderBy("offset").collect()
    assert [(row.topic, row.offset) for row in rows] == [("orders", offset) for offset in range(5)]
