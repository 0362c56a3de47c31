"""The agent's answers to readers: queries of people, which are sent exactly what they have planned, each row in one micro-batch.

A job folds what it is sent, knows what it has, and is sent from its last commit whatever it planned. A reader's rows go into a sink. So a
range is what lies between two plans, neither more nor less, and it is the same when it is read again: what its reader was sent and has not
committed is neither forgotten nor joined, and what was published before is left out. A reader begins at the end of the journal. What lay
on disk before is listed once, and scanned when it is read, so that a reader costs no job anything.
"""

import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from threading import Lock
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.broker.agent.service import POLL_SECONDS, Service, serve_only
from streaming.broker.disk.locate import window
from streaming.broker.disk.logdirs import LogDir, Partition
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.excerpts.excerpt_listing import list_excerpts
from streaming.broker.excerpts.excerpt_scan import batches_of, ended_rows, ranges_of
from streaming.broker.excerpts.excerpt_transactions import end_transactions, open_at
from streaming.broker.excerpts.excerpt_walk import Unread, partition_of
from streaming.broker.journal.blocks import PlacedEvent, block_of, longs, rows_of
from streaming.broker.journal.consumer_states import BacklogExcerpt, Loss, without_lost
from streaming.broker.journal.consumers import MOST_CONSUMERS, Readers
from streaming.broker.journal.joined_ranges import cut
from streaming.broker.journal.journal import Point
from streaming.broker.journal.published import PublishedEnd
from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.consumer_messages import (
    ReaderCommit,
    ReaderPlan,
    ReaderPlanRequest,
    ReaderPosition,
    ReaderRange,
    Selection,
    check_pattern,
)
from streaming.broker.protocol.event_tables import blocks_table, events_table
from streaming.broker.protocol.excerpt_messages import EVERYTHING, Excerpt, Scan
from streaming.broker.watcher.beginnings import Beginning
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import TRANSACTION_STEPS, Kind
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError, GoneError, quoted
from streaming.rules.transaction_fold import NO_TRANSACTIONS, Transactions

# --- scans for readers what events say was appended, and what lay on disk before: batches one by one, and transactions that end.


log = logging.getLogger(__name__)

REMEMBERED = 20_000
"""The most logs of which it is remembered what is open: of others it is found on disk."""

Found: TypeAlias = pa.RecordBatch | Event
"""A row or more: of the columns of what is read, or an event that says what is missing."""


@dataclass(frozen=True, slots=True)
class OpenMemory:
    """What was open where a reader's last range of a log ended, so that the next one need not look for it on disk. For several threads."""

    _of: OrderedDict[tuple[str, LogKey], tuple[int, Transactions]] = field(default_factory=OrderedDict)  # offset, and what is open there
    _lock: Lock = field(default_factory=Lock)

    def get(self, reader: str, key: LogKey, offset: int) -> Transactions | None:
        """What is open at an offset, None if that is not remembered."""
        with self._lock:
            at, transactions = self._of.get((reader, key), (-1, None))
        return transactions if at == offset else None

    def put(self, reader: str, key: LogKey, offset: int, transactions: Transactions) -> None:
        """Remember what is open at an offset."""
        with self._lock:
            self._of[reader, key] = offset, transactions
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
            excerpt, found = _excerpt_of(event), 0
            try:
                for batches in batches_of(self.log_dirs(), excerpt):
                    found += int(np.sum(batches["size"].to_numpy(), dtype=np.int64))
                    yield batches
            except GoneError:
                log.info(
                    "a range is not there any more", extra={"log": str(event.log), "segment": event.segment, "offset": event.base_offset}
                )
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
        return there.opened


_PLACE = ("broker", "log_dir", "topic", "partition", "topic_id", "segment")


def _excerpt_of(event: Event) -> Excerpt:
    """The batches of a range, wherever compaction has moved them in their segment."""
    return Excerpt(
        **{name: getattr(event, name) for name in _PLACE},
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
        **{name: getattr(excerpt, name) for name in _PLACE},
        base_offset=excerpt.from_offset,
        next_offset=-1 if excerpt.until_offset == EVERYTHING else excerpt.until_offset,
        reason=reason,
        bytes=size,
    )


