"""An agent's answers about parts of segments, for those who read at once: what there is, and its rows."""

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from streaming.broker.agent.service import serve_only
from streaming.broker.agent.slots import Slots
from streaming.broker.disk.logdirs import LogDir, LogDirs
from streaming.broker.excerpts.excerpt_listing import excerpts_of, partitions_with_start, topics_of
from streaming.broker.excerpts.excerpt_scan import LeadsIn, scan_excerpts
from streaming.broker.excerpts.producer_owners import owners_in
from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.consumer_messages import Selection
from streaming.broker.protocol.excerpt_messages import (
    MOST_EXCERPTS,
    Excerpts,
    ExcerptsRequest,
    OwnersRequest,
    Scan,
    ScanEnd,
    ScanRequest,
    UnavailableDir,
    UnreadPart,
)
from streaming.broker.protocol.group_stream import row_messages
from streaming.common.rows import PRODUCER_OWNERS
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError, quoted

SCANS = 8
"""The most scans that run at the same time."""

PRINCIPALS_SCANS = 4
"""The most of them for one principal, so that no token keeps all of them."""

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


def _one_of(value: str, kind: Callable[[str], _Name]) -> _Name:
    try:
        return kind(value)
    except ValueError as error:
        raise AgentError(f"{quoted(value)} is nothing that this agent knows") from error


def scan_messages(
    log_dirs: Sequence[LogDir], request: ScanRequest, principal: str, room: Slots, leads: LeadsIn
) -> Generator[bytes | pa.Buffer, None, None]:
    """The rows of excerpts, and the end of them; ``leads``: as in `scan_excerpts`.

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
        unread.extend((yield from scan_excerpts(log_dirs, request.excerpts, scan, ongoing=request.ongoing, leads=leads)))

    with room.slot(principal) as free:
        if not free:
            raise AgentError(f"{room.used()} scans are running: it is tried again", Reason.BUSY)
        yield from row_messages(rows())
        yield ScanEnd(unread=unread).encode()


def owner_messages(log_dirs: Sequence[LogDir], request: OwnersRequest, redact: Callable[[str], str]) -> Iterator[pa.Buffer]:
    """Which transactional ids producer ids were given to.

    Raises:
        AgentError: a log dir cannot be read.
        VersionError: its sender is of a version that cannot read the answer.
    """
    serve_only(request.protocol)
    place = PRODUCER_OWNERS.get_field_index("transactional_id")
    for rows in owners_in(log_dirs, request.known):
        names = pa.array(map(redact, rows.column(place).to_pylist()), pa.string())
        yield from row_messages([rows.set_column(place, PRODUCER_OWNERS.field(place), names)])
