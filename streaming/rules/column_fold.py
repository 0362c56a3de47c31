"""Folds ordinary rows (`streaming.rules.ordinary`): columns in, columns out, without a Python object for each row or log.

The result is the same as that of `streaming.rules.log_fold` for each row: counters are sums, times are maxima, everything else comes from
the last row.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.common.column_types import plus_columns
from streaming.common.rows import Change, Kind
from streaming.common.state_row import STATES
from streaming.rules.counters import SHARED, SUMMED
from streaming.rules.log_fold import BY, FOUND_COLUMNS
from streaming.rules.row_order import KINDS, ints, taken
from streaming.rules.shard_state import SCHEMA, ReplacedLogs, ShardState

_LARGE = ("coordinator", "segments")
_NONE = -1
_LEAST = np.iinfo(np.int64).min


class _Rows:
    """The rows of some logs, sorted by log. The methods combine the rows of each log and return one item for each log."""

    def __init__(self, rows: pa.RecordBatch, kinds: Longs, places: Longs) -> None:
        order = np.argsort(places, kind="stable")
        self.rows, self._kinds, places = taken(rows, order), kinds[order], places[order]
        self.starts = np.flatnonzero(np.append(True, places[1:] != places[:-1]))
        self.places = places[self.starts]
        self.appended = self._kinds == KINDS.index(Kind.APPENDED)
        self.counts = np.diff(np.append(self.starts, len(places)))
        self._single = len(self.starts) == len(places)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return ints(self.rows[name])

    def any(self, flags: Flags) -> Flags:
        return flags if self._single else np.logical_or.reduceat(flags, self.starts)

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self._single else np.add.reduceat(values, self.starts, axis=0)

    def most(self, values: NDArray[Any], wanted: Flags) -> NDArray[Any]:
        values = np.where(wanted, values, _LEAST)
        return values if self._single else np.maximum.reduceat(values, self.starts)

    def first(self, wanted: Flags) -> Longs:
        """The first row of each log among the wanted ones, `_NONE` if there is none."""
        from_end = self.most(np.arange(len(wanted), 0, -1), wanted)
        return np.where(from_end > 0, len(wanted) - from_end, _NONE)

    def last(self, wanted: Flags) -> Longs:
        """The last row of each log among the wanted ones, `_NONE` if there is none."""
        return self.most(np.arange(len(wanted)), wanted).clip(_NONE)


def fold_columns(table: pa.Table, rows: pa.RecordBatch, kinds: Longs, places: Longs) -> tuple[ReplacedLogs, pa.RecordBatch]:
    """Fold ordinary rows.

    Args:
        table: the shard's logs, of `SCHEMA`.
        rows: of `EVENTS`, at least one, in the order in which they are folded.
        kinds: for each row, the index of its kind in `KINDS`.
        places: for each row, the index of its log in the table.

    Returns:
        The logs that were changed, and their rows of `STATES`.
    """
    of = _Rows(rows, kinds, places)
    known = table.take(pa.array(of.places))
    changed = {**_ends(known, of), **_found(known, of), **_counters(known, of), **_shares(known, of)}
    replaced = pa.Table.from_arrays([_array(changed.get(each.name, known[each.name]), each.type) for each in SCHEMA], schema=SCHEMA)
    return ReplacedLogs(replaced, of.places), _shown(replaced)


def everything(state: ShardState) -> pa.RecordBatch:
    """Return all logs of a shard as rows of `STATES`, with the large columns, even if they have not changed."""
    table, lists = state.table, state.lists.open()
    known = {"segments": pa.array([lists.get(key) for key in state.known()], pa.binary())}
    logs = pc.if_else(table["departed"], str(Change.DEPARTED), str(Change.LOG))
    change = pc.if_else(pc.equal(table["topic"], ""), str(Change.RESIDUE), logs)
    known["change"] = change
    columns = [known[each.name] if each.name in known else table[each.name] for each in STATES]
    found = pa.Table.from_arrays(columns, schema=STATES).combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], STATES)


def _array(values: Any, kind: pa.DataType) -> Any:
    return pa.array(values, kind) if isinstance(values, np.ndarray) else values


def _chosen(of: _Rows, name: str, items: Longs, known: pa.Table, kept: str) -> NDArray[Any]:
    """Take a column from these rows, and the known value where there is no row."""
    return np.where(items != _NONE, of[name][items], ints(known[kept]))


def _ends(known: pa.Table, of: _Rows) -> dict[str, Any]:
    """The values that the last append of each log decides, such as its end."""
    last = of.last(of.appended)
    there, newest = last != _NONE, of.most(of["max_timestamp"], of.appended)
    segment, end_segment = of["segment"], _chosen(of, "segment", last, known, "active_segment")
    in_it = of.appended & (segment == np.repeat(end_segment, of.counts))
    goes_on = (segment[of.first(of.appended)] == end_segment) & (ints(known["active_segment"]) == end_segment)
    active = np.maximum(of.most(of["max_timestamp"], in_it), np.where(goes_on, ints(known["active_max_timestamp_ms"]), _NONE))
    journal = of.rows["journal"].take(pa.array(last.clip(0)))
    by = pc.binary_join_element_wise(known["agent"].cast(pa.string()), journal.cast(pa.string()), BY)
    return {
        "journal": pc.if_else(pa.array(there), journal, known["journal"]),
        "counted_by": pc.if_else(pa.array(there), by, known["counted_by"]),
        "log_end_offset": _chosen(of, "next_offset", last, known, "log_end_offset"),
        "log_epoch": _chosen(of, "log_epoch", of.last(of.appended & (of["log_epoch"] >= 0)), known, "log_epoch"),
        "last_append_ms": np.maximum(ints(known["last_append_ms"]), of.most(of["seen_at"], of.appended)),
        "max_timestamp_ms": np.maximum(ints(known["max_timestamp_ms"]), newest),
        "active_segment": end_segment,
        "active_position": _chosen(of, "end_position", last, known, "active_position"),
        "active_max_timestamp_ms": np.where(there, active, ints(known["active_max_timestamp_ms"])),
    }


def _found(known: pa.Table, of: _Rows) -> dict[str, Any]:
    """The values that the last row decides: the last list of segments, for some of them also the last append."""
    found, every = ~of.appended, np.ones(len(of.appended), np.bool_)
    last = of.last(found)
    before = np.maximum.accumulate(np.where(of.appended, np.arange(len(found)), _NONE))[last]
    end_then = np.where(before >= of.starts, of["next_offset"][before], ints(known["log_end_offset"]))
    log_start = np.where(last != _NONE, np.minimum(of["log_start_offset"][last], end_then), ints(known["log_start_offset"]))
    return {
        "log_start_offset": log_start,
        **{name: _chosen(of, name, last, known, name) for name in FOUND_COLUMNS},
        "high_watermark": _chosen(of, "high_watermark", of.last(found | (of["high_watermark"] != _NONE)), known, "high_watermark"),
        "active_producers": of["active_producers"][of.last(every)],
        "settled": ints(known["settled"]) | of.any(of["settled"]),
    }


def _counters(known: pa.Table, of: _Rows) -> dict[str, Any]:
    return {name: plus_columns(ints(known[name]), of[column] * of.appended, of.sum) for name, column in SUMMED.items()}


def _shares(known: pa.Table, of: _Rows) -> dict[str, Any]:
    """The counters that count for the topic too, because the replica led."""
    led = of.appended & (of["leads"] != 0)
    shares: dict[str, Any] = {}
    for kept, name in SHARED.items():
        if not pa.types.is_list(SCHEMA.field(kept).type):
            shares[kept] = plus_columns(ints(known[kept]), of[name] * led, of.sum)
            continue
        before = _matrix(known[kept].combine_chunks(), len(of.places))
        values = np.zeros((len(led), before.shape[1]), np.int64)
        if led.any():
            values[led] = _matrix(of.rows[name].filter(pa.array(led)), int(led.sum()))
        shares[kept] = _lists(plus_columns(before, values, of.sum))
    return shares


def _matrix(column: Any, rows: int) -> Longs:
    """Convert lists of equal length to a matrix with one row for each list."""
    flat: Longs = ints(column.flatten())
    return flat.reshape(rows, -1)


def _lists(values: Longs) -> pa.Array:
    offsets = np.arange(0, values.size + 1, max(1, values.shape[1]), dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.ravel()))


def _shown(replaced: pa.Table) -> pa.RecordBatch:
    """The rows to hand out, without the large columns, which have not changed."""
    columns = []
    for each in STATES:
        if each.name == "change":
            columns.append(pa.array([str(Change.LOG)] * len(replaced), each.type))
        elif each.name in _LARGE:
            columns.append(pa.nulls(len(replaced), each.type))
        else:
            columns.append(replaced[each.name])
    (batch,) = pa.Table.from_arrays(columns, schema=STATES).combine_chunks().to_batches()
    return batch
