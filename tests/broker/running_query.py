"""A process with Structured Streaming queries on Spark's own Kafka source, which do what a test asks: a line of JSON each, on stdin.

    python -m tests.broker.running_query BOOTSTRAP

A query counts the records that it gets. It may fail in its micro-batch, or wait there, so that it is planned and not committed.
"""

import json
import sys
from threading import Event
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.broker.install import spark_kafka_jars

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def session() -> SparkSession:
    """A small one, with Spark's own Kafka source."""
    builder = SparkSession.builder.master("local[2]").appName("queries")
    for name, value in {**_SETTINGS, "spark.jars": ",".join(map(str, spark_kafka_jars()))}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class Asked:
    """The queries of one process."""

    def __init__(self, bootstrap: str) -> None:
        self._session = session()
        self._session.sparkContext.setLogLevel("OFF")
        self._bootstrap = bootstrap
        self._rows = 0
        self._let_go, self._held = Event(), Event()
        self._running: StreamingQuery | None = None

    def run(self, **given: Any) -> dict[str, object]:
        """Read all that is there, and say how many records that was; or why it failed."""
        self._rows = 0
        try:
            self._writer(self._count, **given).trigger(availableNow=True).start().awaitTermination()
        except StreamingQueryException as error:
            return {"rows": self._rows, "error": _why(error)}
        return {"rows": self._rows, "error": ""}

    def fail(self, **given: Any) -> dict[str, object]:
        """Plan a micro-batch, and fail in it."""
        try:
            self._writer(_refuse, **given).trigger(availableNow=True).start().awaitTermination()
        except StreamingQueryException as error:
            return {"error": _why(error)}
        return {"error": ""}

    def hold(self, **given: Any) -> dict[str, object]:
        """Begin with a micro-batch that waits, and go on running."""
        self._rows = 0
        self._running = self._writer(self._wait, **given).start()
        self._held.wait()
        return {}

    def release(self) -> dict[str, object]:
        """Let it go on, and end the query when it has read all that is there."""
        assert self._running is not None
        self._let_go.set()
        self._running.processAllAvailable()
        self._running.stop()
        return {"rows": self._rows}

    def _writer(self, sink: Any, *, topic: str, checkpoint: str, isolation: str, loss: bool = True) -> Any:
        reader = self._session.readStream.format("kafka").option("kafka.bootstrap.servers", self._bootstrap).option("subscribe", topic)
        reader = reader.option("startingOffsets", "earliest").option("failOnDataLoss", str(loss).lower())
        records = reader.option("kafka.isolation.level", isolation).load()
        return records.writeStream.option("checkpointLocation", checkpoint).foreachBatch(sink)

    def _count(self, records: DataFrame, _: int) -> None:
        self._rows += records.count()

    def _wait(self, records: DataFrame, number: int) -> None:
        self._held.set()
        self._let_go.wait()
        self._count(records, number)


def _why(error: StreamingQueryException) -> str:
    """The message, without the plan of the query."""
    return str(error).partition("=== Streaming Query ===")[0]


def _refuse(_records: DataFrame, _number: int) -> None:
    raise RuntimeError("aborted by the test")


def main() -> None:
    """Answer until stdin ends."""
    asked = Asked(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        sys.stdout.write(json.dumps(getattr(asked, request.pop("do"))(**request)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