# --- reads what a reader has planned: events of the journal as they are, without what comes again, and the excerpts of its backlog. Rows of
# ranges are events. Batches and transactions are made from the same events, whose byte ranges are scanned again here, where they are. What
# is not there any more comes as an event of kind SKIPPED.


WANTED = tuple(map(str, (Kind.APPENDED, Kind.TRUNCATED, Kind.SKIPPED, Kind.CORRUPT, Kind.GONE, Kind.FOUND)))
"""The kinds of events that may become rows."""


@dataclass(frozen=True, slots=True)
class ReaderReading:
    """For several threads. ``agent``: its name; ``broker``: the one that a loss without a log is reported for."""

    agent: str
    broker: int
    readers: Readers
    scanning: Scanning
    is_of: Callable[[ReaderRange], bool]  # whether a range is still of the journal as its reader knows it

    def rows(self, request: ReaderRange) -> Iterator[pa.RecordBatch]:
        """The rows of a range: of `EVENTS`, and for batches and transactions of their own columns, too."""
        selection, rows = request.selected.selection(), Scan(request.rows)
        if request.events:
            yield from self._events(request, selection, rows)
        for excerpt in self.readers.backlog(request.reader, request.begin.excerpts, request.end.excerpts):
            if selection.has(excerpt.topic, excerpt.partition):
                for found in self.scanning.backlog(Excerpt(*astuple(excerpt)), rows):
                    yield self._sent(request, found)

    def _events(self, request: ReaderRange, selection: Selection, rows: Scan) -> Iterator[pa.RecordBatch]:
        begin, end, journal = request.begin, request.end, self.readers.journal
        with journal.database.reading():
            after, total = begin.seq, begin.total
            if not self.is_of(request):
                missing = end.total - total if after >= 0 else 0
                yield self._lost(request, [Event(kind=Kind.SKIPPED, broker=self.broker, reason="agent_lost", bytes=missing)])
                return
            if after < 0:  # from the reader's beginning on
                after = self.readers.begun(request.reader)
                total = journal.at(after).total
            losses = self.readers.send(request.reader, after, total, end.seq)
        if losses:
            yield self._lost(request, [self._loss(loss) for loss in losses])
        for block in journal.each_block(after, end.seq):
            yield from self._of_block(request, new_of(without_lost(losses, block), selection), rows)

    def _of_block(self, request: ReaderRange, block: pa.RecordBatch, rows: Scan) -> Iterator[pa.RecordBatch]:
        if not len(block):
            return
        if rows is Scan.RANGES:
            yield from blocks_table(self.agent, request.end.journal, [block]).to_batches()
            return
        for placed in rows_of(block):
            for found in self.scanning.appended(placed.event, rows):
                yield self._sent(request, found, placed.seq)

    def _sent(self, request: ReaderRange, rows: pa.RecordBatch | Event, seq: int = -1) -> pa.RecordBatch:
        if isinstance(rows, Event):
            return _one(events_table(self.agent, request.end.journal, [(seq, [rows])]))
        return rows

    def _lost(self, request: ReaderRange, events: Sequence[Event]) -> pa.RecordBatch:
        return _one(events_table(self.agent, request.end.journal, [(request.end.seq, events)]))

    def _loss(self, loss: Loss) -> Event:
        return Event(kind=Kind.SKIPPED, broker=self.broker, reason="journal_trimmed", bytes=loss.bytes)


def has_rows(blocks: Iterable[pa.RecordBatch], selection: Selection) -> bool:
    """Whether any of these events may become a row for a reader."""
    return any(len(new_of(block, selection)) for block in blocks)


