"""The agent's server: limits first, then the token, then one message is read and answered. A call is a POST, its answer a stream; what the
agent tells about itself is a GET.
"""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

import pyarrow as pa
from tornado.iostream import StreamClosedError

from streaming.broker.agent.call_answers import Answer, Messages
from streaming.broker.agent.health_server import AgentMetrics, HealthPages
from streaming.broker.agent.security import OPEN, Security
from streaming.broker.protocol.agent_calls import (
    PATH,
    POSITIONS_BYTES,
    REGISTER_BYTES,
    REQUEST_BYTES,
    Call,
    Reason,
    Refusal,
    end_of,
    head_of,
)
from streaming.broker.protocol.tokens import HEADER, accepted
from streaming.common.lanes import BusyError, Lane
from streaming.common.logs import RareLog
from streaming.common.units import Address
from streaming.common.web.gate import is_foreign
from streaming.common.web.messages import sentence
from streaming.common.web.places import Bounds, ConnectionPlaces
from streaming.common.web.port import Handler, Port, PortOptions, listen_at
from streaming.errors import SegtailError, UsageError

log = logging.getLogger(__name__)

HEADER_BYTES = 16 << 10
"""The most bytes of a call's line and headers: those of a job have some 200."""

CONNECTIONS, CONNECTIONS_OF_CLIENT = 256, 128
"""Connections without a call under way, of all and of one client: an address, or a network of 64 bits of IPv6."""

THREADS = 64
"""The most threads. At most one waits for the plan of each job (`streaming.broker.agent.jobs.MOST_JOBS`), and for
a few plans by positions (`streaming.broker.agent.position_answers.WAITING`)."""

CALLS = 2 * THREADS
"""Calls that are answered or wait for a thread; one more is refused at once."""

PRINCIPALS_CALLS = 40
"""Calls that are answered at the same time for one principal, so that no token keeps all threads."""

SILENT_SECONDS = 10.0
"""How long a connection may take until it has begun its first call, the TLS handshake included."""

REQUEST_SECONDS = 10.0
"""How long the message of a call may take to arrive."""

IDLE_SECONDS = 60.0
"""A connection without calls is closed after this time."""

STALLED_SECONDS = 120.0
"""How long a connection may take nothing of what it is sent."""

ANSWER_SECONDS = 120.0
"""How long an answer may take, whatever its client reads. Only a scan of excerpts may take longer (`SCAN_SECONDS`)."""

SCAN_SECONDS = 3600.0

AGE_SECONDS = 3600.0
"""A connection is made again after this time, with the certificates that the files hold then."""

TOLD_SECONDS = 0.1
"""A call that takes longer is worth a line for an operator who wants to know what an agent does."""

AT_ONCE_BYTES = 64 << 10
"""Messages are handed to the network together up to this size."""

_LARGE_REQUESTS: dict[str, int] = {Call.REGISTER: REGISTER_BYTES, Call.REACH: POSITIONS_BYTES, Call.BETWEEN: POSITIONS_BYTES}
"""The most bytes of a request, for calls that may be large: those with positions of many logs."""

BOUNDS = Bounds(
    silent=CONNECTIONS,
    silent_per_client=CONNECTIONS_OF_CLIENT,
    asking=CALLS,
    asking_per_client=CALLS,
    taking=CALLS,
    taking_per_client=CALLS,
    answer_bytes=1 << 62,
    head_seconds=SILENT_SECONDS,
    idle_seconds=IDLE_SECONDS,
    age_seconds=AGE_SECONDS,
    connection_seconds=math.inf,  # each call has its own time
    stalled_seconds=STALLED_SECONDS,
)


