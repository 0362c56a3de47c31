"""Converts an agent's rows to this version's columns.

Columns are found by name and each one is checked, so that rows of another version are read correctly or not at all.
"""

import pyarrow as pa
import pyarrow.compute as pc

from streaming.column_types import widths_of
from streaming.event_row import EVENT, EVENTS, MISSING, Event
from streaming.rows import TRANSACTION_STEPS

NULLABLE = frozenset(each.name for each in EVENT if pa.types.is_binary(each.type))
"""Columns that use null for "none"."""

_LENGTHS = widths_of(Event)


def as_events(rows: pa.Table) -> pa.Table:
    """Convert rows to `streaming.event_row.EVENTS`. Columns that this version does not know are dropped.

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
