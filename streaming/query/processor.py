"""The stateful processor: one shard a key, one value a shard. Everything that counts happens in `streaming.rules`."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from streaming.query.cutting import cut
from streaming.query.state import ShardState
from streaming.rows import EVENTS, SHARD, STATES, EventRow
from streaming.rules.fold import Changed, ShardFold

_STATE = StructType([StructField("logs", BinaryType())])
_LISTS = ("codec_bytes", "batch_bytes_buckets", "batch_records_buckets")
_EXTRA = ("journal", "seq", "departed")


class ShardProcessor(StatefulProcessor):
    """Folds the rows of a shard into its state and hands out what changed (`streaming.rows.STATES`)."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called once in each task."""
        self._state = handle.getValueState("shard", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        """Fold one micro-batch of one shard."""
        del timerValues
        (shard,) = key
        kept = self._state.get()
        before = ShardState(None if kept is None else bytes(kept[0]))
        fold = ShardFold(int(shard), find=before.find, known=before.known, cut=cut)
        fold.fold(row for frame in rows for row in _event_rows(frame))
        changes = list(fold.changes())
        if fold.touched:
            self._state.update((before.updated(fold.touched),))
        if changes:
            yield pd.DataFrame([_state_row(change, int(shard)) for change in changes], columns=STATES.names)

    def close(self) -> None:
        """Nothing is held."""


def _event_rows(frame: pd.DataFrame) -> Iterator[EventRow]:
    columns = []
    for name in EVENTS.names:
        values = frame[name].tolist()
        columns.append([tuple(value.tolist()) for value in values] if name in _LISTS else values)
    return (EventRow(*values) for values in zip(*columns, strict=True))


def _state_row(changed: Changed, shard: int) -> dict[str, Any]:
    row = asdict(changed.state)
    for name in _EXTRA:
        del row[name]
    return {"change": str(changed.change), **row, SHARD: shard}