class AgentServer:
    """Serves one agent at one address. ``address`` has the real port if 0 was requested.

    Args:
        answers: those to the calls that the agent knows, by their names.
        security: the certificates for TLS, and the tokens of which each call has to present one.
        pages: what it tells about itself to clients that have a token, None where that has an address of its own.

    Raises:
        OSError: nothing can listen there.
    """

    def __init__(
        self,
        answers: Mapping[str, Answer],
        listen: Address,
        security: Security = OPEN,
        metrics: AgentMetrics | None = None,
        pages: HealthPages | None = None,
    ) -> None:
        self.answers, self.pages = answers, pages
        self._tokens, self._certificates = security.tokens, security.certificates
        self._metrics = metrics or AgentMetrics()
        self.notes = RareLog(log)  # of what callers cause
        self._of_principal: Counter[str] = Counter()
        self._threads = Lane("calls", THREADS, CALLS)
        self._port = Port(
            listen.host,
            listen.port,
            _Call,
            {"server": self},
            options=PortOptions(
                head_bytes=HEADER_BYTES,
                body_bytes=REQUEST_BYTES,
                body_seconds=REQUEST_SECONDS,
                idle_seconds=IDLE_SECONDS,
                linger_bytes=REQUEST_BYTES,
            ),
            places=ConnectionPlaces(BOUNDS),
            notes=self.notes,
            monotonic=time.monotonic,
            tls=lambda: None if self._certificates is None else self._certificates.get().context,
        )
        self.address = Address(listen.host, self._port.address[1])
        self._port.start("calls")

    def close(self, seconds: float = 0.0) -> None:
        """Stop listening. Running calls have a moment to end."""
        self._port.close(seconds)
        self._threads.close()

    def principal_of(self, authorization: str) -> str | None:
        """Whose token a header contains, None if it is refused."""
        if self._tokens is None:
            return ""
        token = accepted(self._tokens.get(), authorization)
        if token is None:
            self._metrics.unauthorized.inc()
        return None if token is None else token.name

    def begin(self, principal: str) -> bool:
        """Whether one more call of a principal may be answered now."""
        if self._of_principal[principal] >= PRINCIPALS_CALLS:
            return False
        self._of_principal[principal] += 1
        return True

    def end(self, call: str, principal: str, result: str) -> None:
        """A call of a principal has ended."""
        self._of_principal[principal] -= 1
        self.count(call, result)

    async def do(self, work: Callable[[], Any]) -> Any:
        """What a function returns, in a thread."""
        return await asyncio.wrap_future(self._threads.do(work))

    def count(self, call: str, result: str) -> None:
        """Count a call."""
        self._metrics.calls.labels(call, result).inc()

    def refusal_of(self, call: str, error: Exception) -> Refusal:
        """What a caller is told of an error."""
        if isinstance(error, BusyError):
            return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "its threads are busy", Reason.BUSY)
        if isinstance(error, SegtailError):
            return Refusal(HTTPStatus.CONFLICT, str(error), getattr(error, "reason", ""))
        # it names files of this host, or a fault of ours: not for callers
        self.notes.write(logging.ERROR, "a call cannot be answered", {"call": call}, error)
        return Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "it cannot answer; its own log says why", "")


