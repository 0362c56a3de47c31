"""Converts an agent's rows to this version's columns.

Columns are found by name and each one is checked, so that rows of another version are read correctly or not at all.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streaming.rows import BATCH_BYTES_BOUNDS, BATCH_RECORDS_BOUNDS, CODECS, EVENTS, TRANSACTION_STEPS

MISSING: Mapping[str, Any] = {
    "max_timestamp": -1,
    "detail": None,
    "active_producers": -1,
    "leader": -2,
    "leader_epoch": -1,
    "follows": -1,
}
"""The default of a column of `EVENTS` that an agent does not send.

A column is listed here only if the default means "not known" and makes no number wrong. Every other column has to be sent. If a column is
added later and earlier agents cannot send it, it belongs here. Otherwise their protocol is no longer served
(`streaming.protocol.versions`).
"""

NULLABLE = frozenset({"detail", "transactions", "coordinator", "segments"})
"""Columns that use null for "none"."""

_LENGTHS = {
    "codec_bytes": len(CODECS),
    "batch_bytes_buckets": len(BATCH_BYTES_BOUNDS) + 1,
    "batch_records_buckets": len(BATCH_RECORDS_BOUNDS) + 1,
}


def as_events(rows: pa.Table) -> pa.Table:
    """Convert rows to `streaming.rows.EVENTS`. Columns that this version does not know are dropped.

    Raises:
        ValueError: a column cannot be used; the message names it.
    """
    if rows.schema.equals(EVENTS):
        found = rows
    else:
        found = pa.Table.from_arrays([_column(rows, each) for each in EVENTS], schema=EVENTS)
    for name in EVENTS.names:
        _check(name, found[name])
    return found


def _column(rows: pa.Table, wanted: pa.Field) -> pa.ChunkedArray:
    name = wanted.name
    count = rows.schema.names.count(name)
    if count == 0 and name in MISSING:
        return pa.chunked_array([pa.array([MISSING[name]] * len(rows), wanted.type)])
    if count != 1:
        raise ValueError(f"column {name} is missing" if count == 0 else f"column {name} is there {count} times")
    column = rows[name]
    if column.type != wanted.type and not (pa.types.is_integer(column.type) and pa.types.is_integer(wanted.type)):
        raise ValueError(f"column {name} is {column.type} and not {wanted.type}")
    try:
        return column.cast(wanted.type)
    except pa.ArrowInvalid as error:
        raise ValueError(f"column {name} has a value that does not fit {wanted.type}") from error


def _check(name: str, column: pa.ChunkedArray) -> None:
    if column.null_count and name not in NULLABLE:
        raise ValueError(f"column {name} has a null")
    if name in _LENGTHS and not pc.all(pc.equal(pc.list_value_length(column), _LENGTHS[name]), min_count=0).as_py():
        raise ValueError(f"column {name} has a list that is not {_LENGTHS[name]} long")
    if name == "transactions":
        sizes = pc.binary_length(column).drop_null().to_numpy()
        if (sizes % TRANSACTION_STEPS.itemsize).any():
            raise ValueError(f"column {name} has a value that is not made of {TRANSACTION_STEPS.itemsize} bytes each")