def new_of(block: pa.RecordBatch, selection: Selection) -> pa.RecordBatch:
    """The events of a block that a reader wants, without what the journal had published before.

    The beginning of another job may publish again what this reader has had, or did not want.
    """
    found = block.filter(pc.and_(pc.is_in(block["kind"], pa.array(WANTED)), _selected(block, selection)))
    known, base, following = longs(found, "published_upto"), longs(found, "base_offset"), longs(found, "next_offset")
    kinds = found["kind"].to_numpy(zero_copy_only=False)
    listed = (kinds == Kind.FOUND) & ~(_has(found, "rolled") | _has(found, "deleted"))
    again = (known >= following) & (base < following)
    empty = (kinds == Kind.TRUNCATED) & (longs(found, "bytes") == 0)  # only the end of a log, published again
    parted = (base < known) & (known < following)
    if not (again | empty | listed | parted).any():
        return found
    kept = found.filter(pa.array(~(again | empty | listed)))
    if not parted.any():
        return kept
    return block_of([PlacedEvent(each.seq, each.total, _rest(each.event)) for each in rows_of(kept)])


def _has(block: pa.RecordBatch, name: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = block[name].is_valid().to_numpy(zero_copy_only=False)
    return found


def _rest(event: Event) -> Event:
    """What of an event was not published before."""
    if not event.base_offset < event.published_upto < event.next_offset:
        return event
    rest = cut(event, event.published_upto) if event.kind is Kind.APPENDED else None
    if rest is not None:
        return replace(rest, start_position=rest.end_position - rest.bytes)
    missing = event.bytes * (event.next_offset - event.published_upto) // (event.next_offset - event.base_offset)
    reason = event.reason if event.kind is Kind.SKIPPED else "journal_trimmed"
    of_log = Event(kind=Kind.SKIPPED, **event.log._asdict(), log_dir=event.log_dir, segment=event.segment)
    return replace(of_log, reason=reason, bytes=missing, base_offset=event.published_upto, next_offset=event.next_offset)


def _selected(block: pa.RecordBatch, selection: Selection) -> pa.Array:
    topics = block["topic"].dictionary_encode()
    wanted = [selection.has_topic(topic) for topic in topics.dictionary.to_pylist()]
    selected = np.array(wanted, np.bool_)[topics.indices.to_numpy()] if wanted else np.zeros(len(block), np.bool_)
    if selection.partitions:
        selected &= np.isin(block["partition"].to_numpy(), selection.partitions)
    return pa.array(selected)


def _one(table: pa.Table) -> pa.RecordBatch:
    found = table.combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], table.schema)


EXCERPT_BYTES = 64 << 20
"""What lay on disk before a reader's beginning is planned in excerpts of so many bytes at most."""

EXCERPTS_AT_ONCE = 1000
"""The most excerpts of a plan, however small they are."""

_ID = re.compile(r"[ -~]{1,64}")


