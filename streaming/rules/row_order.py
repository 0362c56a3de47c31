"""Puts the rows of a micro-batch in order, as columns: each row once, and only rows that were not folded before.

Rows arrive in any order, and some arrive again; `streaming.rules.fold.Mark` describes why.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.common.event_row import EVENTS
from streaming.common.rows import Kind
from streaming.rules.fold import Mark

KINDS = tuple(Kind)
_NAMES = pa.array([str(kind) for kind in KINDS])
UNKNOWN = -1
"""Used instead of an index in `KINDS` for a kind of a later version."""


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


def arrivals(batches: Iterable[pa.RecordBatch], marks: Mapping[str, Mark]) -> Arrivals:
    """Find the rows to fold among some rows of `EVENTS`.

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
