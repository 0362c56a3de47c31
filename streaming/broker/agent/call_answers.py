"""The answers of an agent to its calls: bytes in, messages out, without the wire."""

import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from streaming.broker.agent.reader_service import ReaderService
from streaming.broker.agent.service import Service, serve_only
from streaming.broker.disk.logdirs import LogDir, LogDirs
from streaming.broker.excerpts.excerpt_listing import excerpts_of, partitions_with_start, topics_of
from streaming.broker.excerpts.excerpt_scan import scan_excerpts
from streaming.broker.journal.consumers import Readers
from streaming.broker.protocol.agent_calls import Call, Reason
from streaming.broker.protocol.consumer_messages import (
    Committed,
    PlanRequest,
    Range,
    ReaderCommit,
    ReaderPlanRequest,
    ReaderRange,
    Register,
    Selection,
)
from streaming.broker.protocol.excerpt_messages import (
    MOST_EXCERPTS,
    Excerpts,
    ExcerptsRequest,
    Scan,
    ScanEnd,
    ScanRequest,
    UnavailableDir,
    UnreadPart,
)
from streaming.broker.protocol.group_messages import BatchRequest, GroupsRequest, PositionsRequest, RecordsRequest
from streaming.broker.protocol.group_stream import row_messages
from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.status_messages import StatusRequest
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError, quoted

SCANS = 8
"""The most scans that run at the same time."""

PRINCIPALS_SCANS = 4
"""The most of them for one principal, so that no token keeps all of them."""


