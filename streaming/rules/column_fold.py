"""Puts the rows of a micro-batch in order, and folds ordinary ones: columns in, columns out, without a Python object for each row or log.

The result is the same as that of `streaming.rules.log_fold` for each row: counters are sums, times are maxima, everything else comes from
the last row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.common.column_types import plus_columns, widths_of
from streaming.common.event_row import EVENTS
from streaming.common.rows import Change, Kind
from streaming.common.state_row import STATES
from streaming.rules.counters import SHARED, SUMMED
from streaming.rules.fold import Mark
from streaming.rules.log_fold import BY, FOUND_COLUMNS
from streaming.rules.log_state import LogState
from streaming.rules.shard_state import SCHEMA, ReplacedLogs, ShardState
from streaming.rules.whereabouts import CensusEnd

KINDS = tuple(Kind)
_NAMES = pa.array([str(kind) for kind in KINDS])

UNKNOWN = -1
"""Used instead of an index in `KINDS` for a kind of a later version."""

_LARGE = ("coordinator", "segments")
_NONE = -1
_LEAST = np.iinfo(np.int64).min

_LISTS = {kept: name for kept, name in SHARED.items() if kept in widths_of(LogState)}
_NEEDED = (
    *("agent", "log_dir", "departed", "transactions", "coordinator_upto", "shared_upto"),
    *("cut_end", "cut_next_epoch", "log_end_offset", *_LISTS),
)


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
    logs = _RowsByLog(rows, kinds, places)
    states = table.take(pa.array(logs.places))
    changed = {**_ends(states, logs), **_found(states, logs), **_counters(states, logs), **_shares(states, logs)}
    replaced = pa.Table.from_arrays([_array(changed.get(each.name, states[each.name]), each.type) for each in SCHEMA], schema=SCHEMA)
    return ReplacedLogs(replaced, logs.places), _shown(replaced)


class _RowsByLog:
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


def taken(rows: pa.RecordBatch, items: NDArray[np.intp]) -> pa.RecordBatch:
    """Take some of the rows, in the order of ``items``."""
    if len(items) == len(rows) and (items == np.arange(len(rows))).all():
        return rows
    return rows.take(pa.array(items))


def ints(column: Any) -> NDArray[Any]:
    """Return the numbers or the flags of a column."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return numbers


def _ends(states: pa.Table, rows: _RowsByLog) -> dict[str, Any]:
    """The values that the last append of each log decides, such as its end."""
    last = rows.last(rows.appended)
    there, newest = last != _NONE, rows.most(rows["max_timestamp"], rows.appended)
    segment, end_segment = rows["segment"], _chosen(rows, "segment", last, states, "active_segment")
    in_it = rows.appended & (segment == np.repeat(end_segment, rows.counts))
    goes_on = (segment[rows.first(rows.appended)] == end_segment) & (ints(states["active_segment"]) == end_segment)
    active = np.maximum(rows.most(rows["max_timestamp"], in_it), np.where(goes_on, ints(states["active_max_timestamp_ms"]), _NONE))
    journal = rows.rows["journal"].take(pa.array(last.clip(0)))
    by = pc.binary_join_element_wise(states["agent"].cast(pa.string()), journal.cast(pa.string()), BY)
    return {
        "journal": pc.if_else(pa.array(there), journal, states["journal"]),
        "counted_by": pc.if_else(pa.array(there), by, states["counted_by"]),
        "log_end_offset": _chosen(rows, "next_offset", last, states, "log_end_offset"),
        "log_epoch": _chosen(rows, "log_epoch", rows.last(rows.appended & (rows["log_epoch"] >= 0)), states, "log_epoch"),
        "last_append_ms": np.maximum(ints(states["last_append_ms"]), rows.most(rows["seen_at"], rows.appended)),
        "max_timestamp_ms": np.maximum(ints(states["max_timestamp_ms"]), newest),
        "active_segment": end_segment,
        "active_position": _chosen(rows, "end_position", last, states, "active_position"),
        "active_max_timestamp_ms": np.where(there, active, ints(states["active_max_timestamp_ms"])),
    }


def _chosen(rows: _RowsByLog, name: str, items: Longs, states: pa.Table, column: str) -> NDArray[Any]:
    """Take a column from these rows, and the known value where there is no row."""
    return np.where(items != _NONE, rows[name][items], ints(states[column]))


