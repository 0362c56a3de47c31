"""The values of all logs: integers as a matrix with a row for each column of `state_row.STATES`, the others beside it."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.common.column_types import columns_of, widths_of
from streaming.common.rows import SEGMENTS, TRANSACTIONS, Change, unpack_entries
from streaming.common.state_row import StateRow
from streaming.rules.transaction_fold import NO_TRANSACTIONS, Transactions

log = logging.getLogger(__name__)

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

CARRIED = ("transactions", "coordinator", "segments")
"""Columns of `streaming.common.state_row.STATES`, in the order of `Carried.updated`."""

K = TypeVar("K", bound=Hashable)


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
    for name in ("log_start_offset", "local_log_start_offset"):  # as told; the end is as read, so that it may be behind
        np.minimum(columns[name], columns["log_end_offset"], out=columns[name])
    for name, width in LISTS.items():
        columns[name][:] = _read_list(states[name].combine_chunks(), name, width)
    return columns


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

    def select(self, slots: Longs) -> Columns:
        """Some slots, in the order given."""
        return SelectedColumns(self, slots)

    def upto(self, slots: int) -> Columns:
        """A copy of the first ``slots`` slots."""
        return Columns(self.matrix[:, :slots].copy())

    def grown(self, slots: int) -> Columns:
        """A copy with room for ``slots`` slots, the new ones free."""
        return Columns(np.pad(self.matrix, ((0, 0), (0, slots - len(self)))))


class SelectedColumns(Columns):
    """Some slots of columns that do not change any more. A column is taken out when it is first read: of a hundred, few are."""

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


def _read_list(column: pa.ListArray, name: str, width: int) -> Longs:
    """A list column as shape (width, rows)."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    filled = lengths == width
    if not (filled | (lengths == 0)).all():
        raise ValueError(f"a list in column {name} has not {width} numbers")
    values = np.zeros((len(column), width), np.int64)
    values[filled] = pc.list_flatten(column).to_numpy(zero_copy_only=False).reshape(-1, width)
    return values.T


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Carried:
    """The values of one log. ``coordinator`` is a batch of `rows.COORDINATOR`, ``segments`` of `SEGMENTS`; None until known.

    ``listed_bytes`` is the size of all segments together. ``last_segment`` is the base offset of the last one, ``last_bytes`` its size. All
    three are -1 if no segment is listed.
    """

    transactions: Transactions
    coordinator: pa.RecordBatch | None = None
    segments: NDArray[np.void] | None = None
    listed_bytes: int = -1
    last_segment: int = -1
    last_bytes: int = -1

    def updated(self, transactions: bytes | None, coordinator: bytes | None, segments: bytes | None) -> Carried:
        """The values after a row; None leaves a value as it is, except for ``transactions``."""
        after = self
        if transactions or len(self.transactions):
            after = replace(after, transactions=np.frombuffer(transactions, TRANSACTIONS) if transactions else NO_TRANSACTIONS)
        if coordinator is not None:
            after = replace(after, coordinator=unpack_entries(coordinator))
        if segments is None:
            return after
        if len(segments) % SEGMENTS.itemsize:
            log.error("the segments of a log are not understood")
            return after
        found = np.frombuffer(segments, SEGMENTS)
        if not len(found):
            return replace(after, segments=found)
        last, size = (int(found[name][-1]) for name in ("base_offset", "size"))
        return replace(after, segments=found, listed_bytes=int(found["size"].sum()), last_segment=last, last_bytes=size)


NOTHING_CARRIED = Carried(transactions=NO_TRANSACTIONS)


class Ids(Generic[K]):
    """A number for every key that is in use, and how often the key is used."""

    def __init__(self) -> None:
        self._of: dict[K, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """One more than the highest number ever given."""
        return len(self._uses)

    def find(self, key: K) -> int | None:
        """The key's number, or None if it has none."""
        return self._of.get(key)

    def find_all(self, keys: Sequence[K], missing: int) -> Longs:
        """The numbers of keys; ``missing`` for those that have none."""
        of = self._of
        return np.fromiter((of.get(key, missing) for key in keys), np.int64, len(keys))

    def take(self, key: K) -> int:
        """The key's number; a free number at its first use. Every `take` needs one `release`."""
        number = self._of.get(key)
        if number is None:
            if self._free:
                number = self._free.pop()
            else:
                number = len(self._uses)
                self._uses.append(0)
            self._of[key] = number
        self._uses[number] += 1
        return number

    def release(self, key: K) -> int | None:
        """Give one use of the key's number back; the number if that was the last and it is free now, else None.

        Raises:
            KeyError: the key has no number.
        """
        number = self._of[key]
        self._uses[number] -= 1
        if self._uses[number]:
            return None
        del self._of[key]
        self._free.append(number)
        return number
