"""Converts an agent's rows to this version's columns.

Columns are found by name and each one is checked, so that rows of another version are read correctly or not at all.
"""

import pyarrow as pa
import pyarrow.compute as pc

from streaming.broker.protocol.consumer_messages import Range
from streaming.common.column_types import counts_of, widths_of
from streaming.common.event_row import EVENT, EVENTS, MISSING, Event
from streaming.common.rows import SEGMENTS, TRANSACTION_STEPS, Kind
from streaming.errors import quoted

NULLABLE = frozenset(each.name for each in EVENT if pa.types.is_binary(each.type))
"""Columns that use null for "none"."""

_LENGTHS = widths_of(Event)

_SIZES = {"transactions": TRANSACTION_STEPS.itemsize, "segments": SEGMENTS.itemsize, "topics": 4}
"""Columns with values of several items, and the bytes of an item."""

MOST_COUNTED = 1 << 50
"""The most that one row counts of anything: so many rows can be added without an overflow."""

_OFFSETS = ("segment", "start_position", "end_position", "base_offset", "next_offset", "log_start_offset", "high_watermark", "follows")

_RANGES = dict.fromkeys(counts_of(Event), (0, MOST_COUNTED)) | dict.fromkeys(_OFFSETS, (-1, 1 << 62))
"""Columns of numbers, and what these are between."""

_OF_SOURCE = [str(Kind.ARRIVED), str(Kind.RECALL)]


def as_events(rows: pa.Table) -> pa.Table:
    """Convert rows to `streaming.common.event_row.EVENTS`. Columns that this version does not know are dropped.

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
    if name in _SIZES:
        sizes = pc.binary_length(column).drop_null().to_numpy()
        if (sizes % _SIZES[name]).any():
            raise ValueError(f"column {name} has a value that is not made of {_SIZES[name]} bytes each")
    if name in _RANGES:
        values = column.combine_chunks().flatten() if name in _LENGTHS else column
        found = pc.min_max(values)
        least, most = _RANGES[name]
        if len(values) and not least <= found["min"].as_py() <= found["max"].as_py() <= most:
            raise ValueError(f"column {name} has a value that is not between {least} and {most}")


def check_origin(rows: pa.Table, agent: str, request: Range) -> None:
    """Check that rows are of an agent and of the journal that was asked, and that nothing in them is for the source to say.

    Another agent's name would move on how far that one is read.

    Raises:
        ValueError: they are not; the message says what is wrong.
    """
    if not len(rows):
        return
    named = {name: rows[name].unique().to_pylist() for name in ("agent", "journal")}
    if agent and named["agent"] != [agent]:
        raise ValueError(f"they are of agent {quoted(named['agent'][0])}")
    if named["journal"] != [request.journal]:
        raise ValueError(f"they are of journal {quoted(named['journal'][0])}")
    if pc.max(rows["seq"]).as_py() > request.upto:
        raise ValueError(f"they go beyond {request.upto}")
    if pc.any(pc.is_in(rows["kind"], value_set=pa.array(_OF_SOURCE))).as_py():
        raise ValueError("some are of a kind that the source adds")
