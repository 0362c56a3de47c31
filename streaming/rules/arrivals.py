"""The rows of a micro-batch, as columns: put in the order in which they are folded, each of them once, and none that was folded before.

They come in any order, and some again: `streaming.rules.fold.Mark` says why.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.rows import EVENTS, Kind
from streaming.rules.fold import Mark

KINDS = tuple(Kind)
_NAMES = pa.array([str(kind) for kind in KINDS])
UNKNOWN = -1
"""In the place of a kind: one of a later version."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """What is to be folded.

    Args:
        rows: of `EVENTS`, sorted by agent, journal, seq and part.
        kinds: of each row, its place in `KINDS`.
        arrived: the rows that only say so, in that order too.
        recalled: whether all that the shard has is to be handed out.
        marks: how far all agents' rows will have been folded.
    """

    rows: pa.RecordBatch
    kinds: NDArray[np.int64]
    arrived: pa.RecordBatch
    recalled: bool
    marks: dict[str, Mark]

    def of_kind(self, *wanted: Kind) -> NDArray[np.bool_]:
        """Which rows are of one of these kinds."""
        return np.isin(self.kinds, [KINDS.index(kind) for kind in wanted])


def arrivals(batches: Iterable[pa.RecordBatch], marks: Mapping[str, Mark]) -> Arrivals:
    """What is to be folded of some rows of `EVENTS`.

    Args:
        marks: how far the rows of each agent had been folded before.
    """
    rows = _together([batch for batch in batches if len(batch)])
    kinds: NDArray[np.int64] = pc.fill_null(pc.index_in(rows["kind"], value_set=_NAMES), UNKNOWN).to_numpy(zero_copy_only=False).astype(int)
    agents, agent_names = _ranked(rows["agent"])
    journals, journal_names = _ranked(rows["journal"])
    place = np.stack([agents, journals, ints(rows["seq"]), ints(rows["part"])])
    order = np.lexsort(place[::-1])
    only_said = kinds == KINDS.index(Kind.ARRIVED)
    recalls = kinds == KINDS.index(Kind.RECALL)
    fresh = ~only_said & ~recalls & ~_covered(place, agent_names, journal_names, marks)
    folded = order[fresh[order]]
    if len(folded):
        folded = folded[np.append(True, (place[:, folded[1:]] != place[:, folded[:-1]]).any(axis=0))]
    ends = folded[np.append(np.diff(place[0, folded]) != 0, True)] if len(folded) else folded
    reached = {agent_names[agents[end]]: Mark(journal_names[journals[end]], int(place[2, end])) for end in ends.tolist()}
    arrived = taken(rows, order[only_said[order]])
    return Arrivals(taken(rows, folded), kinds[folded], arrived, bool(recalls.any()), {**marks, **reached})


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0] if batches else pa.RecordBatch.from_pylist([], EVENTS)


def _ranked(column: pa.Array) -> tuple[NDArray[np.int64], list[str]]:
    """A number for each text that is sorted as the texts are, and the texts by their numbers."""
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
    """Some of the rows, in the order of ``items``."""
    if len(items) == len(rows) and (items == np.arange(len(rows))).all():
        return rows
    return rows.take(pa.array(items))


def ints(column: Any) -> NDArray[Any]:
    """The numbers of a column, or its flags."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return numbers
