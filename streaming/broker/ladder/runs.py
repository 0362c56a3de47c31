"""The transactional batches of a range, producer by producer, between its markers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.kafka.formats.layout import CONTROL_BIT, CURRENT_MAGIC, TRANSACTIONAL_BIT
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.transaction_steps import order_by_producer


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The data batches of a producer (``items``, indexes) up to its next control batch (``marker``, -1: up to the end of the range)."""

    producer_id: int
    items: NDArray[np.intp]
    marker: int


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """Data of a producer's transaction that is still open at the end of a part of a log.

    ``first_offset`` is that of its first batch there. For each of its batches, or for some of them together: the offset after it, and its
    ``records``.
    """

    producer_id: int
    first_offset: int
    ends: Longs
    records: Longs

    @classmethod
    def of(cls, run: Run, batches: Batches) -> "Pending":
        """The data of a run, which is not empty."""
        items = run.items
        return cls(run.producer_id, int(batches.base_offset[items[0]]), batches.last_offset[items] + 1, batches.records[items])

    def __add__(self, later: "Pending") -> "Pending":
        ends, records = np.concatenate([self.ends, later.ends]), np.concatenate([self.records, later.records])
        return Pending(self.producer_id, self.first_offset, ends, records)

    def at(self, offsets: Longs) -> "Pending":
        """The same, with one item for each stretch that ends at one of ``offsets`` (ascending; the last is not below its own)."""
        stretch = np.searchsorted(offsets, self.ends)
        firsts = np.flatnonzero(np.append(True, stretch[1:] != stretch[:-1]))
        ends = self.ends[np.append(firsts[1:], len(self.ends)) - 1]
        return Pending(self.producer_id, self.first_offset, ends, np.add.reduceat(self.records, firsts))


def transaction_runs(batches: Batches) -> Iterator[Run]:
    """The runs of all producers; those of one producer are in order, and one of them may be without data.

    A control batch that compaction has emptied ended a transaction whose data is gone: it is left out, as Kafka does.
    """
    marked = batches.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT)
    if not marked.any():
        return
    headers: Any = batches.headers
    ids = headers["producer_id"]
    kept = (marked != 0) & (ids >= 0) & (batches.magic >= CURRENT_MAGIC) & ((marked & CONTROL_BIT == 0) | (batches.records > 0))
    items = np.flatnonzero(kept)
    if not len(items):
        return
    own = ids[items].astype(np.int64)
    order = order_by_producer(own)
    items, own = items[order], own[order]
    control = batches.control[items]
    ends = np.flatnonzero(control | np.append(own[1:] != own[:-1], True))
    begin = 0
    for end in ends.tolist():
        if control[end]:
            yield Run(int(own[end]), items[begin:end], int(items[end]))
        else:
            yield Run(int(own[end]), items[begin : end + 1], -1)
        begin = end + 1