class ScanRoom:
    """Room for a few scans. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()

    @contextmanager
    def taken(self, principal: str) -> Iterator[None]:
        """Take a place for the duration of a block.

        Raises:
            AgentError: all are taken (reason `Reason.BUSY`): whoever asks again gets one later.
        """
        with self._lock:
            if self._running[principal] >= PRINCIPALS_SCANS or self._running.total() >= SCANS:
                raise AgentError(f"{self._running.total()} scans are running: it is tried again", Reason.BUSY)
            self._running[principal] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[principal] -= 1


# --- the answers about parts of segments, which people read at once: what there is, and its rows.


_Name = TypeVar("_Name", StartFrom, Scan)

LEAST_EXCERPT_BYTES = 1 << 20
"""Smaller excerpts are refused: a log would be millions of them."""

NAMED = 5
"""So many topics are named where none is selected."""


def excerpt_messages(every: LogDirs, request: ExcerptsRequest) -> Iterator[bytes]:
    """What lies in the logs that are selected, some at a time.

    Raises:
        AgentError: the request is not valid, or a log dir cannot be read.
        VersionError: its sender is of a version that cannot read the answer.
    """
    serve_only(request.protocol)
    log_dirs, unavailable = every.available, every.unavailable
    if request.only_topics:
        yield Excerpts(excerpts=[], last=True, topics=topics_of(log_dirs)).encode()
        return
    if request.excerpt_bytes < LEAST_EXCERPT_BYTES:
        raise AgentError(f"excerpts have {LEAST_EXCERPT_BYTES} bytes or more, and {request.excerpt_bytes} are asked for")
    selection = Selection(topics=tuple(request.topics), partitions=tuple(request.partitions))
    start = request.timestamp if request.timestamp >= 0 else _one_of(request.start, StartFrom)
    partitions = list(partitions_with_start(log_dirs, selection))
    found = excerpts_of(partitions, start, request.excerpt_bytes)
    while some := list(islice(found, MOST_EXCERPTS)):
        yield Excerpts(excerpts=some, last=False).encode()
    topics = [] if partitions else topics_of(log_dirs)[:NAMED]
    away = [UnavailableDir(broker=each.broker, log_dir=str(each.path)) for each in every if each.path in unavailable]
    yield Excerpts(excerpts=[], last=True, matched=len(partitions), topics=topics, unavailable=away).encode()


def scan_messages(
    log_dirs: Sequence[LogDir], request: ScanRequest, principal: str, room: ScanRoom
) -> Generator[bytes | pa.Buffer, None, None]:
    """The rows of excerpts, and the end of them.

    Raises:
        AgentError: the request is not valid, a file cannot be read, or as many scans run as there may be.
        VersionError: its sender is of a version that cannot read the answer.
    """
    serve_only(request.protocol)
    if len(request.excerpts) > MOST_EXCERPTS:
        raise AgentError(f"a request has {MOST_EXCERPTS} excerpts at most, and {len(request.excerpts)} are asked for")
    unread: list[UnreadPart] = []

    def rows() -> Iterator[pa.RecordBatch]:
        scan = _one_of(request.scan, Scan)
        unread.extend((yield from scan_excerpts(log_dirs, request.excerpts, scan, ongoing=request.ongoing)))

    with room.taken(principal):
        yield from row_messages(rows())
        yield ScanEnd(unread=unread).encode()


def _one_of(value: str, kind: Callable[[str], _Name]) -> _Name:
    try:
        return kind(value)
    except ValueError as error:
        raise AgentError(f"{quoted(value)} is nothing that this agent knows") from error


AT_ONCE = 4
"""The most answers with rows that are built at the same time. Others wait, so that many jobs need no more memory than a few."""

REQUEST_VALUES = 1 << 18
"""The most values of a request: a job that knows 30,000 logs of coordinators here sends as many."""

Messages = Iterator[bytes | pa.Buffer]

Answer = Callable[[bytes, str], Messages]
"""Takes a request and the principal that sends it, and returns the messages of the answer; raises SegtailError where there is none."""

_Request = TypeVar("_Request", bound=Message)

_decoding = threading.Lock()
"""One request is decoded at a time: many small parts of JSON take fifty times their length for a moment."""


def answers(service: Service, count_rows: Callable[[int], object] = lambda _: None) -> Mapping[str, Answer]:
    """The answers of a service. For several threads."""
    log_dirs, about_groups = service.watcher.log_dirs, service.about_groups
    room = threading.BoundedSemaphore(AT_ONCE)
    slow = threading.BoundedSemaphore(AT_ONCE)  # for answers that wait for a disk: they hold up no rows
    scans = ScanRoom()

    def events(body: bytes, principal: str) -> Messages:
        return _few(row_messages(_counted(service.read(_decoded(Range, body), principal), count_rows)), room)

    to_readers = ReaderService(service, Readers(service.journal, service.consumers))

    def reader_rows(body: bytes, principal: str) -> Messages:
        request = _decoded(ReaderRange, body)
        messages = row_messages(_counted(to_readers.rows(request, principal), count_rows))
        if request.rows == Scan.RANGES:
            yield from _few(messages, room)
            return
        with scans.taken(principal):
            yield from messages

    known: dict[str, Answer] = {
        Call.STATUS: _one(StatusRequest, service.status),
        Call.REGISTER: _one(Register, service.register),
        Call.PLAN: _one(PlanRequest, service.plan),
        Call.EVENTS: events,
        Call.RECEIVED: _one(Range, service.received),
        Call.COMMITTED: _one(Committed, service.committed),
        Call.READER_PLAN: _one(ReaderPlanRequest, to_readers.plan),
        Call.READER_ROWS: reader_rows,
        Call.READER_COMMIT: _one(ReaderCommit, to_readers.committed),
        Call.EXCERPTS: lambda body, _: _few(excerpt_messages(log_dirs, _decoded(ExcerptsRequest, body)), slow),
        Call.SCAN: lambda body, principal: scan_messages(log_dirs.available, _decoded(ScanRequest, body), principal, scans),
    }
    if about_groups is not None:
        known |= {
            Call.BATCH: _one(BatchRequest, lambda request, _: about_groups.check_batch(request)),
            Call.POSITIONS: lambda body, _: _few(about_groups.positions(_decoded(PositionsRequest, body)), slow),
            Call.RECORDS: lambda body, _: _few(about_groups.records(_decoded(RecordsRequest, body)), room),
            Call.GROUPS: lambda body, _: _few(about_groups.groups(_decoded(GroupsRequest, body)), room),
        }
    return known


def _one(kind: type[_Request], answer: Callable[[_Request, str], Message | None]) -> Answer:
    """Answers one message by one; by an empty one where there is nothing to say."""

    def answered(body: bytes, principal: str) -> Messages:
        message = answer(_decoded(kind, body), principal)
        yield b"{}" if message is None else message.encode()

    return answered


def _decoded(kind: type[_Request], body: bytes) -> _Request:
    with _decoding:
        return kind.decode(body, REQUEST_VALUES)


def _counted(batches: Iterator[pa.RecordBatch], count_rows: Callable[[int], object]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        count_rows(batch.num_rows)
        yield batch


def _few(messages: Messages, room: threading.Semaphore) -> Messages:
    """Each message is made when the one before it is sent, and only a few at the same time for all jobs."""
    while True:
        with room:
            message = next(messages, None)
        if message is None:
            return
        yield message