@dataclass(frozen=True, slots=True)
class ReaderService:
    """Called from the threads of the server. ``service``: that of the agent, for jobs."""

    service: Service
    readers: Readers
    memory: OpenMemory = field(default_factory=OpenMemory)

    # --- plans

    def plan(self, request: ReaderPlanRequest, principal: str = "") -> ReaderPlan:
        """Plan how far the budget reaches. A reader that is not known, or cannot go on from where it was, begins with it.

        Raises:
            AgentError: the reader belongs to another principal or another run, or the request is not valid.
            VersionError: its source is of a version that this agent does not serve.
        """
        serve_only(request.protocol)
        start = _start_of(request.start)
        selection = _selection_of(request)
        if not _ID.fullmatch(request.reader):
            raise AgentError(f"no such id of a reader: {quoted(request.reader)}")
        request = replace(request, reader=_consumer(request.reader))
        self.service.claim(request.reader, request.run, principal)
        at = self._known(request)
        if at is None:
            at = self._begin(request, start, selection, principal)
        if at is None:
            return ReaderPlan(agent=self.service.name, to=request.at, begun=False)
        self.service.consumers.note_seen(request.reader)
        return self._reach(replace(request, at=at), selection)

    def _known(self, request: ReaderPlanRequest) -> ReaderPosition | None:
        """Where a known reader is, None if it has to begin: it is new, or cannot go on from where it was."""
        consumers, journal, at = self.service.consumers, self.service.journal, request.at
        with journal.database.reading():
            committed = consumers.committed(request.reader)
            if committed is None or not self.readers.is_known(request.reader):
                return None
            name = consumers.journal(request.reader)
            if at.journal != name:  # it has planned nothing here yet; or it has lost its checkpoint, or the agent its journal
                if consumers.was_sent(request.reader):
                    return None
                # one that has been here before has had what lies there, whoever began here with its id since
                excerpts = self.readers.backlog_size(request.reader) if at.journal else 0
                return ReaderPosition(journal=name, seq=committed, total=journal.at(committed).total, excerpts=excerpts)
            if not journal.has_been_at(at.seq, at.total):
                return None
            if at.seq < committed and not consumers.set_back(request.reader, at.seq):
                return None  # its checkpoint was restored from a copy, and what it asks for is forgotten
            return at

    def _begin(self, request: ReaderPlanRequest, start: StartFrom | int, selection: Selection, principal: str) -> ReaderPosition | None:
        """Let a reader begin at the end of the journal; None while the watcher has not begun to watch."""
        service, reader = self.service, request.reader
        if service.arrivals.begins(reader):
            return None
        if not (service.consumers.any() or service.watcher.tails() or service.arrivals.has_begun(reader)):
            service.arrivals.note_beginning(reader, service.watcher.begin(Beginning(StartFrom.LATEST, resumed=False)))
            service.polls.want()
            return None
        if not service.beginnings.take(principal):
            raise AgentError("too many queries begin at the same time: it is tried again", Reason.BUSY)
        if not service.consumers.make_room(principal, service.consumer_expiry_ms):
            raise AgentError(f"it serves {MOST_CONSUMERS} jobs and queries already with this token: stop one of them", Reason.BUSY)
        service.watcher.note_consumer()
        service.polls.request(POLL_SECONDS)
        ends = self.readers.begin(reader, principal)
        # one that has been here before has had what lies there, or most of it: it misses what was in between rather than have rows twice
        begins = StartFrom.LATEST if request.at.journal else start
        excerpts = [] if begins is StartFrom.LATEST else _listed(service.watcher.log_dirs.available, selection, begins)
        self.readers.keep(reader, list(_before(excerpts, ends)), holds=request.holds)
        at = self._known(replace(request, at=ReaderPosition()))
        if at is None:
            raise AgentError("the reader was forgotten while it began: it is tried again", Reason.BUSY)
        return at

    def _reach(self, request: ReaderPlanRequest, selection: Selection) -> ReaderPlan:
        at, upto = request.at, request.upto
        point = self.service.reach(request.reader, at.seq, request.budget, request.wait_ms)
        if upto is not None and point.seq > upto.seq:
            point = Point(upto.seq, upto.total)
        left = None if request.budget is None else request.budget - (point.total - at.total)
        size = self.readers.backlog_size(request.reader) if upto is None else upto.excerpts
        excerpts = self._excerpts(request.reader, at.excerpts, size, left)
        end = self.service.journal.end().seq if upto is None else upto.seq
        blocks = self.service.journal.each_block(at.seq, point.seq)
        lost = self.service.journal.trimmed().seq > at.seq
        return ReaderPlan(
            agent=self.service.name,
            to=ReaderPosition(journal=at.journal, seq=max(point.seq, at.seq), total=max(point.total, at.total), excerpts=excerpts),
            begun=True,
            idle=excerpts == at.excerpts and not lost and not has_rows(blocks, selection),
            more=point.seq < end or excerpts < size,
            unread=not self.service.watcher.caught_up,
        )

    def _excerpts(self, reader: str, begin: int, size: int, left: int | None) -> int:
        """Up to which excerpt a budget reaches; at least one is planned if there is anything left of it."""
        if left is None:
            return max(begin, size)
        end = begin
        for excerpt in self.readers.backlog(reader, begin, min(size, begin + EXCERPTS_AT_ONCE)):
            if left <= 0:
                break
            left -= excerpt.bytes
            end += 1
        return end

    # --- rows

    def rows(self, request: ReaderRange, principal: str = "") -> Iterator[pa.RecordBatch]:
        """The rows of a range. Raises AgentError: the reader belongs to another principal or another run, or the request is not valid."""
        serve_only(request.protocol)
        request = replace(request, reader=_consumer(request.reader))
        self.service.claim(request.reader, request.run, principal)
        if request.rows not in set(Scan):
            raise AgentError(f"no such rows: {quoted(request.rows)}")
        log_dirs = self.service.watcher.log_dirs
        scanning = Scanning(request.reader, lambda: log_dirs.available, self.memory)
        reading = ReaderReading(self.service.name, log_dirs.brokers[0], self.readers, scanning, self._is_of)
        return reading.rows(request)

    def _is_of(self, request: ReaderRange) -> bool:
        return self.readers.is_known(request.reader) and self.service.consumers.journal(request.reader) == request.end.journal

    def committed(self, message: ReaderCommit, principal: str = "") -> None:
        """Note that everything up to a position is in the reader's sink: it will not be requested again."""
        consumers, message = self.service.consumers, replace(message, reader=_consumer(message.reader))
        with self.service.journal.database.reading():
            served = consumers.belongs_to(message.reader, principal) and self.service.owners.owns(message.reader, message.run)
            if served and consumers.committed(message.reader) is not None and consumers.journal(message.reader) == message.at.journal:
                consumers.note_committed(message.reader, min(message.at.seq, self.service.journal.end().seq))


