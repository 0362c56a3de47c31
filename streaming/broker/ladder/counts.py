"""What lies between two offsets of a log: data records, those of aborted transactions among them, control records, bytes."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from streaming.kafka.formats.layout import CONTROL_BIT, CURRENT_MAGIC, TRANSACTIONAL_BIT
from streaming.kafka.formats.transaction_index import ABORTED
from streaming.kafka.scan.headers import Batches


@dataclass(frozen=True, slots=True)
class Counts:
    """``data`` records, ``aborted`` ones among them; records of ``control`` batches; ``bytes`` of whole batches."""

    data: int = 0
    aborted: int = 0
    control: int = 0
    bytes: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.data + other.data, self.aborted + other.aborted, self.control + other.control, self.bytes + other.bytes)

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(self.data - other.data, self.aborted - other.aborted, self.control - other.control, self.bytes - other.bytes)


NOTHING = Counts()
"""Of what has nothing in it, as most logs have before their first segment."""

NO_ENTRIES: NDArray[np.void] = np.empty(0, ABORTED)
"""No aborted transaction: one for all logs."""


@dataclass(frozen=True, slots=True, eq=False)
class Aborted:
    """Aborted transactions: records of `streaming.kafka.formats.transaction_index.ABORTED`, in any order. One may be there twice."""

    entries: NDArray[np.void]

    @classmethod
    def none(cls) -> Self:
        """No transaction."""
        return cls(NO_ENTRIES)

    def __len__(self) -> int:
        return len(self.entries)

    def __add__(self, other: "Aborted") -> "Aborted":
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