class _Call(Handler):
    SUPPORTED_METHODS = ("POST", "GET")

    def initialize(self, port: Port, server: AgentServer) -> None:  # type: ignore[override]
        super().initialize(port)
        self._server = server
        self._body = bytearray()
        self._principal: str | None = None
        self._answer: Answer | None = None
        self._call = self.request.path.removeprefix(PATH)

    def prepare(self) -> None:
        """Tornado calls it when it has the headers of a call, and nothing else."""
        super().prepare()
        server = self._server
        principal = server.principal_of(self.request.headers.get(HEADER, ""))
        if principal is None:
            self._refuse(Refusal(HTTPStatus.UNAUTHORIZED, "this agent asks for a token that it knows", Reason.UNAUTHORIZED))
        elif self.request.method == "POST" and (answer := server.answers.get(self._call)) is None:
            server.count("unknown", "failed")
            what = f"this agent knows no call {self._call[:40]!r}: are job and agent of the same version?"
            self._refuse(Refusal(HTTPStatus.NOT_FOUND, what, Reason.PROTOCOL))
        elif self.request.method == "POST":
            if not self.port.places.ask(self.place, self.port.monotonic(), False) or not server.begin(principal):
                server.count(self._call, "refused")
                what = f"{PRINCIPALS_CALLS} calls with this token are being answered"
                self._refuse(Refusal(HTTPStatus.SERVICE_UNAVAILABLE, what, Reason.BUSY))
            else:
                self._answer, self._principal = answer, principal
                if (most := _LARGE_REQUESTS.get(self._call)) is not None:  # a client without a token sends no more than others
                    self.request.connection.set_max_body_size(most)  # type: ignore[union-attr]

    async def get(self) -> None:
        """What the agent tells about itself."""
        server, port, pages = self._server, self.port, self._server.pages
        if is_foreign(self.request.headers.get("Host", ""), server.address.host):
            found = sentence(HTTPStatus.MISDIRECTED_REQUEST, "this agent has another name: ask it by the address that it listens on")
        elif pages is None:
            found = sentence(HTTPStatus.NOT_FOUND, "its metrics have an address of their own (--metrics-listen)")
        else:
            try:
                if not port.places.ask(self.place, port.monotonic(), False):
                    raise BusyError
                found = await server.do(partial(pages.answer, self.request.path))
            except BusyError:
                found = sentence(HTTPStatus.SERVICE_UNAVAILABLE, "busy: try again")
        self.set_status(found.status)
        self.set_header("Content-Type", found.content_type)
        port.places.end(self.place, port.monotonic())
        await self.finish(found.body)

    def data_received(self, chunk: bytes) -> None:
        """A part of the message."""
        self._body += chunk

    async def post(self) -> None:
        """All of the message has come."""
        server, port, call = self._server, self.port, self._call
        principal, self._principal = str(self._principal), None  # it counts while a thread works for it, its client may be gone
        answer, body, messages, result, sent = self._answer, bytes(self._body), None, "failed", 0
        assert answer is not None
        began = port.monotonic()
        ends_at = asyncio.get_running_loop().time() + (SCAN_SECONDS if call == Call.SCAN else ANSWER_SECONDS)
        try:
            messages, parts, is_last = await server.do(partial(_begun, answer, body, principal))
            self._body.clear()
            self.set_header("Content-Type", "application/octet-stream")
            while not is_last:
                port.places.take(self.place, port.monotonic(), 0)
                async with asyncio.timeout_at(ends_at):
                    for part in parts:
                        sent += len(memoryview(part))
                        await self.send(part)
                parts, is_last = await server.do(partial(_some, messages))
            self.write(bytes(parts[0]))
            result = "ok"
        except StreamClosedError:  # its client is gone, or was cut
            pass
        except TimeoutError:
            port.notes.write(logging.WARNING, "a call is ended: its client does not read on", {"call": call})
            self.place.cut()
        except Exception as error:  # noqa: BLE001 - logged with its traceback, unless it is the answer
            refusal = server.refusal_of(call, error)
            if self._headers_written:
                self.write(end_of(refusal))
            else:
                self._refuse(refusal)
        finally:
            server.end(call, principal, result)
            if messages is not None and result != "ok":
                await server.do(messages.close)
            if (seconds := port.monotonic() - began) > TOLD_SECONDS:
                log.debug("a call took long", extra={"call": call, "seconds": round(seconds, 3), "bytes": sent, "by": principal})
        if not self._finished and port.places.end(self.place, port.monotonic(), answered=result == "ok"):
            await self.finish()

    def on_finish(self) -> None:
        """It was refused, or answered."""
        self._leave()

    def on_connection_close(self) -> None:
        """Its client is gone."""
        super().on_connection_close()
        self._leave()

    def _leave(self) -> None:
        if self._principal is not None:
            self._server.end(self._call, self._principal, "failed")
            self._principal = None

    def _refuse(self, refusal: Refusal) -> None:
        self.set_status(refusal.status)
        if self._answer is None:  # its message is not read, so that nothing can follow
            self.set_header("Connection", "close")
        self.set_header("Content-Type", "application/json")
        self.port.places.end(self.place, self.port.monotonic())
        self.finish(refusal.encode())


def _begun(answer: Answer, body: bytes, principal: str) -> tuple[Any, list[bytes | pa.Buffer], bool]:
    messages = answer(body, principal)
    return messages, *_some(messages)


def _some(messages: Messages) -> tuple[list[bytes | pa.Buffer], bool]:
    """What is sent next: some small messages, and behind them a large one, which is not copied; and whether there is no more."""
    small = bytearray()
    for message in messages:
        small += head_of(message)
        if len(memoryview(message)) >= AT_ONCE_BYTES:
            return [bytes(small), message], False
        small += memoryview(message)
        if len(small) >= AT_ONCE_BYTES:
            return [bytes(small)], False
    return [bytes(small) + end_of(None)], True


def refuse_taken(listen: Address) -> None:
    """Find out whether an agent can listen at an address, before anything is made for it.

    Raises:
        UsageError: it is in use, or none of this host's.
    """
    try:
        listen_at(listen.host, listen.port).close()
    except OSError as error:
        raise cannot_listen(listen, error) from error


def cannot_listen(listen: Address, error: OSError) -> UsageError:
    """The error that names the address and the option."""
    return UsageError(
        f"cannot listen on {listen}: {error.strerror or error}; stop the process that uses it, or choose another address with "
        "--listen HOST:PORT"
    )
