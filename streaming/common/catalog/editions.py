"""The versions of the catalog of one agent process: which rows have changed since which version."""

import threading
import uuid
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.common.catalog.catalog_tables import NOTHING_DECIDED, Catalog, key_of, spelled, together
from streaming.common.catalog.changes import Changes, Version, with_gone

MOST_GONE = 10_000
"""How many removed rows of each table are remembered. A version from before the oldest of them gets the whole catalog."""


class Editions:
    """One thread updates it; any thread may read it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = uuid.uuid4().hex
        self._number = 0
        self._made = False
        self._tables = tuple(_VersionedRows(table) for table in NOTHING_DECIDED.tables)

    def update(self, catalog: Catalog) -> None:
        """Replace the catalog. The version changes only if the new catalog differs."""
        with self._lock:
            self._made = True
            number = self._number + 1
            changed = [rows.update(table, number) for rows, table in zip(self._tables, catalog.tables, strict=True)]
            self._number += any(changed)

    def since(self, versions: Iterable[Version]) -> Changes | None:
        """The changes since the newest ``versions`` version of this process; the whole catalog if none of ``versions`` is of this process.

        None before the first catalog is made, because an unknown catalog is not an empty one.
        """
        with self._lock:
            if not self._made:
                return None
            numbers = [each.number for each in versions if each.process == self._process]
            number = max(numbers, default=-1)
            whole = number < max(rows.forgotten for rows in self._tables) or number > self._number
            tables = tuple(rows.since(-1 if whole else number, gone=not whole) for rows in self._tables)
            return Changes(version=Version(self._process, self._number), whole=whole, tables=tables)


class _VersionedRows:
    """One table, with the version number at which each row changed last."""

    def __init__(self, table: pa.Table) -> None:
        self.forgotten = 0
        """The changes since a version before this one cannot be determined any more."""
        self._table = table
        self._key = key_of(table.schema)
        self._spelled = spelled(table, self._key)
        self._changed: Longs = np.empty(0, np.int64)
        self._gone = table.select(self._key)
        self._gone_at: Longs = np.empty(0, np.int64)

    def update(self, table: pa.Table, number: int) -> bool:
        """Returns whether anything has changed."""
        if table.equals(self._table):
            return False
        names = self._spelled if table.select(self._key).equals(self._table.select(self._key)) else spelled(table, self._key)
        known_rows: Longs = _ints(pc.fill_null(pc.index_in(names, value_set=self._spelled), -1)).astype(np.int64)
        same = _same(table, self._table, known_rows)
        changed: Longs = np.where(same, self._changed[known_rows] if len(self._changed) else 0, number)
        left = np.ones(len(self._table), np.bool_)
        left[known_rows[known_rows >= 0]] = False
        self._leave(self._table.select(self._key).filter(pa.array(left)), number, names)
        self._table, self._spelled, self._changed = table, names, changed
        return True

    def _leave(self, gone: pa.Table, number: int, there: pa.Array) -> None:
        """Remember the removed rows, except those that have come back."""
        away = ~_ints(pc.is_in(spelled(self._gone, self._key), value_set=there))
        at = np.append(self._gone_at[away], np.full(len(gone), number, np.int64))
        rows = pa.concat_tables([self._gone.filter(pa.array(away)), gone])
        if len(rows) > MOST_GONE:
            self.forgotten = int(at[-MOST_GONE // 2 - 1])
            kept = at > self.forgotten
            rows, at = rows.filter(pa.array(kept)), at[kept]
        self._gone, self._gone_at = rows.combine_chunks(), at

    def since(self, number: int, *, gone: bool) -> pa.Table:
        rows = with_gone(self._table.filter(pa.array(self._changed > number)), gone=False)
        lost = self._gone.filter(pa.array(self._gone_at > number))
        if not gone or not len(lost):
            return rows
        columns = [lost[each.name] if each.name in self._key else pa.nulls(len(lost), each.type) for each in self._table.schema]
        return pa.concat_tables([rows, with_gone(pa.Table.from_arrays(columns, schema=self._table.schema), gone=True)])


def _same(table: pa.Table, before: pa.Table, known_rows: Longs) -> Flags:
    """Whether each row is equal to the earlier row with the same key."""
    same: Flags = known_rows >= 0
    if not same.any():
        return same
    earlier = before.take(pa.array(known_rows.clip(0)))
    for name in table.column_names:
        now, then = _comparable(table[name]), _comparable(earlier[name])
        both_null = pc.and_(pc.is_null(now), pc.is_null(then))
        same = same & (_ints(pc.fill_null(pc.equal(now, then), False)) | _ints(both_null))
    return same


def _comparable(column: pa.ChunkedArray) -> pa.Array:
    whole = together(column)
    return pc.binary_join(whole.cast(pa.list_(pa.string())), ",") if pa.types.is_list(whole.type) else whole


def _ints(column: Any) -> NDArray[Any]:
    values: NDArray[Any] = together(column).to_numpy(zero_copy_only=False)
    return values
