"""Talk to agents. Every call has a deadline; whatever goes wrong on the way is an AgentError that names the address."""

import logging
import threading
from collections.abc import Iterator
from typing import TypeVar

import pyarrow as pa
import pyarrow.flight as flight

from streaming.agent.messages import Committed, Hello, Log, Logs, Message, Plan, PlanRequest, Range, Status
from streaming.errors import AgentError

log = logging.getLogger(__name__)

ANSWER_SECONDS = 3.0
"""How long an agent may take to answer a message."""

STREAM_SECONDS = 60.0
"""How long it may take to stream a range."""

SCAN_SECONDS = 3600.0
"""How long it may take to stream the batches of a segment, at the pace at which they are taken."""

_WRONG = (flight.FlightError, pa.ArrowException, OSError)
"""What Arrow raises when a call fails."""

_Answer = TypeVar("_Answer", bound=Message)


class AgentClient:
    """A connection to the agent at ``address`` (host:port). Safe to use from several threads."""

    def __init__(self, address: str) -> None:
        """Name the agent; the connection is made by the first call."""
        self.address = address
        self._lock = threading.Lock()
        self._connection: flight.FlightClient | None = None

    def status(self) -> Status:
        """What the agent is and how far it has come."""
        return self._ask("status", b"{}", Status)

    def hello(self, hello: Hello) -> Status:
        """Tell it that a consumer starts."""
        return self._ask("hello", hello.encode(), Status)

    def plan(self, request: PlanRequest) -> Plan:
        """How far does a budget reach?"""
        return self._ask("plan", request.encode(), Plan, ANSWER_SECONDS + request.wait_ms / 1000)

    def committed(self, message: Committed) -> None:
        """Tell it what will not be asked for again."""
        self._call("committed", message.encode(), ANSWER_SECONDS)

    def read(self, asked: Range) -> pa.Table:
        """All rows of a range (`streaming.rows.EVENTS`), and tell the agent that they arrived."""
        try:
            table = self._open().do_get(flight.Ticket(b"events " + asked.encode()), _options(STREAM_SECONDS)).read_all()
        except _WRONG as error:
            raise self._failed(error) from error
        try:
            self._call("received", asked.encode(), ANSWER_SECONDS)
        except AgentError as error:
            # the rows are here and have to be handed on: the agent may have heard of it. If it has not, it sends them again
            log.warning("the agent may not know that a range arrived", extra={"address": self.address, "error": str(error)})
        return table

    def logs(self) -> list[Log]:
        """All segments that it can scan."""
        return self._ask("logs", b"{}", Logs, STREAM_SECONDS).logs

    def batches(self, segment: Log) -> Iterator[pa.RecordBatch]:
        """The record batches of a segment, scanned now (`streaming.rows.BATCHES`)."""
        try:
            for chunk in self._open().do_get(flight.Ticket(b"batches " + segment.encode()), _options(SCAN_SECONDS)):
                yield chunk.data
        except _WRONG as error:
            raise self._failed(error) from error

    def _ask(self, action: str, body: bytes, kind: type[_Answer], seconds: float = ANSWER_SECONDS) -> _Answer:
        return kind.decode(self._call(action, body, seconds))

    def _call(self, action: str, body: bytes, seconds: float) -> bytes:
        try:
            (result,) = self._open().do_action(flight.Action(action, body), _options(seconds))
        except (*_WRONG, ValueError) as error:
            raise self._failed(error) from error
        return bytes(result.body.to_pybytes())

    def _open(self) -> flight.FlightClient:
        with self._lock:
            if self._connection is None:
                self._connection = flight.connect(f"grpc://{self.address}")
            return self._connection

    def _failed(self, error: Exception) -> AgentError:
        text = str(error).partition(" Detail:")[0].partition(". gRPC client debug context")[0]
        return AgentError(f"agent at {self.address}: {text}")

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def _options(seconds: float) -> flight.FlightCallOptions:
    return flight.FlightCallOptions(timeout=seconds)
