"""The runs of a transaction's batches, and the numbers of a ladder's rung."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.kafka.formats.layout import CONTROL_BIT, CURRENT_MAGIC, TRANSACTIONAL_BIT
from streaming.kafka.formats.segment_indexes import ABORTED
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.transaction_steps import order_by_producer

NO_ENTRIES: NDArray[np.void] = np.empty(0, ABORTED)
"""No aborted transaction: one for all logs."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The data batches of a producer (``items``, indexes) up to its next control batch (``marker``, -1: up to the end of the range)."""

    producer_id: int
    items: NDArray[np.intp]
    marker: int


@dataclass(frozen=True, slots=True)
class Counts:
    """``data`` records, ``aborted`` ones among them; records of ``control`` batches; ``bytes`` of whole batches."""

    data: int = 0
    aborted: int = 0
    control: int = 0
    bytes: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.data + other.data, self.aborted + other.aborted, self.control + other.control, self.bytes + other.bytes)

    def __sub__(self, other: Counts) -> Counts:
        return Counts(self.data - other.data, self.aborted - other.aborted, self.control - other.control, self.bytes - other.bytes)


NOTHING = Counts()
"""The counts of a range with nothing in it, as most logs have before their first segment."""


@dataclass(frozen=True, slots=True, eq=False)
class Aborted:
    """Aborted transactions: records of `streaming.kafka.formats.segment_indexes.ABORTED`, in any order. One may be there twice."""

    entries: NDArray[np.void]

    @classmethod
    def none(cls) -> Self:
        """No transaction."""
        return cls(NO_ENTRIES)

    def __len__(self) -> int:
        return len(self.entries)

    def __add__(self, other: Aborted) -> Aborted:
        return Aborted(np.concatenate([self.entries, other.entries])) if len(other) and len(self) else (self if len(self) else other)

    def covers(self, producer_id: int, offset: int) -> bool:
        """Whether a batch of this producer at this offset belongs to one of them."""
        own = self.entries[self.entries["producer_id"] == producer_id]
        return bool(((own["first_offset"] <= offset) & (offset < own["last_offset"])).any())

    def mask(self, batches: Batches) -> NDArray[np.bool_] | None:
        """Which batches belong to one of them, None if none does: those of the same producer from its first offset to its marker."""
        if not len(self.entries) or not len(batches):
            return None
        marked = (batches.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT)) == TRANSACTIONAL_BIT
        items = np.flatnonzero(marked & (batches.magic >= CURRENT_MAGIC))
        near = (self.entries["first_offset"] <= batches.last_offset[-1]) & (self.entries["last_offset"] > batches.base_offset[0])
        entries = self.entries[near]
        if not len(items) or not len(entries):
            return None
        return self._match(batches, items, entries)

    @staticmethod
    def _match(batches: Batches, items: NDArray[np.intp], entries: NDArray[np.void]) -> NDArray[np.bool_] | None:
        """Sort both by producer and offset: the last entry before a batch is the only one to which it may belong."""
        count = len(entries)
        producers = np.concatenate([entries["producer_id"], batches.headers["producer_id"][items]]).astype(np.int64)
        offsets = np.concatenate([entries["first_offset"], batches.last_offset[items]]).astype(np.int64)
        order = np.lexsort((np.arange(len(offsets)), offsets, producers))
        latest = np.maximum.accumulate(np.where(order < count, np.arange(len(order)), -1))
        batch_at = np.flatnonzero((order >= count) & (latest >= 0))
        batch, entry = order[batch_at] - count, order[latest[batch_at]]
        same = producers[entry] == producers[batch + count]
        inside = batches.base_offset[items[batch]] < entries["last_offset"][entry]
        mask = np.zeros(len(batches), np.bool_)
        mask[items[batch[same & inside]]] = True
        return mask if mask.any() else None


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """Data of a producer's transaction that is still open at the end of a part of a log.

    The transactional batches of a range, producer by producer, between its markers.

    ``first_offset`` is that of its first batch there. For each of its batches, or for some of them together: the offset after it, and its
    ``records``.
    """

    producer_id: int
    first_offset: int
    ends: Longs
    records: Longs

    @classmethod
    def of(cls, run: Run, batches: Batches) -> Pending:
        """The data of a run, which is not empty."""
        items = run.items
        return cls(run.producer_id, int(batches.base_offset[items[0]]), batches.last_offset[items] + 1, batches.records[items])

    def __add__(self, later: Pending) -> Pending:
        ends, records = np.concatenate([self.ends, later.ends]), np.concatenate([self.records, later.records])
        return Pending(self.producer_id, self.first_offset, ends, records)

    def at(self, offsets: Longs) -> Pending:
        """The same, with one item for each stretch that ends at one of ``offsets`` (ascending; the last is not below its own)."""
        stretch = np.searchsorted(offsets, self.ends)
        firsts = np.flatnonzero(np.append(True, stretch[1:] != stretch[:-1]))
        ends = self.ends[np.append(firsts[1:], len(self.ends)) - 1]
        return Pending(self.producer_id, self.first_offset, ends, np.add.reduceat(self.records, firsts))
