"""A program of somebody who reads the public stream into Parquet: a query of each relation, started again when it fails."""

import os
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).parents[2]
RELATIONS = ("ranges", "batches", "transactions")


def main(words: list[str]) -> int:
    """``ADDRESS DIRECTORY [once]``: run until killed, or once over all that is there."""
    address, directory, once = words[0], Path(words[1]), words[2:] == ["once"]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "streaming/spark/lookup"), str(ROOT)])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "512m")
    builder = builder.config("spark.python.authenticate.socketTimeout", "600s").config("spark.sql.session.timeZone", "UTC")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def start(relation: str):
        rows = spark.readStream.format("segtail").options(
            agents=address, relation=relation, startingPosition="earliest", maxBytesPerTrigger="2m"
        )
        written = rows.load().writeStream.format("parquet").option("checkpointLocation", str(directory / f"{relation}.checkpoint"))
        written = written.trigger(availableNow=True) if once else written.trigger(processingTime="200 milliseconds")
        query = written.start(str(directory / relation))
        while query.isActive and not query.recentProgress:  # Spark's Python sources write to one map when they start, without a lock
            threading.Event().wait(0.1)
        return query

    running = {relation: start(relation) for relation in RELATIONS}
    while True:
        for relation, query in running.items():
            if once:
                query.awaitTermination()
            elif not query.isActive:
                sys.stderr.write(f"{relation} failed: {str(query.exception())[:2000]}\n")
                running[relation] = start(relation)
        if once:
            return 0
        threading.Event().wait(0.2)


if __name__ == "__main__":
    os._exit(main(sys.argv[2:]))  # the first word is the program that a service starts otherwise; a stopped JVM is not waited for
