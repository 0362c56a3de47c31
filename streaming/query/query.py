"""The one streaming query: events in, folded by shard, changed rows out to a sink in the driver."""

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.readwriter import DataStreamWriter

from streaming.query.processor import ShardProcessor
from streaming.rows import SHARD, STATES

QUERY_NAME = "segtail"


def fold_events(events: DataFrame, sink: Callable[[pa.Table, int], None]) -> DataStreamWriter:
    """The query over a stream of `streaming.rows.SHARDED_EVENTS`; ``sink`` gets the changed rows and the number of each micro-batch.

    Without timers: what depends on the clock is worked out where the metrics are rendered.
    """
    states = events.groupBy(SHARD).transformWithStateInPandas(
        ShardProcessor(), outputStructType=from_arrow_schema(STATES), outputMode="Update", timeMode="None"
    )

    def deliver(batch: DataFrame, batch_id: int) -> None:
        sink(batch.toArrow(), batch_id)

    return states.writeStream.queryName(QUERY_NAME).outputMode("update").foreachBatch(deliver)
