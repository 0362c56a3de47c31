"""Columns as everybody reads them: what is not known is null, and times are timestamps."""

import pyarrow as pa
import pyarrow.compute as pc

TIME = pa.timestamp("us", "UTC")

MOST_MS = ((1 << 63) - 1) // 1000
"""The latest time that a timestamp can hold, Unix milliseconds. Clients may write any number of 64 bits."""

_NO_NUMBER = {each: pa.scalar(None, each) for each in (pa.int32(), pa.int64())}
_NO_TEXT = pa.scalar(None, pa.string())


def known(column: pa.Array) -> pa.Array:
    """Numbers, without those below 0."""
    return pc.if_else(pc.less(column, 0), _NO_NUMBER[column.type], column)


def only_with(column: pa.Array, other: pa.Array) -> pa.Array:
    """A column where ``other`` is known, too."""
    return pc.if_else(pc.is_valid(other), column, pa.scalar(None, column.type))


def known_text(column: pa.Array) -> pa.Array:
    """Texts, without empty ones."""
    return pc.if_else(pc.equal(column, ""), _NO_TEXT, column)


def times(milliseconds: pa.Array) -> pa.Array:
    """Timestamps, of Unix milliseconds; none where they are below 0, or beyond what a timestamp can hold."""
    held = pc.and_(pc.greater_equal(milliseconds, 0), pc.less_equal(milliseconds, MOST_MS))
    return pc.multiply(pc.if_else(held, milliseconds, _NO_NUMBER[pa.int64()]), 1000).cast(TIME)
