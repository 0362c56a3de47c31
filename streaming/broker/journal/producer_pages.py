"""The producers of a log as the journal stores them: in pages of neighboring ids. Only pages that have changed are written again.

A broker hands out producer ids one after the other, so producers that write at the same time share a few pages.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from streaming.broker.journal.tables import StoredTable, equal
from streaming.common.log_key import KEY, LogKey
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.producer_states import ENTRIES, EXPIRATION_MS, Entries, Producers, Taken

TABLE = """
CREATE TABLE producers (
  broker INTEGER NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, topic_id TEXT NOT NULL, page INTEGER NOT NULL,
  entries BLOB NOT NULL, PRIMARY KEY (broker, topic, partition, topic_id, page)) WITHOUT ROWID
"""

IDS_A_PAGE = 256

EXPIRE_EVERY_MS = 600_000
"""How often a broker forgets silent producers (``producer.id.expiration.check.interval.ms``)."""

_DROPPED = -1  # the page with the newest time of any producer that was forgotten

_NO_PAGES: frozenset[int] = frozenset()
"""One for all logs, because most have no others: Python makes each empty set anew."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The changed producers of a log: pages by number; an empty page is to be deleted. ``whole``: there are no other pages."""

    log: LogKey
    whole: bool
    pages: tuple[tuple[int, bytes], ...]


