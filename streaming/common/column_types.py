"""The types of columns, as annotations of a class whose fields are columns, and what follows from such a class.

    @dataclass(frozen=True, slots=True)
    class Range:
        offset: Long = -1
        records: Count = 0
        reason: Text = ""

For a type checker these are plain types of Python: a `Long` is an ``int``. The class is the only place where its columns are declared.
"""

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_ADDED = "added"

Text = Annotated[str, pa.string()]
Int = Annotated[int, pa.int32()]
Long = Annotated[int, pa.int64()]
Flag = Annotated[bool, pa.bool_()]

Blob = Annotated[bytes | None, pa.binary()]
"""Packed values; null for none."""

Count = Annotated[int, pa.int64(), _ADDED]
"""A number that is added where two ranges become one."""

Counts = Annotated[tuple[int, ...], pa.list_(pa.int64()), _ADDED]
"""Several such numbers: as many as the default of the column has."""

LATER = "later"
"""Marks a column that earlier versions do not send or store. Its default has to mean "not known", and to make no number wrong.

When such a column is added, it is the last one of its class (`streaming.common.rows.unpack_rows`).
"""

MOST_SUM = 1 << 62
"""Where sums of counts end. No broker comes near; an agent that lies may, and another one's sum beside it has to fit the column too."""


def plus_columns(first: NDArray[np.int64], rows: NDArray[np.int64], add_up: Callable[[Any], Any]) -> NDArray[np.int64]:
    """The same for columns: ``add_up`` sums what the rows add to each value of ``first``."""
    found: NDArray[np.int64] = first + add_up(rows)
    most = max(int(each.max(initial=0)) for each in (first, rows))
    if most * (len(rows) + 1) <= MOST_SUM:  # as ever: the sums were exact
        return found
    about = first + add_up(rows.astype(np.float64))
    return np.where(about < MOST_SUM, np.minimum(found, MOST_SUM), MOST_SUM)


def plus(first: Any, second: Any) -> Any:
    """The sum of two values of a `Count` or `Counts`, at most `MOST_SUM`. It never falls."""
    return tuple(map(_added, first, second)) if isinstance(first, tuple) else _added(first, second)


def _added(first: int, second: int) -> int:
    return min(first + max(second, 0), MOST_SUM)


def columns_of(declared: type) -> Iterator[pa.Field]:
    """The columns of a class in the order of its fields, those of its base first."""
    for name, hint in get_type_hints(declared, include_extras=True).items():
        for each in get_args(hint)[1:]:
            if isinstance(each, pa.DataType):
                yield pa.field(name, each)


def counts_of(declared: type) -> tuple[str, ...]:
    """The columns of a class that are a `Count` or `Counts`."""
    return _marked(declared, _ADDED)


def _marked(declared: type, mark: str) -> tuple[str, ...]:
    return tuple(name for name, hint in get_type_hints(declared, include_extras=True).items() if mark in get_args(hint)[1:])


def later_of(declared: type) -> dict[str, object]:
    """The defaults of the columns that are `LATER`."""
    defaults = defaults_of(declared)
    return {name: defaults[name] for name in _marked(declared, LATER)}


def defaults_of(declared: type) -> dict[str, object]:
    """The defaults of the columns that have one."""
    return {each.name: each.default for each in fields(declared) if each.default is not MISSING}


def widths_of(declared: type) -> dict[str, int]:
    """The list columns of a class, and how many numbers each has."""
    return {name: len(default) for name, default in defaults_of(declared).items() if isinstance(default, tuple)}


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column in Python, lists as tuples."""
    values: list[Any] = column.to_pylist()
    return list(map(tuple, values)) if pa.types.is_list(column.type) else values
