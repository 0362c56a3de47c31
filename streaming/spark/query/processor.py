"""The stateful processor: one shard per key, two values per shard. The rules themselves are in `streaming.rules`.

Spark imports this module in each process that knows the query. So it imports PySpark alone; the fold brings the rest.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from streaming.common.workers import freeze_imports

if TYPE_CHECKING:
    import pandas as pd


_STATE = StructType([StructField("logs", BinaryType())])
_LISTS = StructType([StructField("segments", BinaryType())])


class ShardProcessor(StatefulProcessor):
    """Folds the rows of a shard into its state and hands out what changed (`streaming.common.state_row.STATES`)."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called once in each task."""
        self._state = handle.getValueState("shard", _STATE)
        self._lists = handle.getValueState("segments", _LISTS)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator["pd.DataFrame"]:  # noqa: N802, N803
        """Fold one micro-batch of one shard."""
        from streaming.spark.query.shard_fold import fold_frames

        del timerValues
        (shard,) = key
        return fold_frames(int(shard), rows, self._state, self._lists)

    def close(self) -> None:
        """The task is over: it holds no data any more, and everything is imported."""
        freeze_imports()
