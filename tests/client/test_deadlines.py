"""Every call ends at its deadline and within its bytes, whatever the server sends: one agent holds up nobody."""

import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol.agent_calls import Call, Reason
from streaming.broker.protocol.consumer_messages import PlanRequest, Range, Register
from streaming.broker.protocol.excerpt_messages import ExcerptsRequest, OwnersRequest, ScanRequest
from streaming.broker.protocol.group_messages import POSITIONS_ASKED, BatchRequest
from streaming.broker.protocol.position_messages import BetweenRequest, ReachRequest, Selected
from streaming.errors import AgentError
from streaming.spark.client.address_lookup import NO_FILES, ClientFiles
from streaming.spark.client.agent_client import MESSAGE_BYTES, SCAN_SECONDS, AgentClient
from streaming.spark.client.bounded_socket import Bounds, connect, with_tls
from tests.certificates import Authority
from tests.clocks import Clock
from tests.dripping import MESSAGES, NEVER_ENDING, Pieces, dripping
from tests.limits import SECONDS
from tests.tables import each_row

RANGE = Range(consumer="", run="", journal="", after=-1, upto=-1)
REACH = ReachRequest(broker=1, at="", first=True, start="latest", selected=Selected([], "", []), budget=None)
QUESTION = pa.table([[1], ["t"], [""], [0], [0], [1], [0]], schema=POSITIONS_ASKED)

CALLS: Mapping[str, Callable[[AgentClient], Any]] = {
    Call.STATUS: lambda client: client.status(),
    Call.REGISTER: lambda client: client.register(Register("job", "earliest", resumed=False)),
    Call.PLAN: lambda client: client.plan(PlanRequest("job", "run", "", -1, None, 0)),
    Call.EVENTS: lambda client: client.read(RANGE),
    Call.EXCERPTS: lambda client: client.excerpts(ExcerptsRequest(excerpt_bytes=0)),
    Call.SCAN: lambda client: list(client.scan(ScanRequest(scan="batches", excerpts=[]))),
    Call.OWNERS: lambda client: client.owners(OwnersRequest()),
    Call.GROUPS: lambda client: client.groups(),
    Call.POSITIONS: lambda client: client.positions(QUESTION),
    Call.RECORDS: lambda client: client.records(),
    Call.BATCH: lambda client: client.batch(BatchRequest(broker=1, topic="t", topic_id="", partition=0, offset=0)),
    Call.REACH: lambda client: client.reach(REACH),
    Call.BETWEEN: lambda client: client.between(BetweenRequest(broker=1, before="", to="", excerpt_bytes=1 << 20)),
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


def test_each_call_is_there() -> None:
    assert {*CALLS} == {*Call}


def failed(call: str, pieces: Pieces, authority: Authority | None = None) -> AgentError:
    """How a call ends whose answer has these pieces, each of which takes a part of its time."""
    clock, seconds = Clock(), SCAN_SECONDS / 4 if call == Call.SCAN else 1.0
    context, files = _tls(authority) if authority is not None else (None, NO_FILES)
    with dripping(pieces, clock, context, seconds) as (host, port):
        client = AgentClient(f"{'http' if context is None else 'https'}://{host}:{port}", files, clock)
        with pytest.raises(AgentError, match=f"agent at {client.address}: ") as error:
            CALLS[call](client)
        client.close()
    return error.value


def _tls(authority: Authority) -> tuple[ssl.SSLContext, ClientFiles]:
    context, files = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), authority.issue("server")
    context.load_cert_chain(files.cert, files.key)
    return context, authority.client()


@each_row(("call", "part"), [pytest.param(call, part, id=f"{call}: {part}") for call in CALLS for part in NEVER_ENDING])
def test_a_call_ends_at_its_deadline_whatever_comes(call: str, part: str) -> None:
    assert failed(call, NEVER_ENDING[part]).reason == Reason.SILENT


@each_row("part", NEVER_ENDING)
def test_it_does_so_over_tls(part: str, authority: Authority) -> None:
    for call in (Call.STATUS, Call.PLAN, Call.EVENTS):
        assert failed(call, NEVER_ENDING[part], authority).reason == Reason.SILENT


def test_many_messages_end_no_later() -> None:
    assert failed(Call.RECORDS, MESSAGES).reason == Reason.SILENT


def test_a_handshake_that_does_not_end_is_cut() -> None:
    """The library that makes it gets what time is left: no time of the test's clock."""
    over = threading.Event()

    def begun() -> Iterator[bytes]:
        yield b"\x16\x03\x03\x40\x00\x02"  # a record of 16 KiB
        over.wait(SECONDS)

    with dripping(begun, Clock()) as (host, port):
        with pytest.raises(TimeoutError):
            with_tls(connect(host, port, Bounds(time.monotonic() + 0.2, 1 << 20)), ssl.create_default_context(), host)
        over.set()


# --- bytes


HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
MANY = 1 << 20
TOO_MUCH: Mapping[str, tuple[Pieces, str]] = {
    "one large message": (lambda: iter([HEAD + struct.pack("!I", MESSAGE_BYTES + 1)]), "a message of its answer is larger than 4 MiB"),
    "a second message": (lambda: iter([HEAD + b"\0\0\0\2{}" + struct.pack("!I", 1000)]), "it answers with several messages"),
    "no message": (lambda: iter([HEAD + b"\xff\xff\xff\xff{}"]), "it answers with no message"),
    "an empty message": (lambda: iter([HEAD + b"\0\0\0\0"]), "it answers with an empty message"),
    "interim answers": (lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 40_000, 40), "its answer is larger than 4 MiB"),
}


@each_row(("call", "what"), [(call, what) for call in (Call.STATUS, Call.PLAN, Call.BATCH) for what in TOO_MUCH])
def test_what_is_too_much_for_a_call_is_refused_unread(call: str, what: str) -> None:
    pieces, words = TOO_MUCH[what]

    def at_once() -> Iterator[bytes]:
        yield from pieces()

    clock = Clock()
    with dripping(at_once, clock) as (host, port):
        client = AgentClient(f"{host}:{port}", NO_FILES, lambda: 0.0)
        with pytest.raises(AgentError, match=words) as error:
            CALLS[call](client)
        client.close()
    assert error.value.reason == Reason.PROTOCOL


@given(st.lists(st.integers(1, 1 << 22), max_size=40), st.integers(1, 1 << 26))
def test_bytes_are_counted_until_there_are_more_than_a_call_may_receive(pieces: list[int], most: int) -> None:
    bounds, taken = Bounds(1.0, most, lambda: 0.0), 0
    for piece in pieces:
        taken += piece
        if taken > most:
            with pytest.raises(AgentError, match="its answer is larger than"):
                bounds.count(piece)
            return
        bounds.count(piece)
    assert bounds.received == taken


def test_small_messages_count_as_what_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message of a byte is an object of dozens."""
    monkeypatch.setattr("streaming.spark.client.agent_client.ANSWER_BYTES", MANY)
    monkeypatch.setattr(AgentClient._messages, "__defaults__", (MANY,))
    clock = Clock()
    with dripping(lambda: chain([HEAD], repeat(b"\0\0\0\1x" * 1000, 1000)), clock) as (host, port):
        client = AgentClient(f"{host}:{port}", NO_FILES, lambda: 0.0)
        kept = []
        with pytest.raises(AgentError, match="its answer is larger than 1 MiB"):
            kept += client._messages(Call.RECORDS, b"{}", 1.0)
        client.close()
    assert len(kept) < MANY // 64