def _found(states: pa.Table, rows: _RowsByLog) -> dict[str, Any]:
    """The values that the last row decides: the last list of segments, for some of them also the last append."""
    found, every = ~rows.appended, np.ones(len(rows.appended), np.bool_)
    last = rows.last(found)
    return {
        **{name: _chosen(rows, name, last, states, name) for name in FOUND_COLUMNS},
        "high_watermark": _chosen(rows, "high_watermark", rows.last(found | (rows["high_watermark"] != _NONE)), states, "high_watermark"),
        "active_producers": rows["active_producers"][rows.last(every)],
        "settled": ints(states["settled"]) | rows.any(rows["settled"]),
        "judges_expiry": ints(states["judges_expiry"]) | rows.any(rows["judges_expiry"]),
    }


def _counters(states: pa.Table, rows: _RowsByLog) -> dict[str, Any]:
    return {name: plus_columns(ints(states[name]), rows[column] * rows.appended, rows.sum) for name, column in SUMMED.items()}


def _shares(states: pa.Table, rows: _RowsByLog) -> dict[str, Any]:
    """The counters that count for the topic too, because the replica led."""
    led = rows.appended & (rows["leads"] != 0)
    shares: dict[str, Any] = {}
    for kept, name in SHARED.items():
        if not pa.types.is_list(SCHEMA.field(kept).type):
            shares[kept] = plus_columns(ints(states[kept]), rows[name] * led, rows.sum)
            continue
        before = _matrix(states[kept].combine_chunks(), len(rows.places))
        values = np.zeros((len(led), before.shape[1]), np.int64)
        if led.any():
            values[led] = _matrix(rows.rows[name].filter(pa.array(led)), int(led.sum()))
        shares[kept] = _lists(plus_columns(before, values, rows.sum))
    return shares


def _matrix(column: Any, rows: int) -> Longs:
    """Convert lists of equal length to a matrix with one row for each list."""
    flat: Longs = ints(column.flatten())
    return flat.reshape(rows, -1)


def _lists(values: Longs) -> pa.Array:
    offsets = np.arange(0, values.size + 1, max(1, values.shape[1]), dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.ravel()))


def _array(values: Any, kind: pa.DataType) -> Any:
    return pa.array(values, kind) if isinstance(values, np.ndarray) else values


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


def everything(state: ShardState) -> pa.RecordBatch:
    """Return all logs of a shard as rows of `STATES`, with the large columns, even if they have not changed."""
    table, lists = state.table, state.lists.open()
    computed = {"segments": pa.array([lists.get(key) for key in state.known()], pa.binary())}
    logs = pc.if_else(table["departed"], str(Change.DEPARTED), str(Change.LOG))
    change = pc.if_else(pc.equal(table["topic"], ""), str(Change.RESIDUE), logs)
    computed["change"] = change
    columns = [computed[each.name] if each.name in computed else table[each.name] for each in STATES]
    found = pa.Table.from_arrays(columns, schema=STATES).combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], STATES)


def unusual_logs(state: ShardState, arrivals: Arrivals, places: NDArray[np.int64]) -> Flags:
    """Find the logs of the state's table that have to be folded row by row.

    Finds the ordinary rows of a micro-batch, which can be folded so. The logs of all others are folded row by row. A log is ordinary
    if all of its rows are. The log is known and has not departed. Its own agent publishes appends that begin where the log ends, or a
    list of segments that is already known. None of its rows concerns transactions, coordinators or unclean elections. Logs depend on
    each other in three cases only, which are rare as well: replicas of a partition if it is not known which one led, replicas after
    an unclean election, and logs that a census lacks. A census row has no other effect than to name its log.

    The result has one item more than the table: the last one stands for logs that are not known.

    Args:
        places: the indexes of the rows' logs in the table, -1 for a log that is not known.
    """
    unusual = np.zeros(len(state.table) + 1, np.bool_)
    unusual[-1] = True  # logs that are not known, with index -1
    _mark_what_a_census_lacks(unusual, state, arrivals, places)
    _mark_what_is_no_sum(unusual, state, arrivals, places)
    _mark_what_breaks(unusual, state, arrivals, places)
    _mark_replicas(unusual, state, arrivals, places)
    return unusual


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """The rows to fold.

    Args:
        rows: of `EVENTS`, sorted by agent, journal, seq and part.
        kinds: for each row, the index of its kind in `KINDS`.
        arrived: the rows of kind ``ARRIVED``, in the same order.
        recalled: whether the shard has to hand out all its logs.
        marks: how far the rows of all agents are folded after this micro-batch.
    """

    rows: pa.RecordBatch
    kinds: NDArray[np.int64]
    arrived: pa.RecordBatch
    recalled: bool
    marks: dict[str, Mark]

    def of_kind(self, *wanted: Kind) -> NDArray[np.bool_]:
        """Select the rows of these kinds."""
        return np.isin(self.kinds, [KINDS.index(kind) for kind in wanted])


