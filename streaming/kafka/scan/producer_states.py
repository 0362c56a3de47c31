"""The producers of logs: those that a broker keeps state of, and the gaps in their sequences.

The rules are those of `ProducerStateManager`: it keeps the last epoch, sequence and time of every producer id, until that is silent for
``producer.id.expiration.ms`` without an open transaction. Between batches of one epoch the sequence rises by one, and from 2^31 - 1 to 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.kafka.formats.layout import CONTROL_BIT, CURRENT_MAGIC, TRANSACTIONAL_BIT
from streaming.kafka.formats.producer_snapshot import ProducerState
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.transaction_steps import order_by_producer

EXPIRATION_MS = 86_400_000
"""The default of ``producer.id.expiration.ms``."""

ENTRIES = np.dtype(
    [
        ("producer_id", "<i8"),
        ("producer_epoch", "<i2"),
        ("open", "u1"),  # 1: it has an open transaction
        ("last_sequence", "<i4"),  # of its data in this epoch, -1 none
        ("last_ms", "<i8"),  # largest timestamp of its last batch, or time of its last marker: expiration counts from it
    ]
)
"""One item for each producer, sorted by producer id."""

Entries = NDArray[np.void]
"""An array of `ENTRIES`."""

_NOBODY: Entries = np.empty(0, ENTRIES)
_FEW = 8
_MOST_SEQUENCE = 0x7FFFFFFF
_FAR = 1 << 30  # a sequence that seems further ahead is behind: it was written again after a truncation


class Producers(NamedTuple):
    """The producers of a log, at most the ``limit`` that wrote last.

    ``dropped_ms`` is the newest time of any producer that was removed because of the limit, -1 none.
    """

    entries: Entries
    limit: int
    dropped_ms: int = -1

    @classmethod
    def none(cls, limit: int) -> Self:
        """The producers of a log that is read from its first byte."""
        return cls(_NOBODY, limit)

    @classmethod
    def of(cls, states: Iterable[ProducerState], limit: int) -> Self:
        """The producers of a producer snapshot."""
        rows = [
            (state.producer_id, state.producer_epoch, state.current_txn_first_offset >= 0, state.last_sequence, state.timestamp)
            for state in states
        ]
        entries, dropped_ms = _limited(np.array(sorted(rows), ENTRIES), limit, -1)
        return cls(entries, limit, dropped_ms)

    @property
    def active(self) -> int | None:
        """How many there are, None if some had to be removed."""
        return len(self.entries) if self.dropped_ms < 0 else None

    def take(self, batches: Batches, *, compacted: bool = False) -> Taken:
        """Add the batches of a range, in order. In a compacted topic batches are missing, so no gap is counted."""
        if len(batches) > _FEW:
            (taken,) = take_ranges([self], batches, np.zeros(1, np.intp))
        else:
            taken = self._changed(*self._take_few(batches))
        return taken._replace(gaps=0) if compacted else taken

    def _changed(self, changed: Entries, gaps: int) -> Taken:
        """The producers after these have changed, in order of their ids; there may be more of them than the limit now."""
        if not len(changed):
            return Taken(self, gaps)
        entries, dropped_ms = _limited(_updated(self.entries, changed), self.limit, self.dropped_ms)
        return Taken(self._replace(entries=entries, dropped_ms=dropped_ms), gaps)

    def _take_few(self, batches: Batches) -> tuple[Entries, int]:
        """The producers of some batches after them, and the gaps, batch by batch: for a few batches this costs less than arrays."""
        headers: Any = batches.headers
        ids = headers["producer_id"].tolist()
        if max(ids, default=-1) < 0:
            return _NOBODY, 0
        after: dict[int, tuple[int, ...]] = {}
        gaps = 0
        columns = (headers["producer_epoch"], headers["base_sequence"], headers["last_offset_delta"], batches.attributes, batches.records)
        for own, epoch, first, delta, attributes, records, newest, magic in zip(
            ids, *(column.tolist() for column in (*columns, batches.max_timestamp, batches.magic)), strict=True
        ):
            control = attributes & CONTROL_BIT
            if own < 0 or magic < CURRENT_MAGIC or (control and records <= 0):
                continue
            _, old_epoch, is_open, sequence, _ = after[own] if own in after else self._known_one(own)
            if epoch != old_epoch:
                sequence = -1
            if control:
                is_open = 0
            else:
                gaps += sequence >= 0 and first >= 0 and 0 < (first - sequence - 1) & _MOST_SEQUENCE < _FAR
                sequence = -1 if first < 0 else (first + delta) & _MOST_SEQUENCE
                is_open = 1 if attributes & TRANSACTIONAL_BIT else is_open
            after[own] = (own, epoch, is_open, sequence, newest)
        return np.array([after[own] for own in sorted(after)], ENTRIES), gaps

    def _known_one(self, producer_id: int) -> tuple[int, ...]:
        index = int(np.searchsorted(self.entries["producer_id"], producer_id))
        if index < len(self.entries):
            entry: tuple[int, ...] = self.entries[index].item()
            if entry[0] == producer_id:
                return entry
        return (producer_id, -1, 0, -1, -1)

    def expired(self, now_ms: int, expiration_ms: int = EXPIRATION_MS) -> Self:
        """Remove those that have been silent for long, as `ProducerStateManager.removeExpiredProducers` does from time to time."""
        silent = (now_ms - self.entries["last_ms"] >= expiration_ms) & (self.entries["open"] == 0)
        dropped_ms = -1 if now_ms - self.dropped_ms >= expiration_ms else self.dropped_ms  # all of them would have expired by now
        if not silent.any() and dropped_ms == self.dropped_ms:
            return self
        return self._replace(entries=self.entries.compress(~silent), dropped_ms=dropped_ms)


def _limited(entries: Entries, limit: int, dropped_ms: int) -> tuple[Entries, int]:
    """The ``limit`` producers that wrote last, and the newest time of any that was ever removed."""
    over = len(entries) - limit
    if over <= 0:
        return entries, dropped_ms
    oldest = np.lexsort((entries["last_ms"], entries["open"]))[:over]
    kept = np.ones(len(entries), np.bool_)
    kept[oldest] = False
    return entries.compress(kept), max(dropped_ms, 0, int(entries["last_ms"][oldest].max()))


class Taken(NamedTuple):
    """The producers after a step, and the gaps in it."""

    producers: Producers
    gaps: int


def take_ranges(producers: Sequence[Producers], batches: Batches, firsts: NDArray[np.intp]) -> list[Taken]:
    """Add one range of batches to the producers of each of several logs.

    Args:
        producers: of each log, before its range.
        batches: the ranges, one after the other.
        firsts: the index of the first batch of each, ascending, beginning with 0; no range is empty.
    """
    named = _Named.of(batches, firsts)
    if not len(named.items):
        return [Taken(each, 0) for each in producers]
    # as bytes: numpy looks at the fields of each array that it joins
    entries = np.frombuffer(b"".join([each.entries.tobytes() for each in producers]), ENTRIES)
    begins = np.cumsum([0, *(len(each.entries) for each in producers)])
    indexes, there = _known(entries, begins, named)
    changed, gaps = named.changed(batches, _before(entries, indexes, there, named.ids[named.firsts]), len(producers))
    updated = entries.copy()
    updated[indexes[there]] = changed[there]
    bounds = np.searchsorted(named.logs[named.firsts], np.arange(len(producers) + 1)).tolist()
    lacking = np.bincount(named.logs[named.firsts][~there], minlength=len(producers)).tolist()
    found = []
    rows = zip(producers, gaps.tolist(), pairwise(bounds), pairwise(begins.tolist()), strict=True)
    for log, (each, skipped, (begin, end), (first, last)) in enumerate(rows):
        own = changed[begin:end]
        if lacking[log] or len(each.entries) > each.limit:
            found.append(each._changed(own, skipped))
        elif begin == end:
            found.append(Taken(each, skipped))
        else:  # nearly always: a copy, or one log would keep the producers of all of them in memory
            after = Producers(updated[first:last].copy(), each.limit, each.dropped_ms)
            found.append(Taken(after, skipped))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Named:
    """The batches of ranges that name a producer, log after log and in it producer after producer, each in order.

    ``items`` are their indexes, ``logs`` and ``ids`` the range and the producer of each; ``firsts``: the first one of each producer.
    """

    items: NDArray[np.intp]
    logs: Longs
    ids: Longs
    firsts: NDArray[np.intp]

    @classmethod
    def of(cls, batches: Batches, firsts: NDArray[np.intp]) -> Self:
        headers: Any = batches.headers
        # a control batch that compaction has emptied is ignored (`UnifiedLog.updateProducers`)
        named = (
            (headers["producer_id"] >= 0)
            & (batches.magic >= CURRENT_MAGIC)
            & ((batches.attributes & CONTROL_BIT == 0) | (batches.records > 0))
        )
        items = np.flatnonzero(named)
        ids = headers["producer_id"][items].astype(np.int64)
        if not len(items):
            return cls(items, ids, ids, items)
        logs = np.searchsorted(firsts, items, side="right") - 1
        order = order_by_producer(ids) if len(firsts) == 1 else np.lexsort((ids, logs))
        items, logs, ids = items[order], logs[order], ids[order]
        heads = np.flatnonzero(np.append(True, (ids[1:] != ids[:-1]) | (logs[1:] != logs[:-1])))
        return cls(items, logs, ids, heads)

    def changed(self, batches: Batches, before: Entries, ranges: int) -> tuple[Entries, Longs]:
        """The producers after the ranges, and how many gaps there are in each range; ``before``: the same before them."""
        headers: Any = batches.headers
        epochs = headers["producer_epoch"][self.items].astype(np.int64)
        data = _Data.of(self, epochs, batches)
        gaps = np.bincount(self.logs[data.index[data.has_gap(before)]], minlength=ranges)
        return _changed(batches, self.items, self.firsts, before, epochs, data), gaps


@dataclass(frozen=True, slots=True, eq=False)
class _Data:
    """The data batches among the items of ranges, producer after producer; ``index`` is the index of each among the items.

    ``producer`` is the number of its producer among those of the ranges.
    """

    index: NDArray[np.intp]
    producer: Longs
    epoch: Longs
    first_sequence: Longs
    last_sequence: Longs

    @classmethod
    def of(cls, named: _Named, epochs: Longs, batches: Batches) -> Self:
        index = np.flatnonzero(~batches.control[named.items])
        chosen = named.items[index]
        headers: Any = batches.headers
        first = headers["base_sequence"][chosen].astype(np.int64)
        last = np.where(first < 0, -1, (first + batches.last_offset[chosen] - batches.base_offset[chosen]) & _MOST_SEQUENCE)
        producer = np.searchsorted(named.firsts, index, side="right") - 1
        return cls(index, producer, epochs[index], first, last)

    def has_gap(self, before: Entries) -> NDArray[np.bool_]:
        """Which batches do not follow the one before them, if that has the same epoch."""
        if not len(self.index):
            return np.zeros(0, np.bool_)
        epoch, sequence = np.empty_like(self.epoch), np.empty_like(self.last_sequence)
        epoch[1:], sequence[1:] = self.epoch[:-1], self.last_sequence[:-1]
        begins = np.flatnonzero(np.append(True, self.producer[1:] != self.producer[:-1]))
        known = before[self.producer[begins]]
        epoch[begins], sequence[begins] = known["producer_epoch"], known["last_sequence"]
        missing = (self.first_sequence - sequence - 1) & _MOST_SEQUENCE
        has_gap: NDArray[np.bool_] = (self.epoch == epoch) & (sequence >= 0) & (self.first_sequence >= 0) & (missing > 0) & (missing < _FAR)
        return has_gap


def _changed(batches: Batches, items: NDArray[np.intp], firsts: NDArray[np.intp], before: Entries, epochs: Longs, data: _Data) -> Entries:
    """The producers of ranges after them."""
    lasts = np.append(firsts[1:], len(items)) - 1
    indexes = np.arange(len(items))
    attributes = batches.attributes[items]
    ends = np.maximum.reduceat(np.where(attributes & CONTROL_BIT != 0, indexes, -1), firsts)
    goes_on = np.maximum.reduceat(np.where(attributes & (CONTROL_BIT | TRANSACTIONAL_BIT) == TRANSACTIONAL_BIT, indexes, -1), firsts)
    after = before.copy()
    after["producer_epoch"] = epochs[lasts]
    after["last_ms"] = batches.max_timestamp[items[lasts]]
    after["open"] = np.where(goes_on > ends, 1, np.where(ends >= 0, 0, before["open"]))
    # the sequence of the last data batch counts if it has the current epoch: a marker may have raised the epoch
    last_data = np.searchsorted(data.index, lasts, side="right") - 1
    has_data = (last_data >= 0) & (data.index[last_data] >= firsts) if len(data.index) else np.zeros(len(firsts), np.bool_)
    sequence, epoch = before["last_sequence"].astype(np.int64), before["producer_epoch"].astype(np.int64)
    sequence[has_data], epoch[has_data] = data.last_sequence[last_data[has_data]], data.epoch[last_data[has_data]]
    after["last_sequence"] = np.where(epoch == epochs[lasts], sequence, -1)
    return after


def _known(entries: Entries, begins: Longs, named: _Named) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where the producers of a range are among the entries of all logs, and which of them are there."""
    logs, ids = named.logs[named.firsts], named.ids[named.firsts]
    if not len(entries):
        return np.zeros(len(ids), np.intp), np.zeros(len(ids), np.bool_)
    if len(begins) == 2:
        own, wanted = entries["producer_id"], ids
    else:  # by number instead of by id: number and log are one value then, which rises as both are sorted
        distinct, numbers = np.unique(np.concatenate([entries["producer_id"], ids]), return_inverse=True)
        own = np.repeat(np.arange(len(begins) - 1), np.diff(begins)) * len(distinct) + numbers[: len(entries)]
        wanted = logs * len(distinct) + numbers[len(entries) :]
    indexes = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
    return indexes, own[indexes] == wanted


def _before(entries: Entries, indexes: NDArray[np.intp], there: NDArray[np.bool_], ids: Longs) -> Entries:
    """The entries of producers before a range; epoch and sequence are -1 if there is none."""
    found = np.zeros(len(ids), ENTRIES)
    found["producer_id"], found["producer_epoch"], found["last_sequence"] = ids, -1, -1
    if there.any():
        found[there] = entries.take(indexes[there])
    return found


def _updated(entries: Entries, changed: Entries) -> Entries:
    if not len(entries):
        return changed
    own, ids = entries["producer_id"], changed["producer_id"]
    indexes = np.searchsorted(own, ids)
    known = own[np.minimum(indexes, len(own) - 1)] == ids
    updated = entries.copy()
    updated[indexes[known]] = changed[known]
    return updated if known.all() else np.insert(updated, indexes[~known], changed[~known])
