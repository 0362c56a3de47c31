"""The values of all logs as one matrix of integers: a row of it is a column of `state_row.STATES`, a log is a slot in each."""

from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.common.arrays import Longs
from streaming.common.column_types import columns_of, widths_of
from streaming.common.rows import Change
from streaming.common.state_row import StateRow

FREE = 0
LOG = 1
DEPARTED = 2
RESIDUE = 3
KINDS = {Change.LOG: LOG, Change.DEPARTED: DEPARTED, Change.RESIDUE: RESIDUE}
"""Codes of ``kind``: what a slot holds. A new matrix is all zeros, so free."""

PLACES = ("kind", "broker", "topic", "partition", "replicas_of", "agent", "log_dir", "slot")
"""What a log belongs to. The table assigns these numbers: ``topic`` is a topic on a broker, ``replicas_of`` a partition on all brokers,
``agent`` an agent, ``log_dir`` a log dir on a broker. ``slot`` is the slot of the log itself."""

_NUMBERS = [each.name for each in columns_of(StateRow) if pa.types.is_integer(each.type) or pa.types.is_boolean(each.type)]
SCALARS = tuple(name for name in _NUMBERS if name not in PLACES)
"""Columns of one number, in units of `streaming.common.state_row`."""

LISTS = widths_of(StateRow)
"""Columns of several numbers, and how many. Buckets are counted separately, not cumulatively."""

_WIDTHS = dict.fromkeys((*PLACES, *SCALARS), 1) | LISTS
_ENDS = dict(zip(_WIDTHS, accumulate(_WIDTHS.values()), strict=True))
HEIGHT = _ENDS[next(reversed(_ENDS))]


class Columns:
    """Named views on a matrix of shape (HEIGHT, slots)."""

    __slots__ = ("matrix",)

    def __init__(self, matrix: Longs) -> None:
        self.matrix = matrix

    def __len__(self) -> int:
        return int(self.matrix.shape[1])

    def __getitem__(self, name: str) -> Longs:
        """The column ``name``: shape (slots,), for a list column (numbers, slots). Writing into it writes into the matrix."""
        end = _ENDS[name]
        return self.matrix[end - LISTS[name] : end] if name in LISTS else self.matrix[end - 1]

    def __contains__(self, name: str) -> bool:
        """Whether there is a column ``name``."""
        return name in _ENDS

    def select(self, slots: Longs) -> "Columns":
        """Some slots, in the order given."""
        return SelectedColumns(self, slots)

    def upto(self, slots: int) -> "Columns":
        """A copy of the first ``slots`` slots."""
        return Columns(self.matrix[:, :slots].copy())

    def grown(self, slots: int) -> "Columns":
        """A copy with room for ``slots`` slots, the new ones free."""
        return Columns(np.pad(self.matrix, ((0, 0), (0, slots - len(self)))))


class SelectedColumns(Columns):
    """Some slots of columns that nobody changes any more. A column is taken out when it is first read: of a hundred, few are."""

    __slots__ = ("_all", "_found", "_slots")

    def __init__(self, columns: Columns, slots: Longs) -> None:
        self._all = columns
        self._slots = slots
        self._found: dict[str, Longs] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, name: str) -> Longs:
        """The column ``name``, in the shape that the whole column has; it cannot be written."""
        found = self._found.get(name)
        if found is None:
            found = self._all[name][..., self._slots]
            found.flags.writeable = False
            self._found[name] = found
        return found


def empty_columns(slots: int) -> Columns:
    """Columns of free slots."""
    return Columns(np.zeros((HEIGHT, slots), np.int64))


def read_values(states: pa.Table) -> Columns:
    """The values of rows that are LOG, DEPARTED or RESIDUE; the numbers that the table assigns stay 0.

    A column that a row does not fill (a RESIDUE row has skipped bytes alone) counts as 0.

    Raises:
        ValueError: a list is neither empty nor of the length in `LISTS`.
    """
    columns = empty_columns(len(states))
    kinds = {str(change): kind for change, kind in KINDS.items()}
    columns["kind"][:] = [kinds[change] for change in states["change"].to_pylist()]
    for name in _NUMBERS:
        column = states[name].cast(pa.int64())
        columns[name][:] = pc.fill_null(column, 0).to_numpy()
    for name, width in LISTS.items():
        columns[name][:] = _read_list(states[name].combine_chunks(), name, width)
    return columns


def _read_list(column: pa.ListArray, name: str, width: int) -> Longs:
    """A list column as shape (width, rows)."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    filled = lengths == width
    if not (filled | (lengths == 0)).all():
        raise ValueError(f"a list in column {name} has not {width} numbers")
    values = np.zeros((len(column), width), np.int64)
    values[filled] = pc.list_flatten(column).to_numpy(zero_copy_only=False).reshape(-1, width)
    return values.T