class KnownProducers:
    """The producers of one log at its cursor, and which of them the journal does not have yet.

    Args:
        limit: most producers to remember.
        now: the producers, None if they are not known.
    """

    __slots__ = ("_changed", "_expired_ms", "_moved", "_whole", "expiration_ms", "limit", "now")  # there is one for each log

    def __init__(self, limit: int, now: Producers | None = None) -> None:
        self.limit = limit
        self.now = now
        self._changed = _NO_PAGES
        self._moved = _NO_PAGES  # pages that the journal has, with the moves since
        self._whole = False
        self.expiration_ms = EXPIRATION_MS
        self._expired_ms = 0  # when silent producers were forgotten last

    def copy(self) -> "KnownProducers":
        """A copy, for changes that may be thrown away."""
        copied = KnownProducers(self.limit, self.now)
        copied._changed, copied._moved, copied._whole = self._changed, self._moved, self._whole
        copied._expired_ms = self._expired_ms
        copied.expiration_ms = self.expiration_ms
        return copied

    @property
    def active(self) -> int:
        """The number of producers, -1 if it is not known."""
        active = None if self.now is None else self.now.active
        return -1 if active is None else active

    def reset(self, now: Producers | None) -> None:
        """Replace all producers."""
        self.now = now
        self._expired_ms = 0
        self._changed = self._moved = _NO_PAGES
        self._whole = True

    def take(self, batches: Batches, now_ms: int, *, compacted: bool) -> int:
        """Add what was appended; returns how many gaps there are in its sequences."""
        if self.now is None:
            return 0
        self.expire(now_ms)
        taken = self.now.take(batches, compacted=compacted)
        self.go_on(taken)
        return taken.gaps

    def expire_at(self, now_ms: int) -> bool:
        """Whether it is time to forget those that have been silent for long."""
        return self.now is not None and not 0 <= now_ms - self._expired_ms < EXPIRE_EVERY_MS

    def expire(self, now_ms: int) -> None:
        """Forget producers that have been silent for long, at intervals as a broker does."""
        if self.now is not None and self.expire_at(now_ms):
            self._expired_ms = now_ms
            self.go_on(self.now.expired(now_ms, self.expiration_ms))

    def go_on(self, taken: Taken) -> None:
        """Take over the producers after a step from those that are known now."""
        assert self.now is not None
        if taken.producers.dropped_ms != self.now.dropped_ms:
            self._changed |= {_DROPPED}
        for ids in (taken.changed["producer_id"], taken.removed):
            if len(ids):
                self._changed |= set((ids // IDS_A_PAGE).tolist())
        self.now = taken.producers

    def move(self, taken: Taken) -> None:
        """The same for a step whose changed entries are written as a move (`streaming.broker.journal.stored_logs`)."""
        assert self.now is not None
        if len(taken.removed) or taken.producers.dropped_ms != self.now.dropped_ms:
            self.go_on(taken)
            return
        if len(taken.changed) == 1:  # as nearly always: without arrays that is a fifth of the time
            numbers = {taken.changed.item(0)[0] // IDS_A_PAGE}
        else:
            numbers = set((taken.changed["producer_id"] // IDS_A_PAGE).tolist())
        if not numbers <= self._moved:
            self._moved |= numbers
        self.now = taken.producers

    @property
    def need_pages(self) -> bool:
        """Whether something has changed that no move shows."""
        return self._whole or bool(self._changed)

    def unwritten(self, log: LogKey) -> Pages | None:
        """The pages that have to be written, None for none. The caller must write them, because they now count as written."""
        if not self._whole and not self._changed and not self._moved:
            return None
        numbers, whole = sorted(self._changed | self._moved), self._whole
        self._changed, self._moved, self._whole = _NO_PAGES, _NO_PAGES, False
        if self.now is None:
            return Pages(log, whole, ())
        if whole:
            numbers = [_DROPPED, *np.unique(self.now.entries["producer_id"] // IDS_A_PAGE).tolist()]
        return Pages(log, whole, tuple((number, _page(self.now, number)) for number in numbers))


def _page(producers: Producers, number: int) -> bytes:
    if number == _DROPPED:
        return producers.dropped_ms.to_bytes(8, "little", signed=True)
    entries = producers.entries
    if len(entries) and number * IDS_A_PAGE <= entries["producer_id"][0] and entries["producer_id"][-1] < (number + 1) * IDS_A_PAGE:
        return entries.tobytes()
    first, end = np.searchsorted(entries["producer_id"], [number * IDS_A_PAGE, (number + 1) * IDS_A_PAGE])
    return entries[first:end].tobytes()


@dataclass(frozen=True, slots=True)
class _ProducerRow:
    log: LogKey
    page: int
    entries: bytes


_PRODUCERS = StoredTable("producers", _ProducerRow)


def write(run: sqlite3.Connection, changed: Iterable[Pages]) -> None:
    """Write changed pages into the journal's table."""
    changed = list(changed)
    forget(run, [pages.log for pages in changed if pages.whole])
    rows = [_ProducerRow(pages.log, number, page) for pages in changed for number, page in pages.pages]
    _PRODUCERS.put(run, [row for row in rows if row.entries])
    _PRODUCERS.remove(run, (*KEY, "page"), [(*row.log, row.page) for row in rows if not row.entries])


def merge(run: sqlite3.Connection, log: LogKey, changed: Sequence[Entries]) -> None:
    """Put entries that have changed, in the order of their changes, into the pages of a log."""
    newest = {int(entry["producer_id"]): entry for entries in changed for entry in entries}
    for number in sorted({own // IDS_A_PAGE for own in newest}):
        rows = _PRODUCERS.all(run, f"WHERE {equal((*KEY, 'page'))}", *log, number)
        page = {int(entry["producer_id"]): entry for row in rows for entry in np.frombuffer(row.entries, ENTRIES)}
        page |= {own: entry for own, entry in newest.items() if own // IDS_A_PAGE == number}
        _PRODUCERS.put(run, [_ProducerRow(log, number, b"".join(page[own].tobytes() for own in sorted(page)))])


def forget(run: sqlite3.Connection, logs: Iterable[LogKey]) -> None:
    """Delete the producers of logs."""
    _PRODUCERS.remove(run, KEY, logs)


def read(run: sqlite3.Connection, log: LogKey, limit: int) -> Producers | None:
    """The producers of a log at its cursor, None if they are not known."""
    rows = _PRODUCERS.all(run, f"WHERE {equal(KEY)} ORDER BY page", *log)
    pages = {row.page: row.entries for row in rows}
    dropped = pages.pop(_DROPPED, None)
    if dropped is None:
        return None
    return Producers(np.frombuffer(b"".join(pages.values()), ENTRIES), limit, int.from_bytes(dropped, "little", signed=True))
