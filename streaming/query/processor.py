"""The stateful processor: one shard a key, one value a shard. Everything that counts happens in `streaming.rules`."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from streaming.query.cutting import cut, overwritten_from
from streaming.query.state import ShardState
from streaming.rows import EVENTS, ROWS, SHARD, STATES, EventRow, pack_rows, unpack_rows
from streaming.rules.fold import Changed, ShardFold
from streaming.rules.log_state import LogKey
from streaming.workers import freeze_imports

_STATE = StructType([StructField("logs", BinaryType())])
_SHOWN_NAMES = [name for name in STATES.names if name != "change"]
_SHOWN = attrgetter(*_SHOWN_NAMES)
_LISTS = ("codec_bytes", "batch_bytes_buckets", "batch_records_buckets")


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
        fold = ShardFold(int(shard), before.marks, find=before.find, known=before.known, cut=cut, overwritten_from=overwritten_from)
        events = [row for frame in rows for packed in frame[ROWS] for row in _event_rows(packed)]
        before.load(LogKey(row.broker, row.topic, row.partition, row.topic_id) for row in events)
        fold.fold(events)
        changes = list(fold.changes())
        if fold.touched or fold.marks != before.marks:
            self._state.update((before.updated(fold.touched, fold.marks),))
        if changes:
            yield pd.DataFrame({SHARD: [shard], ROWS: [_state_rows(changes)]})

    def close(self) -> None:
        """Nothing is held any more, and everything is imported."""
        freeze_imports()


def _event_rows(packed: bytes) -> Iterator[EventRow]:
    rows = unpack_rows(packed, EVENTS)
    columns = []
    for name in EVENTS.names:
        values = rows[name].to_pylist()
        columns.append([tuple(value) for value in values] if name in _LISTS else values)
    return (EventRow(*values) for values in zip(*columns, strict=True))


def _state_rows(changes: Sequence[Changed]) -> bytes:
    columns = zip(*(_SHOWN(changed.state) for changed in changes), strict=True)
    values = dict(zip(_SHOWN_NAMES, columns, strict=True)) | {"change": [str(changed.change) for changed in changes]}
    return pack_rows(pa.RecordBatch.from_arrays([pa.array(values[each.name], each.type) for each in STATES], schema=STATES))
