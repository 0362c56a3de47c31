"""Converts between columns and values, for the fold by rows."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from operator import attrgetter

import pyarrow as pa

from streaming.common.column_types import values_of
from streaming.common.event_row import EventRow
from streaming.common.rows import Kind
from streaming.common.state_row import CHANGE, STATES
from streaming.rules.fold import LogChange

_FIELDS = tuple(each.name for each in fields(EventRow))
_SHOWN_NAMES = [name for name in STATES.names if name != CHANGE]
_SHOWN = attrgetter(*_SHOWN_NAMES)


def event_rows(rows: pa.RecordBatch) -> Iterator[EventRow]:
    """Return each row of `EVENTS` as a value."""
    columns = {name: values_of(rows[name]) for name in _FIELDS}
    columns["kind"] = list(map(Kind, columns["kind"]))
    return (EventRow(*values) for values in zip(*columns.values(), strict=True))


def state_rows(changes: Sequence[LogChange]) -> pa.RecordBatch:
    """Return changes as rows of `STATES`, at least one."""
    columns = zip(*(_SHOWN(changed.state) for changed in changes), strict=True)
    values = dict(zip(_SHOWN_NAMES, columns, strict=True)) | {CHANGE: [str(changed.change) for changed in changes]}
    return pa.RecordBatch.from_arrays([pa.array(values[each.name], each.type) for each in STATES], schema=STATES)
