"""The stateful processor: one shard per key, two values per shard. The rules themselves are in `streaming.rules`."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from streaming.broker.journal.cutting import cut, overwritten_from
from streaming.common.rows import ROWS, SHARD
from streaming.common.workers import freeze_imports
from streaming.rules.shard import fold_shard
from streaming.rules.shard_state import ShardState

_STATE = StructType([StructField("logs", BinaryType())])
_LISTS = StructType([StructField("segments", BinaryType())])


class ShardProcessor(StatefulProcessor):
    """Folds the rows of a shard into its state and hands out what changed (`streaming.common.state_row.STATES`)."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called once in each task."""
        self._state = handle.getValueState("shard", _STATE)
        self._lists = handle.getValueState("segments", _LISTS)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        """Fold one micro-batch of one shard."""
        del timerValues
        (shard,) = key
        before = ShardState(_kept(self._state), partial(_kept, self._lists))
        packs = [bytes(packed) for frame in rows for packed in frame[ROWS]]
        folded = fold_shard(int(shard), before, packs, cut=cut, overwritten_from=overwritten_from)
        if folded.value is not None:
            self._state.update((folded.value,))
        if folded.lists is not None:
            self._lists.update((folded.lists,))
        if folded.changed_rows is not None:
            yield pd.DataFrame({SHARD: [shard], ROWS: [folded.changed_rows]})

    def close(self) -> None:
        """The task is over: it holds no data any more, and everything is imported."""
        freeze_imports()


def _kept(state: Any) -> bytes | None:
    found = state.get()
    return None if found is None else bytes(found[0])