def _consumer(reader: str) -> str:
    """The consumer in the journal that a reader is: none that a job may be."""
    return f"reader {reader}"


def _start_of(written: str) -> StartFrom | int:
    if written in set(StartFrom):
        return StartFrom(written)
    if written.isascii() and written.isdigit() and len(written) <= 18:
        return int(written)
    raise AgentError(f"no such start: {quoted(written)}; there are {', '.join(StartFrom)}, and times in Unix milliseconds")


def _selection_of(request: ReaderPlanRequest) -> Selection:
    selection = request.selected.selection()
    try:
        check_pattern(selection.pattern)
    except ValueError as error:
        raise AgentError(f"no such pattern of topics: {quoted(selection.pattern)}: {error}") from error
    return selection


def _listed(log_dirs: Sequence[LogDir], selection: Selection, start: StartFrom | int) -> list[Excerpt]:
    """What lies in log dirs. Of a log that cannot be read, all: what is still missing when it is read comes as a row that says so."""
    unknown: list[Excerpt] = []

    def note(partition: Partition, why: str) -> None:
        log.warning("what lies in a log is not known to a reader that begins", extra={"path": str(partition.path), "error": why})
        place = (partition.log_dir.broker, str(partition.log_dir.path), partition.topic, partition.partition, partition.topic_id)
        unknown.append(Excerpt(*place, segment=0, begin=0, end=EVERYTHING, bytes=0))

    return list_excerpts(log_dirs, selection, start, EXCERPT_BYTES, note) + unknown


def _before(excerpts: list[Excerpt], ends: Mapping[LogKey, PublishedEnd]) -> Iterator[BacklogExcerpt]:
    """The excerpts up to where each log was published when a reader began. Logs that are not published yet come with their events."""
    for each in excerpts:
        end = ends.get(LogKey(each.broker, each.topic, each.partition, each.topic_id))
        if end is None or end.upto <= each.from_offset:
            continue
        epoch = end.epoch if end.epoch >= 0 else EVERYTHING
        bounded = replace(each, until_offset=min(each.until_offset, end.upto), until_epoch=min(each.until_epoch, epoch))
        yield BacklogExcerpt(*astuple(bounded))