def _mark_what_a_census_lacks(unusual: Flags, state: ShardState, arrivals: Arrivals, places: NDArray[np.int64]) -> None:
    """Mark the logs that may leave because a census ends without them."""
    ends = np.flatnonzero(arrivals.of_kind(Kind.CENSUS_END))
    if not len(ends):
        return
    named = np.flatnonzero(arrivals.of_kind(Kind.CENSUS) & (places >= 0))
    departed = ints(state.table["departed"])
    for before, at in zip(np.append(-1, ends[:-1]).tolist(), ends.tolist(), strict=True):
        end = CensusEnd.of(*(arrivals.rows[name][at].as_py() for name in ("log_dir", "reason", "topics")))
        lacking = ~departed | _lack_topics(state, end, np.flatnonzero(departed))
        lacking &= np.isin(ints(state.table["broker"]), list(end.brokers))
        lacking[places[named[(named > before) & (named < at)]]] = False
        unusual[:-1] |= lacking


def arrivals(batches: Iterable[pa.RecordBatch], marks: Mapping[str, Mark]) -> Arrivals:
    """Find the rows to fold among some rows of `EVENTS`.

    Puts the rows of a micro-batch in order, as columns: each row once, and only rows that were not folded before. Rows arrive in any
    order, and some arrive again; `streaming.rules.fold.Mark` describes why.

    Args:
        marks: how far the rows of each agent were folded before.
    """
    rows = _together([batch for batch in batches if len(batch)])
    kinds: NDArray[np.int64] = pc.fill_null(pc.index_in(rows["kind"], value_set=_NAMES), UNKNOWN).to_numpy(zero_copy_only=False).astype(int)
    agents, agent_names = _ranked(rows["agent"])
    journals, journal_names = _ranked(rows["journal"])
    place = np.stack([agents, journals, ints(rows["seq"]), ints(rows["part"])])
    order = np.lexsort(place[::-1])
    only_marks = kinds == KINDS.index(Kind.ARRIVED)
    recalls = kinds == KINDS.index(Kind.RECALL)
    unseen = ~only_marks & ~recalls & ~_covered(place, agent_names, journal_names, marks)
    folded = order[unseen[order]]
    if len(folded):
        folded = folded[np.append(True, (place[:, folded[1:]] != place[:, folded[:-1]]).any(axis=0))]
    ends = folded[np.append(np.diff(place[0, folded]) != 0, True)] if len(folded) else folded
    reached = {agent_names[agents[end]]: Mark(journal_names[journals[end]], int(place[2, end])) for end in ends.tolist()}
    arrived = taken(rows, order[only_marks[order]])
    return Arrivals(taken(rows, folded), kinds[folded], arrived, bool(recalls.any()), {**marks, **reached})


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0] if batches else pa.RecordBatch.from_pylist([], EVENTS)


def _ranked(column: pa.Array) -> tuple[NDArray[np.int64], list[str]]:
    """Return a number for each text, which sorts as the texts do, and the texts by these numbers."""
    encoded = column.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    ranks = np.empty(len(names), np.int64)
    ranks[order] = np.arange(len(names))
    return ranks[encoded.indices.to_numpy()], [names[item] for item in order]


def _covered(place: NDArray[np.int64], agents: list[str], journals: list[str], marks: Mapping[str, Mark]) -> NDArray[np.bool_]:
    covered = np.zeros(place.shape[1], np.bool_)
    for agent, mark in marks.items():
        if agent in agents and mark.journal in journals:
            covered |= (place[0] == agents.index(agent)) & (place[1] == journals.index(mark.journal)) & (place[2] <= mark.seq)
    return covered


def _lack_topics(state: ShardState, end: CensusEnd, items: NDArray[np.intp]) -> Flags:
    """Find the logs among these whose topic does not exist any more."""
    lacking = np.zeros(len(state.table), np.bool_)
    if end.topics is not None:
        lacking[items] = [end.lacks_topic(key) for key in state.logs(items)]
    return lacking


