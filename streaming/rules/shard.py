"""Folds one micro-batch of one shard: ordinary logs by columns, all others row by row. The result is the same either way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.common.column_types import values_of
from streaming.common.event_row import EVENTS, EventRow
from streaming.common.log_key import key_of
from streaming.common.rows import Change, Kind, pack_rows, unpack_rows
from streaming.common.state_row import CHANGE, STATES
from streaming.rules.column_fold import arrivals, everything, fold_columns, taken, unusual_logs
from streaming.rules.fold import LogChange, ShardFold, recalled
from streaming.rules.shard_state import ShardState

FEW = 8
"""Fewer rows than this cost less as objects than as columns."""

_OF_LISTS = pa.array([str(kind) for kind in (Kind.GONE, Kind.CENSUS_END, Kind.RECALL)])
_IN_THE_STATE = (Change.LOG, Change.DEPARTED, Change.RESIDUE)
Cut = Callable[[EventRow, int], EventRow | None]
From = Callable[[EventRow, int], int | None]

_FIELDS = tuple(each.name for each in fields(EventRow))

_STATE_NAMES = [name for name in STATES.names if name != CHANGE]

_STATE_VALUES = attrgetter(*_STATE_NAMES)


def fold_shard(shard: int, before: ShardState, packs: Iterable[bytes], *, cut: Cut, overwritten_from: From) -> FoldResult:
    """Fold packed rows of `EVENTS`. For the arguments see `ShardFold`."""
    batches = [unpack_rows(packed, EVENTS) for packed in packs]
    fold = fold_by_rows if sum(map(len, batches)) < FEW and not any(map(_recalls, batches)) else fold_by_columns
    return fold(shard, before, batches, cut=cut, overwritten_from=overwritten_from)


@dataclass(frozen=True, slots=True)
class FoldResult:
    """The result of a micro-batch.

    Args:
        value: the new state, None if it has not changed.
        lists: the new lists of segments, None if they have not changed.
        changed_rows: packed rows of `STATES`, None for none.
    """

    value: bytes | None
    lists: bytes | None
    changed_rows: bytes | None


def fold_by_rows(shard: int, before: ShardState, batches: Sequence[pa.RecordBatch], *, cut: Cut, overwritten_from: From) -> FoldResult:
    """Fold with a value for every row and for every log that is touched."""
    _open_lists(before, batches)
    rows = [each for batch in batches for each in event_rows(batch)]
    before.load(map(key_of, rows))
    fold = ShardFold(shard, before.marks, find=before.find, keys=before.known, cut=cut, overwritten_from=overwritten_from)
    fold.fold(rows)
    changes = list(fold.changes())
    stays = not fold.touched and fold.marks == before.marks
    value = None if stays else before.updated(fold.touched, fold.marks)
    return FoldResult(value, _lists(before, value), pack_rows(state_rows(changes)) if changes else None)


def _open_lists(state: ShardState, batches: Iterable[pa.RecordBatch]) -> None:
    """Open the lists if needed. This has to be done before any log is loaded, because loaded logs do not get their list later."""
    lists = (rows["segments"].null_count < len(rows) or pc.any(pc.is_in(rows["kind"], value_set=_OF_LISTS)).as_py() for rows in batches)
    if any(lists):
        state.lists.open()


def event_rows(rows: pa.RecordBatch) -> Iterator[EventRow]:
    """Return each row of `EVENTS` as a value."""
    columns = {name: values_of(rows[name]) for name in _FIELDS}
    columns["kind"] = list(map(Kind, columns["kind"]))
    return (EventRow(*values) for values in zip(*columns.values(), strict=True))


def _lists(state: ShardState, value: bytes | None) -> bytes | None:
    return state.lists.value() if value is not None and state.lists.changed else None


def state_rows(changes: Sequence[LogChange]) -> pa.RecordBatch:
    """Return changes as rows of `STATES`, at least one."""
    columns = zip(*(_STATE_VALUES(changed.state) for changed in changes), strict=True)
    values = dict(zip(_STATE_NAMES, columns, strict=True)) | {CHANGE: [str(changed.change) for changed in changes]}
    return pa.RecordBatch.from_arrays([pa.array(values[each.name], each.type) for each in STATES], schema=STATES)


def _recalls(rows: pa.RecordBatch) -> bool:
    return bool(pc.any(pc.equal(rows["kind"], str(Kind.RECALL))).as_py())


def fold_by_columns(shard: int, before: ShardState, batches: Sequence[pa.RecordBatch], *, cut: Cut, overwritten_from: From) -> FoldResult:
    """Fold with values only for the rows of unusual logs, and for those logs."""
    _open_lists(before, batches)
    found = arrivals(batches, before.marks)
    places = before.places(found.rows)
    unusual = unusual_logs(before, found, places)
    ordinary = ~unusual[places] & ~found.of_kind(Kind.CENSUS)
    batches, replaced = [], None
    if ordinary.any():
        items = np.flatnonzero(ordinary)
        replaced, rows = fold_columns(before.table, taken(found.rows, items), found.kinds[items], places[items])
        batches.append(rows)
    rest = (taken(found.rows, np.flatnonzero(unusual[places])), found.arrived)
    others = [each for rows in rest if len(rows) for each in event_rows(rows)]
    lacking = before.logs(np.flatnonzero(unusual[:-1]))  # no census lacks any other log
    before.load([*lacking, *map(key_of, others)])
    fold = ShardFold(shard, {}, find=before.find, keys=before.known, lacking=lacking, cut=cut, overwritten_from=overwritten_from)
    fold.fold(others)
    changes = list(fold.changes())
    stays = replaced is None and not fold.touched and found.marks == before.marks
    value = None if stays else before.updated(fold.touched, found.marks, replaced)
    if found.recalled:
        changes = [*(each for each in changes if each.change not in _IN_THE_STATE), recalled(shard)]
        batches = [everything(before if value is None else before.after(value))]
    if changes:
        batches.append(state_rows(changes))
    return FoldResult(value, _lists(before, value), _packed(batches))


def _packed(batches: Sequence[pa.RecordBatch]) -> bytes | None:
    if not batches:
        return None
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return pack_rows(batch)
