"""A Spark that reads topics again and again, each time when it is told to: from a broker, or from log dirs.

    python -m tests.bench.records_job kafka BOOTSTRAP
    python -m tests.bench.records_job disk LOG_DIR,...

A line on stdin is a topic, which is read into nothing, all columns of it; the line on stdout that answers has the number of records. The
bench ``records`` measures what that costs.
"""

import sys

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from tests.broker.install import spark_kafka_jars
from tests.source.records_source import FORMAT, RecordsSource


def main() -> None:
    """Read until stdin ends."""
    kind, where = sys.argv[1:]
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
    spark.dataSource.register(RecordsSource)
    print("ready", flush=True)
    for line in sys.stdin:
        topic = line.strip()
        records = _kafka(spark, where, topic) if kind == "kafka" else _disk(spark, where, topic)
        seen = Observation()
        records.observe(seen, f.count(f.lit(1)).alias("records")).write.format("noop").mode("overwrite").save()
        print(seen.get["records"], flush=True)


def _kafka(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    source = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    return source.option("kafka.isolation.level", "read_committed").option("includeHeaders", "true").load()


def _disk(spark: SparkSession, log_dirs: str, topic: str) -> DataFrame:
    return spark.read.format(FORMAT).option("log_dirs", log_dirs).option("topics", topic).load()


if __name__ == "__main__":
    main()