def _mark_what_is_no_sum(unusual: Flags, state: ShardState, arrivals: Arrivals, places: NDArray[np.int64]) -> None:
    """Mark the logs with a row that is not ordinary by itself."""
    known = np.flatnonzero(places >= 0)
    if len(known):
        quiet = _brings_nothing(state, arrivals, known, places)
        plain = _plain(arrivals, known, state.table.select(_NEEDED).take(pa.array(places[known])), quiet)
        unusual[places[known[~plain]]] = True


def _brings_nothing(state: ShardState, arrivals: Arrivals, items: NDArray[np.intp], places: NDArray[np.int64]) -> Flags:
    """Find the rows of known logs whose list of segments is absent or already known."""
    listed = arrivals.rows["segments"].take(pa.array(items))
    quiet = _is_null(listed)
    some = np.flatnonzero(~quiet)
    if len(some):
        lists, logs = state.lists.open(), state.logs(places[items[some]])
        quiet[some] = [lists.get(key) == segments for key, segments in zip(logs, listed.take(pa.array(some)).to_pylist(), strict=True)]
    return quiet


def _is_null(column: Any) -> Flags:
    return ints(pc.is_null(column))


def _plain(arrivals: Arrivals, items: NDArray[np.intp], states: pa.Table, quiet: Flags) -> Flags:
    """Find the rows of known logs that are ordinary by themselves; ``quiet``: the result of `_brings_nothing`."""
    rows = taken(arrivals.rows, items)
    listed, named = arrivals.of_kind(Kind.FOUND)[items], arrivals.of_kind(Kind.CENSUS)[items]
    appended = arrivals.of_kind(Kind.APPENDED)[items]
    there = ~ints(states["departed"]) & _is_null(states["transactions"])
    there &= _same(rows["agent"], states["agent"]) & _same(rows["log_dir"], states["log_dir"])
    return named | (there & ((listed & quiet) | (appended & _counts(rows, states))))


def _same(left: Any, right: Any) -> Flags:
    return ints(pc.fill_null(pc.equal(left, right), False))


def _counts(rows: pa.RecordBatch, states: pa.Table) -> Flags:
    """Whether an append contains only numbers to add up."""
    base = ints(rows["base_offset"])
    counts: Flags = (ints(rows["leads"]) >= 0) & (ints(rows["next_offset"]) > base) & (ints(states["shared_upto"]) <= base)
    counts &= _is_null(rows["transactions"]) & _is_null(rows["coordinator"]) & (ints(states["coordinator_upto"]) < 0)
    counts &= _is_null(rows["expired"])
    counts &= (ints(states["cut_end"]) < 0) | (ints(states["cut_next_epoch"]) >= 0)
    for kept, name in _LISTS.items():
        counts &= _same(pc.list_value_length(rows[name]), pc.list_value_length(states[kept]))
    return counts


def _mark_what_breaks(unusual: Flags, state: ShardState, arrivals: Arrivals, places: NDArray[np.int64]) -> None:
    """Mark the logs with an append that does not begin where the one before it ends, or that is in an earlier segment."""
    items = np.flatnonzero(arrivals.of_kind(Kind.APPENDED) & ~unusual[places])
    if not len(items):
        return
    items = items[np.argsort(places[items], kind="stable")]
    logs = places[items]
    first = np.append(True, logs[1:] != logs[:-1])
    following, segments = ints(arrivals.rows["next_offset"])[items], ints(arrivals.rows["segment"])[items]
    expected = np.where(first, ints(state.table["log_end_offset"])[logs], np.roll(following, 1))
    back = ~first & (segments < np.roll(segments, 1))
    unusual[logs[(ints(arrivals.rows["base_offset"])[items] != expected) | back]] = True


def _mark_replicas(unusual: Flags, state: ShardState, arrivals: Arrivals, places: NDArray[np.int64]) -> None:
    """Mark all replicas of partitions where one replica depends on the others."""
    looks = arrivals.of_kind(Kind.UNCLEAN) | (arrivals.of_kind(Kind.APPENDED) & (ints(arrivals.rows["leads"]) < 0))
    superseded = np.append(ints(state.table["superseded_epoch"]) >= 0, False)
    looks |= superseded[places]
    if looks.any():
        partitions = _partitions(arrivals.rows)
        concerned = np.isin(partitions, partitions[looks])
        unusual[places[concerned]] = True


def _partitions(rows: pa.RecordBatch) -> NDArray[np.int64]:
    """A number for the partition of each row."""
    names = zip(*(rows[name].to_pylist() for name in ("topic", "partition", "topic_id")), strict=True)
    numbers: dict[tuple[Any, ...], int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
