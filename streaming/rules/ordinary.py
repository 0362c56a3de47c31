"""Finds the ordinary rows of a micro-batch, which `streaming.rules.column_fold` can fold. The logs of all others are folded row by row.

A log is ordinary if all of its rows are. The log is known and has not departed. Its own agent publishes appends that begin where the log
ends, or a list of segments that is already known. None of its rows concerns transactions, coordinators or unclean elections.

Logs depend on each other in three cases only, which are rare as well: replicas of a partition if it is not known which one led, replicas
after an unclean election, and logs that a census lacks. A census row has no other effect than to name its log.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.common.arrays import Flags
from streaming.common.column_types import widths_of
from streaming.common.rows import Kind
from streaming.rules.counters import SHARED
from streaming.rules.log_state import LogState
from streaming.rules.row_order import Arrivals, ints, taken
from streaming.rules.shard_state import ShardState
from streaming.rules.whereabouts import CensusEnd

_LISTS = {kept: name for kept, name in SHARED.items() if kept in widths_of(LogState)}
_NEEDED = (
    *("agent", "log_dir", "departed", "transactions", "coordinator_upto", "shared_upto"),
    *("cut_end", "cut_next_epoch", "log_end_offset", *_LISTS),
)


def unusual_logs(state: ShardState, arrivals: Arrivals, places: NDArray[np.int64]) -> Flags:
    """Find the logs of the state's table that have to be folded row by row.

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


def _plain(arrivals: Arrivals, items: NDArray[np.intp], states: pa.Table, quiet: Flags) -> Flags:
    """Find the rows of known logs that are ordinary by themselves; ``quiet``: the result of `_brings_nothing`."""
    rows = taken(arrivals.rows, items)
    listed, named = arrivals.of_kind(Kind.FOUND)[items], arrivals.of_kind(Kind.CENSUS)[items]
    appended = arrivals.of_kind(Kind.APPENDED)[items]
    there = ~ints(states["departed"]) & _is_null(states["transactions"])
    there &= _same(rows["agent"], states["agent"]) & _same(rows["log_dir"], states["log_dir"])
    return named | (there & ((listed & quiet) | (appended & _counts(rows, states))))


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


def _lack_topics(state: ShardState, end: CensusEnd, items: NDArray[np.intp]) -> Flags:
    """Find the logs among these whose topic does not exist any more."""
    lacking = np.zeros(len(state.table), np.bool_)
    if end.topics is not None:
        lacking[items] = [end.lacks_topic(key) for key in state.logs(items)]
    return lacking


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


def _is_null(column: Any) -> Flags:
    return ints(pc.is_null(column))


def _same(left: Any, right: Any) -> Flags:
    return ints(pc.fill_null(pc.equal(left, right), False))
