"""The agent's answers to readers: queries of people, which are sent exactly what they have planned, each row in one micro-batch.

A job folds what it is sent, knows what it has, and is sent from its last commit whatever it planned. A reader's rows go into a sink. So a
range is what lies between two plans, neither more nor less, and it is the same when it is read again: what its reader was sent and has not
committed is neither forgotten nor joined, and what was published before is left out. A reader begins at the end of the journal. What lay
on disk before is listed once, and scanned when it is read, so that a reader costs no job anything.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace

import pyarrow as pa

from streaming.broker.agent.reader_reading import ReaderReading, has_rows
from streaming.broker.agent.reader_scanning import OpenMemory, Scanning
from streaming.broker.agent.service import POLL_SECONDS, Service, serve_only
from streaming.broker.disk.logdirs import LogDir, Partition
from streaming.broker.excerpts.excerpt_listing import list_excerpts
from streaming.broker.journal.consumer_states import BacklogExcerpt
from streaming.broker.journal.consumers import MOST_CONSUMERS, Readers
from streaming.broker.journal.journal import Point
from streaming.broker.journal.published import PublishedEnd
from streaming.broker.protocol.excerpt_messages import EVERYTHING, Excerpt, Scan
from streaming.broker.protocol.problems import Reason
from streaming.broker.protocol.reader_messages import ReaderCommit, ReaderPlan, ReaderPlanRequest, ReaderPosition, ReaderRange
from streaming.broker.protocol.selection import Selection, check_pattern
from streaming.broker.watcher.beginnings import Beginning
from streaming.common.log_key import LogKey
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError, quoted

log = logging.getLogger(__name__)

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
        return ReaderPlan(
            agent=self.service.name,
            to=ReaderPosition(journal=at.journal, seq=max(point.seq, at.seq), total=max(point.total, at.total), excerpts=excerpts),
            begun=True,
            idle=excerpts == at.excerpts and not self._has_lost(request) and not has_rows(blocks, selection),
            more=point.seq < end or excerpts < size,
            unread=not self.service.watcher.caught_up,
        )

    def _has_lost(self, request: ReaderPlanRequest) -> bool:
        return self.service.journal.trimmed().seq > request.at.seq

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
        """The rows of a range.

        Raises:
            AgentError: the reader belongs to another principal or another run, or the request is not valid.
        """
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
