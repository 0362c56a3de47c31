"""The agent's server (gRPC), behind its front: limits first, then the token, then one message is read and answered."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

import grpc

from streaming.broker.agent.call_answers import Answer
from streaming.broker.agent.call_front import CallFront
from streaming.broker.agent.call_threads import CallThreads
from streaming.broker.agent.http2_frames import HEADER_BYTES
from streaming.broker.agent.own_page import AgentMetrics
from streaming.broker.agent.security import OPEN, Security
from streaming.broker.protocol.agent_calls import REASON, REQUEST_BYTES, Call, method, pieces
from streaming.broker.protocol.problems import UNKNOWN_CALL, Reason
from streaming.broker.protocol.tokens import HEADER, accepted
from streaming.common.rare_log import RareLog
from streaming.common.units import Address
from streaming.errors import JournalError, SegtailError, quoted

log = logging.getLogger(__name__)

CONNECTIONS_CALLS = 32
"""Calls at the same time over one connection."""

THREADS = 64
"""The most threads. At most one waits for the plan of each consumer (`streaming.broker.journal.consumers.MOST_CONSUMERS`)."""

CALLS = 2 * THREADS
"""Calls that are answered or wait for a thread; one more is refused at once."""

PRINCIPALS_CALLS = 40
"""Calls that are answered at the same time for one principal, so that no token keeps all threads."""

REQUEST_SECONDS = 10.0
"""How long the message of a call may take to arrive."""

IDLE_SECONDS = 60
"""A connection without calls is closed after this time."""

AGE_SECONDS = 3600
"""A connection is made anew after this time, with the certificates that the files hold then."""

ANSWER_SECONDS = 120.0
"""How long an answer may take, whatever its client reads. Only a scan of excerpts may take longer (`SCAN_SECONDS`)."""

SCAN_SECONDS = 3600.0

TOLD_SECONDS = 0.1
"""A call that takes longer is worth a line for whoever wants to know what an agent does."""

_SCANS = (Call.SCAN, Call.READER_ROWS)

_OPTIONS = [
    ("grpc.max_receive_message_length", REQUEST_BYTES),
    ("grpc.max_concurrent_streams", CONNECTIONS_CALLS),
    ("grpc.max_connection_idle_ms", IDLE_SECONDS * 1000),
    ("grpc.max_connection_age_ms", AGE_SECONDS * 1000),
    ("grpc.max_connection_age_grace_ms", int(SCAN_SECONDS * 1000)),
    ("grpc.max_metadata_size", HEADER_BYTES),
    ("grpc.absolute_max_metadata_size", HEADER_BYTES),
]


class _Rarely(logging.Handler):
    """The messages that gRPC itself logs, such as of headers that are no text: strangers cause them."""

    def __init__(self) -> None:
        super().__init__()
        self._log = RareLog(log)

    def emit(self, record: logging.LogRecord) -> None:
        self._log.write(record.levelno, "gRPC could not do something", {"what": quoted(record.getMessage()), "where": record.name})


def _log_rarely() -> None:
    of_grpc = logging.getLogger("grpc")
    if not any(isinstance(each, _Rarely) for each in of_grpc.handlers):
        of_grpc.addHandler(_Rarely())
        of_grpc.propagate = False


class AgentServer:
    """Serves one agent at one address. ``address`` has the real port if 0 was requested.

    Args:
        answers: those to the calls that the agent knows, by their names.
        security: the certificates for TLS, and the tokens of which each call has to present one.
        directory: one that only this user may enter: the front hands calls to gRPC by a socket there.

    Raises:
        OSError: nothing can listen there.
    """

    def __init__(
        self,
        answers: Mapping[str, Answer],
        listen: Address,
        security: Security = OPEN,
        metrics: AgentMetrics | None = None,
        directory: Path | None = None,
    ) -> None:
        self._calls = _Calls(answers, security, metrics or AgentMetrics())
        _log_rarely()
        self._threads = CallThreads(THREADS)
        self._server = grpc.server(
            self._threads,  # type: ignore[arg-type]  # gRPC only submits
            handlers=[self._calls],
            options=_OPTIONS,
            maximum_concurrent_rpcs=CALLS,
        )
        self._front = CallFront(listen, security.certificates, directory)
        try:
            self._server.add_insecure_port(f"unix:{self._front.inner}")
        except RuntimeError as error:
            self._front.close()
            raise OSError(str(error)) from error
        self.address = self._front.address
        self._server.start()
        self._front.start()

    def end_overdue(self) -> None:
        """End the calls whose clients do not read on."""
        self._calls.end_overdue(time.monotonic())

    def close(self, seconds: float = 0.0) -> None:
        """Stop listening. Running calls have a moment to end."""
        self._server.stop(seconds).wait(seconds + 1)
        self._front.close()
        self._threads.close()


@dataclass(slots=True)
class _Running:
    """A call with its thread: it is ended at ``ends_at``, seconds of the monotonic clock."""

    call: str
    context: grpc.ServicerContext
    ends_at: float


class _Calls(grpc.GenericRpcHandler):
    """Finds out who calls and what is asked, before the request is read."""

    def __init__(self, answers: Mapping[str, Answer], security: Security, metrics: AgentMetrics) -> None:
        self._tokens = security.tokens
        self._metrics = metrics
        self._log = RareLog(log)  # of what callers cause
        self._answers = {method(call): (call, answer) for call, answer in answers.items()}
        self._lock = threading.Lock()
        self._running: dict[int, _Running] = {}
        self._of_principal: Counter[str] = Counter()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        """gRPC calls it when it has the headers of a call, and nothing else."""
        principal = ""
        if self._tokens is not None:
            presented = next((str(value) for name, value in handler_call_details.invocation_metadata if name == HEADER), "")
            token = accepted(self._tokens.get(), presented)
            if token is None:
                self._metrics.unauthorized.inc()
                return _refusal(grpc.StatusCode.UNAUTHENTICATED, "this agent asks for a token that it knows")
            principal = token.name
        answer = self._answers.get(handler_call_details.method)
        if answer is None:
            self._count("unknown", "failed")
            name = handler_call_details.method.rpartition("/")[2][:40]
            return _refusal(grpc.StatusCode.UNIMPLEMENTED, f"{UNKNOWN_CALL} {name!r}: are job and agent of the same version?")
        # the message is read by ourselves: gRPC's own reading of a single one has no deadline
        return grpc.stream_stream_rpc_method_handler(partial(self._answer, *answer, principal))

    def _answer(
        self, call: str, answer: Answer, principal: str, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        began, sent = time.monotonic(), 0
        running = _Running(call, context, began + REQUEST_SECONDS)
        if not self._begin(running, principal):
            self._count(call, "refused")
            _abort(context, grpc.StatusCode.RESOURCE_EXHAUSTED, f"{PRINCIPALS_CALLS} calls with this token are being answered", Reason.BUSY)
        try:
            request = next(requests, None)
            if request is None:
                self._count(call, "failed")
                return
            running.ends_at = time.monotonic() + (SCAN_SECONDS if call in _SCANS else ANSWER_SECONDS)
            for message in answer(request, principal):
                sent += len(message)
                yield from pieces(message)
        except grpc.RpcError:  # its client is gone, or the call was ended
            self._count(call, "failed")
        except Exception as error:  # noqa: BLE001 - logged with its traceback, unless it is the answer
            self._count(call, "failed")
            if isinstance(error, SegtailError) and not isinstance(error, JournalError):
                reason = getattr(error, "reason", "")
                if reason == Reason.UNAUTHORIZED:
                    self._metrics.unauthorized.inc()
                _abort(context, grpc.StatusCode.FAILED_PRECONDITION, str(error), reason)
            # it names files of this host, or a fault of ours: not for callers
            self._log.write(logging.ERROR, "a call cannot be answered", {"call": call}, error)
            _abort(context, grpc.StatusCode.INTERNAL, "it cannot answer; its own log says why")
        else:
            self._count(call, "ok")
        finally:
            self._end(running, principal)
            if (seconds := time.monotonic() - began) > TOLD_SECONDS:
                log.debug("a call took long", extra={"call": call, "seconds": round(seconds, 3), "bytes": sent, "by": principal})

    def _begin(self, running: _Running, principal: str) -> bool:
        """Whether the call may keep its thread."""
        with self._lock:
            if self._of_principal[principal] >= PRINCIPALS_CALLS:
                return False
            self._of_principal[principal] += 1
            self._running[id(running)] = running
            return True

    def _end(self, running: _Running, principal: str) -> None:
        with self._lock:
            self._of_principal[principal] -= 1
            del self._running[id(running)]

    def end_overdue(self, now: float) -> None:
        with self._lock:
            overdue = [running for running in self._running.values() if running.ends_at < now]
        for running in overdue:
            self._log.write(logging.WARNING, "a call is ended: its client sends no message, or does not read on", {"call": running.call})
            running.context.cancel()

    def _count(self, call: str, result: str) -> None:
        self._metrics.calls.labels(call, result).inc()


def _refusal(code: grpc.StatusCode, why: str) -> "grpc.RpcMethodHandler[bytes, bytes]":
    """Refuses a call without reading its message."""
    return grpc.stream_stream_rpc_method_handler(lambda _, context: _abort(context, code, why))


def _abort(context: grpc.ServicerContext, code: grpc.StatusCode, why: str, reason: str = "") -> NoReturn:
    context.set_trailing_metadata(((REASON, reason),) if reason else ())
    context.abort(code, f"segtail: {why}")
