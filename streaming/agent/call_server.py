"""The agent's server (gRPC): limits first, then the token, then one message is read and answered."""

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

import grpc

from streaming.agent.call_answers import Answer
from streaming.agent.call_threads import CallThreads
from streaming.agent.own_page import AgentMetrics
from streaming.agent.security import OPEN, Certificates, Security
from streaming.errors import SegtailError
from streaming.protocol.agent_calls import REASON, REQUEST_BYTES, Call, method, pieces
from streaming.protocol.problems import UNKNOWN_CALL
from streaming.protocol.tokens import HEADER, accepts
from streaming.reloading import Reloading
from streaming.units import Address

log = logging.getLogger(__name__)

CONNECTIONS = 256
"""Connections at the same time. A job has one or two for its driver and one for each executor."""

CONNECTIONS_CALLS = 32
"""Calls at the same time over one connection."""

THREADS = 32

CALLS = 2 * THREADS
"""Calls that are answered or wait for a thread; one more is refused at once."""

HANDSHAKE_SECONDS = 10
"""How long a connection may take until it can be used."""

IDLE_SECONDS = 600
"""A connection without calls is closed after this time."""

AGE_SECONDS = 3600
"""A connection is made anew after this time, with the certificates that the files hold then."""

HEADER_BYTES = 16 << 10

ANSWER_SECONDS = 120.0
"""How long an answer may take, whatever its client reads. Only the batches of a segment may take longer (`SCAN_SECONDS`)."""

SCAN_SECONDS = 3600.0

_OPTIONS = [
    ("grpc.so_reuseport", 0),  # a second agent on this port is to be refused
    ("grpc.max_receive_message_length", REQUEST_BYTES),
    ("grpc.max_allowed_incoming_connections", CONNECTIONS),
    ("grpc.max_concurrent_streams", CONNECTIONS_CALLS),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_SECONDS * 1000),
    ("grpc.max_connection_idle_ms", IDLE_SECONDS * 1000),
    ("grpc.max_connection_age_ms", AGE_SECONDS * 1000),
    ("grpc.max_connection_age_grace_ms", int(ANSWER_SECONDS * 1000)),
    ("grpc.max_metadata_size", HEADER_BYTES),
    ("grpc.absolute_max_metadata_size", HEADER_BYTES),
]


class AgentServer:
    """Serves one agent at one address. ``address`` has the real port if 0 was requested.

    Args:
        answers: those to the calls that the agent knows, by their names.
        security: the certificates for TLS, and the tokens of which each call has to present one.

    Raises:
        OSError: nothing can listen there.
    """

    def __init__(
        self, answers: Mapping[str, Answer], listen: Address, security: Security = OPEN, metrics: AgentMetrics | None = None
    ) -> None:
        self._calls = _Calls(answers, security, metrics or AgentMetrics())
        self._threads = CallThreads(THREADS)
        self._server = grpc.server(
            self._threads,  # type: ignore[arg-type]  # gRPC only submits
            handlers=[self._calls],
            options=_OPTIONS,
            maximum_concurrent_rpcs=CALLS,
        )
        try:
            if security.certificates is None:
                port = self._server.add_insecure_port(str(listen))
            else:
                port = self._server.add_secure_port(str(listen), _credentials(security.certificates))
        except RuntimeError as error:
            raise OSError(str(error)) from error
        self.address = Address(listen.host, port)
        self._server.start()

    def end_overdue(self) -> None:
        """End the calls whose clients do not read on."""
        self._calls.end_overdue(time.monotonic())

    def close(self, seconds: float = 0.0) -> None:
        """Stop listening. Running calls have a moment to end."""
        self._server.stop(seconds).wait(seconds + 1)
        self._threads.close()


def _credentials(certificates: Reloading[Certificates]) -> grpc.ServerCredentials:
    """Those of the files as they are at each handshake."""
    shown = certificates.get()

    def configuration(current: Certificates) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([(current.pair.key, current.pair.cert)], root_certificates=current.client_ca)

    def changed() -> grpc.ServerCertificateConfiguration | None:
        nonlocal shown
        current = certificates.get()
        if current is shown:
            return None
        shown = current
        log.info("agent shows another certificate")
        return configuration(current)

    return grpc.dynamic_ssl_server_credentials(
        configuration(shown),
        changed,  # type: ignore[arg-type]  # None: as before
        require_client_authentication=shown.client_ca is not None,
    )


@dataclass(frozen=True, slots=True)
class _Running:
    """A call that is being answered: it is ended at ``ends_at``, seconds of the monotonic clock."""

    context: grpc.ServicerContext
    ends_at: float


class _Calls(grpc.GenericRpcHandler):
    """Finds out who calls and what is asked, before the request is read."""

    def __init__(self, answers: Mapping[str, Answer], security: Security, metrics: AgentMetrics) -> None:
        self._tokens = security.tokens
        self._metrics = metrics
        self._running: set[_Running] = set()
        self._methods = {method(call): partial(self._answer, call, answer) for call, answer in answers.items()}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        """gRPC calls it when it has the headers of a call, and nothing else."""
        shown = next((str(value) for name, value in handler_call_details.invocation_metadata if name == HEADER), "")
        if self._tokens is not None and not accepts(self._tokens.get(), shown):
            self._metrics.unauthorized.inc()
            return _refusal(grpc.StatusCode.UNAUTHENTICATED, "this agent asks for a token that it knows")
        answer = self._methods.get(handler_call_details.method)
        if answer is None:
            self._count("unknown", "failed")
            name = handler_call_details.method.rpartition("/")[2]
            return _refusal(grpc.StatusCode.UNIMPLEMENTED, f"{UNKNOWN_CALL} {name[:40]!r}: are job and agent of the same version?")
        return grpc.unary_stream_rpc_method_handler(answer)

    def _answer(self, call: str, answer: Answer, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        running = _Running(context, time.monotonic() + (SCAN_SECONDS if call == Call.BATCHES else ANSWER_SECONDS))
        self._running.add(running)
        try:
            for message in answer(request):
                yield from pieces(message)
        except SegtailError as error:
            self._count(call, "failed")
            _abort(context, grpc.StatusCode.FAILED_PRECONDITION, str(error), getattr(error, "reason", ""))
        except Exception:
            self._count(call, "failed")
            log.exception("a call cannot be answered", extra={"call": call})
            _abort(context, grpc.StatusCode.INTERNAL, "it cannot answer; its own log says why")
        finally:
            self._running.discard(running)
        self._count(call, "ok")

    def end_overdue(self, now: float) -> None:
        for running in list(self._running):
            if running.ends_at < now:
                log.warning("a call is ended, its client does not read on", extra={"peer": running.context.peer()})
                running.context.cancel()

    def _count(self, call: str, result: str) -> None:
        self._metrics.calls.labels(call, result).inc()


def _refusal(code: grpc.StatusCode, why: str) -> "grpc.RpcMethodHandler[bytes, bytes]":
    """Refuses a call without reading its message."""
    return grpc.stream_stream_rpc_method_handler(lambda _, context: _abort(context, code, why))


def _abort(context: grpc.ServicerContext, code: grpc.StatusCode, why: str, reason: str = "") -> NoReturn:
    context.set_trailing_metadata(((REASON, reason),) if reason else ())
    context.abort(code, f"segtail: {why}")
