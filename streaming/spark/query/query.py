"""The one streaming query: it folds events by shard, and hands the changed rows to a sink in the driver."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas import functions
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.readwriter import DataStreamWriter

from streaming.common.rows import PACKED, ROWS, SHARD, unpack_rows
from streaming.common.state_row import STATES
from streaming.errors import SegtailError
from streaming.spark.query.failure import reason
from streaming.spark.query.processor import ShardProcessor

QUERY_NAME = "segtail"


class FoldError(SegtailError):
    """A micro-batch could not be folded."""


def fold_events(events: DataFrame, sink: Callable[[pa.Table, int], None]) -> DataStreamWriter:
    """The query over a stream of `streaming.common.rows.PACKED` events; ``sink`` gets the changed rows and the number of each micro-batch.

    It has no timers: values that depend on the clock are computed when the metrics are rendered.
    """
    with _without_pandas():
        states = events.groupBy(SHARD).transformWithStateInPandas(
            ShardProcessor(), outputStructType=from_arrow_schema(PACKED), outputMode="Update", timeMode="None"
        )

    def deliver(batch: DataFrame, batch_id: int) -> None:
        try:
            shards = batch.collect()  # a few packed rows: Arrow would cost the driver a thread and a stream to serve them
        except (PySparkException, Py4JError) as error:
            # without the whole text: Spark parses it with regular expressions, and its thread runs out of stack
            raise FoldError(reason(error)) from None
        changed = [unpack_rows(bytes(shard[ROWS]), STATES) for shard in shards]
        sink(pa.Table.from_batches(changed, STATES), batch_id)

    return states.writeStream.queryName(QUERY_NAME).outputMode("update").foreachBatch(deliver)


@contextmanager
def _without_pandas() -> Iterator[None]:
    """PySpark does not look at the version of pandas: it would import it for that, and only the workers need it."""
    checks = vars(functions)
    check, checks[_CHECK] = checks[_CHECK], lambda: None
    try:
        yield
    finally:
        checks[_CHECK] = check


_CHECK = "require_minimum_pandas_version"
