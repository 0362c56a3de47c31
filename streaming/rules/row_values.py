"""Converts between columns and values, for the fold by rows."""

from collections.abc import Iterator, Sequence
from operator import attrgetter

import pyarrow as pa

from streaming.rows import EVENTS, STATES, EventRow
from streaming.rules.fold import Changed

_SHOWN_NAMES = [name for name in STATES.names if name != "change"]
_SHOWN = attrgetter(*_SHOWN_NAMES)
_LISTS = ("codec_bytes", "batch_bytes_buckets", "batch_records_buckets")


def event_rows(rows: pa.RecordBatch) -> Iterator[EventRow]:
    """Return each row of `EVENTS` as a value."""
    columns = []
    for name in EVENTS.names:
        values = rows[name].to_pylist()
        columns.append([tuple(value) for value in values] if name in _LISTS else values)
    return (EventRow(*values) for values in zip(*columns, strict=True))


def state_rows(changes: Sequence[Changed]) -> pa.RecordBatch:
    """Return changes as rows of `STATES`, at least one."""
    columns = zip(*(_SHOWN(changed.state) for changed in changes), strict=True)
    values = dict(zip(_SHOWN_NAMES, columns, strict=True)) | {"change": [str(changed.change) for changed in changes]}
    return pa.RecordBatch.from_arrays([pa.array(values[each.name], each.type) for each in STATES], schema=STATES)
