"""The answers of an agent to its calls: bytes in, messages out, without the wire."""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import pyarrow as pa

from streaming.broker.agent.excerpt_answers import PRINCIPALS_SCANS, SCANS, excerpt_messages, owner_messages, scan_messages
from streaming.broker.agent.position_answers import PositionAnswers
from streaming.broker.agent.service import POLL_SECONDS, Service
from streaming.broker.agent.slots import Slots
from streaming.broker.protocol.agent_calls import Call
from streaming.broker.protocol.consumer_messages import PlanRequest, Range, Register
from streaming.broker.protocol.excerpt_messages import ExcerptsRequest, OwnersRequest, ScanRequest
from streaming.broker.protocol.group_messages import BatchRequest, GroupsRequest, PositionsRequest, RecordsRequest
from streaming.broker.protocol.group_stream import row_messages
from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.position_messages import BetweenRequest, ReachRequest
from streaming.broker.protocol.status_messages import StatusRequest
from streaming.broker.watcher.cluster_knowledge import Leads
from streaming.common.log_key import LogKey

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
    """The answers of a service, by their calls. They are thread-safe."""
    log_dirs, about_groups = service.watcher.log_dirs, service.about_groups
    room = threading.BoundedSemaphore(AT_ONCE)
    slow = threading.BoundedSemaphore(AT_ONCE)  # for answers that wait for a disk: they hold up no rows
    scans = Slots(SCANS, PRINCIPALS_SCANS)

    def events(body: bytes, principal: str) -> Messages:
        return _few(row_messages(_counted(service.read(_decoded(Range, body), principal), count_rows)), room)

    def leads(key: LogKey, epoch: int) -> int:
        found = service.cluster.led(key, epoch)
        if found is Leads.BEHIND:  # its batches were faster than the record of its election
            service.polls.request(POLL_SECONDS)
            found = service.cluster.led(key, epoch)
        return -1 if found is Leads.BEHIND else int(found)

    positions = PositionAnswers(service.name, log_dirs)

    known: dict[str, Answer] = {
        Call.STATUS: _one(StatusRequest, service.status),
        Call.REGISTER: _one(Register, service.register),
        Call.PLAN: _one(PlanRequest, service.plan),
        Call.EVENTS: events,
        Call.REACH: _one(ReachRequest, positions.reached),
        Call.BETWEEN: lambda body, _: _few(positions.between(_decoded(BetweenRequest, body)), slow),
        Call.EXCERPTS: lambda body, _: _few(excerpt_messages(log_dirs, _decoded(ExcerptsRequest, body)), slow),
        Call.OWNERS: lambda body, _: _few(owner_messages(log_dirs.available, _decoded(OwnersRequest, body), service.redact), slow),
        Call.SCAN: lambda body, principal: scan_messages(log_dirs.available, _decoded(ScanRequest, body), principal, scans, leads),
    }
    if about_groups is not None:
        known |= {
            Call.BATCH: _one(BatchRequest, lambda request, _: about_groups.check_batch(request)),
            Call.POSITIONS: lambda body, _: _few(about_groups.positions(_decoded(PositionsRequest, body)), slow),
            Call.RECORDS: lambda body, _: _few(about_groups.records(_decoded(RecordsRequest, body)), room),
            Call.GROUPS: lambda body, principal: _few(about_groups.groups(_decoded(GroupsRequest, body), principal), room),
        }
    return known


def _few(messages: Messages, room: threading.Semaphore) -> Messages:
    """Each message is made when the one before it is sent, and only a few at the same time for all jobs."""
    while True:
        with room:
            message = next(messages, None)
        if message is None:
            return
        yield message


def _counted(batches: Iterator[pa.RecordBatch], count_rows: Callable[[int], object]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        count_rows(batch.num_rows)
        yield batch


def _decoded(kind: type[_Request], body: bytes) -> _Request:
    with _decoding:
        return kind.decode(body, REQUEST_VALUES)


def _one(kind: type[_Request], answer: Callable[[_Request, str], Message | None]) -> Answer:
    """Answers one message by one; by an empty one where there is nothing to say."""

    def answered(body: bytes, principal: str) -> Messages:
        message = answer(_decoded(kind, body), principal)
        yield b"{}" if message is None else message.encode()

    return answered
