"""What somebody would write in an hour for the same numbers: Spark's own Kafka source, an aggregation, a page.

    python -m bench.naive_job BOOTSTRAP CHECKPOINT [--trigger SECONDS | --once]

Of each partition it knows how many records and bytes of values came, the end and the newest time: what a consumer can see. Not batches,
codecs, transactions, sizes on disk. The benches ``naive`` and ``backlog`` hold it against ours.
"""

import argparse
import sys

from prometheus_client import Gauge, start_http_server
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.broker.install import spark_kafka_jars

TOPICS = "bench.*"
_LABELS = ("topic", "partition")
_END = Gauge("naive_end_offset", "Behind the last record.", _LABELS)
_RECORDS = Gauge("naive_records", "Records.", _LABELS)
_BYTES = Gauge("naive_bytes", "Bytes of values.", _LABELS)
_NEWEST = Gauge("naive_newest_timestamp_seconds", "Of the newest record.", _LABELS)


def main() -> None:
    """Run until it is ended, or until all is read."""
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("checkpoint")
    parser.add_argument("--trigger", type=float, default=1.0)
    parser.add_argument("--once", action="store_true")
    given = parser.parse_args()
    server, _ = start_http_server(0, "127.0.0.1")
    jars = ",".join(map(str, spark_kafka_jars()))
    settings = {"spark.jars": jars, "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
    builder = SparkSession.builder.master("local[2]").appName("naive")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", given.bootstrap).option("subscribePattern", TOPICS)
    records = source.option("startingOffsets", "earliest" if given.once else "latest").load()
    sums = records.groupBy("topic", "partition").agg(
        f.max("offset").alias("last"),
        f.count("*").alias("records"),
        f.sum(f.length("value")).alias("bytes"),
        f.max("timestamp").alias("newest"),
    )
    writing = sums.writeStream.outputMode("update").option("checkpointLocation", given.checkpoint).foreachBatch(_publish)
    query = (writing.trigger(availableNow=True) if given.once else writing.trigger(processingTime=f"{given.trigger} seconds")).start()
    print(f"http://127.0.0.1:{server.server_port}/metrics ", file=sys.stderr, flush=True)
    query.awaitTermination()


def _publish(changed: DataFrame, _number: int) -> None:
    for row in changed.collect():
        labels = row["topic"], str(row["partition"])
        _END.labels(*labels).set(row["last"] + 1)
        _RECORDS.labels(*labels).set(row["records"])
        _BYTES.labels(*labels).set(row["bytes"] or 0)
        _NEWEST.labels(*labels).set(row["newest"].timestamp())


if __name__ == "__main__":
    main()
