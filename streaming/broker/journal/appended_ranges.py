"""Ranges of many logs that were read in one pass, as columns of events: the journal takes them without a value for each row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.broker.journal.blocks import BLOCK
from streaming.common.arrays import Longs
from streaming.common.column_types import defaults_of
from streaming.common.event_row import EVENT, Event
from streaming.common.log_key import KEY, LogKey, key_arrays
from streaming.common.rows import Kind

_DEFAULTS = defaults_of(Event)


@dataclass(frozen=True, slots=True, eq=False)
class AppendedRanges:
    """APPENDED events of as many logs, one of each, in order.

    ``base_offset``, ``next_offset``, ``log_epoch`` and ``bytes`` are columns of theirs in numpy; ``columns`` are all of `EVENT`.
    """

    logs: Sequence[LogKey]
    base_offset: Longs
    next_offset: Longs
    log_epoch: Longs
    bytes: Longs
    columns: pa.RecordBatch

    @classmethod
    def of(cls, logs: Sequence[LogKey], columns: Mapping[str, Any]) -> "AppendedRanges":
        """Ranges of these logs. Columns that are not given have the default of `Event`; a list has a row of a table for each range."""
        given = {**dict(zip(KEY, key_arrays(logs), strict=True)), **columns}
        arrays = [_column(field, given, len(logs)) for field in EVENT]
        base_offset, next_offset, log_epoch, size = (columns[name] for name in ("base_offset", "next_offset", "log_epoch", "bytes"))
        return cls(logs, base_offset, next_offset, log_epoch, size, pa.RecordBatch.from_arrays(arrays, schema=EVENT))

    def placed(self, seq: int, total: int, published_upto: Longs) -> pa.RecordBatch:
        """The block of the rows that come after ``seq``, where so many bytes were published before; for the last argument see `Event`."""
        places = [pa.array(seq + 1 + np.arange(len(self.logs))), pa.array(total + np.cumsum(self.bytes))]
        columns = dict(zip(EVENT.names, self.columns.columns, strict=True)) | {"published_upto": pa.array(published_upto)}
        return pa.RecordBatch.from_arrays([*places, *columns.values()], schema=BLOCK)


def _column(field: pa.Field, given: Mapping[str, Any], rows: int) -> pa.Array:
    if field.name == "kind":
        return pa.repeat(pa.scalar(str(Kind.APPENDED)), rows)
    if field.name not in given:
        return pa.repeat(pa.scalar(_DEFAULTS[field.name], field.type), rows)
    values = given[field.name]
    return _lists(values) if pa.types.is_list(field.type) else pa.array(values, field.type)


def _lists(table: NDArray[np.int64]) -> pa.Array:
    ends = np.arange(len(table) + 1, dtype=np.int32) * table.shape[1]
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(np.ascontiguousarray(table).reshape(-1)))
