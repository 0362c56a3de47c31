"""Scans for readers what events say was appended, and what lay on disk before: batches one by one, and transactions that end."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from streaming.broker.disk.identity import LogDir
from streaming.broker.disk.locate import window
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.excerpts.ended_rows import ended_rows
from streaming.broker.excerpts.excerpt_batches import batches_of
from streaming.broker.excerpts.excerpt_files import partition_of
from streaming.broker.excerpts.excerpt_ranges import ranges_of
from streaming.broker.excerpts.excerpt_transactions import end_transactions, open_at
from streaming.broker.excerpts.excerpt_walk import Unread
from streaming.broker.protocol.excerpt_messages import EVERYTHING, Excerpt, Scan
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import TRANSACTION_STEPS, Kind
from streaming.errors import AgentError, GoneError
from streaming.rules.transaction_fold import NO_TRANSACTIONS, Transactions

log = logging.getLogger(__name__)

REMEMBERED = 20_000
"""The most logs of which it is remembered what is open: of others it is found on disk."""

Found: TypeAlias = pa.RecordBatch | Event
"""A row or more: of the columns of what is read, or an event that says what is missing."""


@dataclass(frozen=True, slots=True)
class _OpenAt:
    """What is open in a log at an offset."""

    offset: int
    transactions: Transactions


@dataclass(frozen=True, slots=True)
class OpenMemory:
    """What was open where a reader's last range of a log ended, so that the next one need not look for it on disk. For several threads."""

    _of: OrderedDict[tuple[str, LogKey], _OpenAt] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def get(self, reader: str, key: LogKey, offset: int) -> Transactions | None:
        """What is open at an offset, None if that is not remembered."""
        with self._lock:
            found = self._of.get((reader, key))
        return found.transactions if found is not None and found.offset == offset else None

    def put(self, reader: str, key: LogKey, offset: int, transactions: Transactions) -> None:
        """Remember what is open at an offset."""
        with self._lock:
            self._of[reader, key] = _OpenAt(offset, transactions)
            self._of.move_to_end((reader, key))
            if len(self._of) > REMEMBERED:
                self._of.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Scanning:
    """Scans for one reader, now. ``log_dirs``: returns those that may be read."""

    reader: str
    log_dirs: Callable[[], Sequence[LogDir]]
    memory: OpenMemory

    def backlog(self, excerpt: Excerpt, rows: Scan) -> Iterator[Found]:
        """The rows of an excerpt of the reader's backlog."""
        expected = excerpt.bytes if excerpt.end != EVERYTHING else 0
        try:
            if rows is Scan.BATCHES:
                unread = yield from batches_of(self.log_dirs(), excerpt)
            elif rows is Scan.RANGES:
                unread = yield from ranges_of(self.log_dirs(), excerpt)
            else:
                unread = yield from self._ended_in(excerpt)
        except GoneError:
            yield _missing(excerpt, expected, "deleted")
            return
        except AgentError as error:  # of one log: the others go on
            log.warning("an excerpt cannot be read", extra={"error": str(error)})
            yield _missing(excerpt, expected, f"unreadable: {error}")
            return
        if unread is not None:
            yield _missing(excerpt, unread.bytes, unread.reason)

    def appended(self, event: Event, rows: Scan) -> Iterator[Found]:
        """The rows of an event of the journal: of what was appended, or of what is missing."""
        if event.kind is Kind.SKIPPED:
            yield event
        elif event.kind is Kind.APPENDED and rows is Scan.TRANSACTIONS:
            yield from self._ended(event)
        elif event.kind is Kind.APPENDED:
            yield from self._batches(event)

    def _batches(self, event: Event) -> Iterator[Found]:
        excerpt, found = _excerpt_of(event), 0
        try:
            for batches in batches_of(self.log_dirs(), excerpt):
                found += int(np.sum(batches["size"].to_numpy(), dtype=np.int64))
                yield batches
        except GoneError:
            log.info("a range is not there any more", extra={"log": str(event.log), "segment": event.segment, "offset": event.base_offset})
        if found < event.bytes:
            yield _missing(excerpt, event.bytes - found, "deleted")

    def _ended_in(self, excerpt: Excerpt) -> Generator[Found, None, Unread | None]:
        ranges = ranges_of(self.log_dirs(), excerpt)
        while True:
            try:
                event = next(ranges)
            except StopIteration as end:
                unread: Unread | None = end.value
                return unread
            yield from self._ended(event)

    def _ended(self, event: Event) -> Iterator[Found]:
        """The transactions that end in a range."""
        steps = np.frombuffer(event.transactions or b"", TRANSACTION_STEPS)
        opened = self.memory.get(self.reader, event.log, event.base_offset)
        if not len(steps):
            if opened is not None:
                self.memory.put(self.reader, event.log, event.next_offset, opened)
            return
        if opened is None:
            opened = self._open_before(event)
        after, ended = end_transactions(opened, steps)
        self.memory.put(self.reader, event.log, event.next_offset, after)
        if len(ended):
            yield ended_rows(event.log, event.log_dir, ended)

    def _open_before(self, event: Event) -> Transactions:
        try:
            partition = partition_of(self.log_dirs(), _excerpt_of(event))
            segments = list_segments(partition.path)
            if not segments or segments[0].base_offset >= event.base_offset:
                return NO_TRANSACTIONS
            there = open_at(partition.path, segments, event.base_offset, window())
        except (GoneError, OSError) as error:
            log.warning("what was open before a range is not known", extra={"log": str(event.log), "error": str(error)})
            return NO_TRANSACTIONS
        for doubt in there.doubts:
            log.warning("open transactions of a log may be incomplete", extra={"log": str(event.log), "doubt": doubt})
        return there.transactions


def _excerpt_of(event: Event) -> Excerpt:
    """The batches of a range, wherever compaction has moved them in their segment."""
    return Excerpt(
        broker=event.broker,
        log_dir=event.log_dir,
        topic=event.topic,
        partition=event.partition,
        topic_id=event.topic_id,
        segment=event.segment,
        begin=0,
        end=EVERYTHING,
        bytes=event.bytes,
        from_offset=event.base_offset,
        until_offset=event.next_offset,
        until_epoch=event.log_epoch if event.log_epoch >= 0 else EVERYTHING,
    )


def _missing(excerpt: Excerpt, size: int, reason: str) -> Event:
    return Event(
        kind=Kind.SKIPPED,
        broker=excerpt.broker,
        log_dir=excerpt.log_dir,
        topic=excerpt.topic,
        partition=excerpt.partition,
        topic_id=excerpt.topic_id,
        segment=excerpt.segment,
        base_offset=excerpt.from_offset,
        next_offset=-1 if excerpt.until_offset == EVERYTHING else excerpt.until_offset,
        reason=reason,
        bytes=size,
    )
