"""A Spark that reads topics again and again, each time when it is told to: from a broker, or from log dirs.

    python -m tests.bench.records_job kafka BOOTSTRAP
    python -m tests.bench.records_job records LOG_DIR,...
    python -m tests.bench.records_job batches LOG_DIR,...

A line on stdin is a topic, which is read into nothing, all columns of it; the line on stdout that answers has the number of records, for
``batches`` the sum of what their headers say. The bench ``records`` measures what that costs.
"""

import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from tests.broker.install import spark_kafka_jars

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Read until stdin ends."""
    kind, where = sys.argv[1:]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "streaming/spark/lookup"), str(ROOT)])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("records")
    settings = {
        "spark.jars": ",".join(map(str, spark_kafka_jars())),
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": "1g",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    print("ready", flush=True)
    for line in sys.stdin:
        topic = line.strip()
        rows = _kafka(spark, where, topic) if kind == "kafka" else _disk(spark, kind, where, topic)
        many = f.coalesce(f.sum("records"), f.lit(0)) if kind == "batches" else f.count(f.lit(1))
        seen = Observation()
        rows.observe(seen, many.alias("records")).write.format("noop").mode("overwrite").save()
        print(seen.get["records"], flush=True)


def _kafka(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    source = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    return source.option("kafka.isolation.level", "read_committed").option("includeHeaders", "true").load()


def _disk(spark: SparkSession, relation: str, log_dirs: str, topic: str) -> DataFrame:
    return spark.read.format("segtail").options(relation=relation, log_dirs=log_dirs, topics=topic).load()


if __name__ == "__main__":
    main()
