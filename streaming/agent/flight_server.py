"""The Flight server: takes messages and tickets, returns answers and rows."""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow.flight as flight

from streaming.agent.batch_listing import list_logs, scan_segment
from streaming.agent.own_page import AgentMetrics
from streaming.agent.security import Certificates, TokenGate
from streaming.agent.service import Service
from streaming.errors import AgentError, SegtailError
from streaming.protocol.consumer_messages import Committed, PlanRequest, Range, Register
from streaming.protocol.segment_list import Log, Logs
from streaming.protocol.status_messages import StatusRequest
from streaming.reloading import Reloading
from streaming.rows import BATCHES
from streaming.units import Address

log = logging.getLogger(__name__)

ROWS_A_BATCH = 65_536

AT_ONCE = 4
"""The most answers with rows that are built at the same time. Others wait, so that many jobs need no more memory than a few."""


class AgentServer(flight.FlightServerBase):  # type: ignore[misc]
    """Serves one agent at one address. ``port`` is the real one if 0 was requested.

    Args:
        certificates: for TLS; None for none.
        tokens: each call has to present one of them; None for no check.
    """

    def __init__(
        self,
        service: Service,
        listen: Address,
        certificates: Certificates | None = None,
        tokens: Reloading[tuple[bytes, ...]] | None = None,
        metrics: AgentMetrics | None = None,
    ) -> None:
        self._metrics = metrics = metrics or AgentMetrics()
        super().__init__(
            f"grpc{'' if certificates is None else '+tls'}://{listen}",
            tls_certificates=[] if certificates is None else [(certificates.pair.cert, certificates.pair.key)],
            verify_client=certificates is not None and certificates.client_ca is not None,
            root_certificates=None if certificates is None else certificates.client_ca,
            middleware=None if tokens is None else {"token": TokenGate(tokens, metrics.unauthorized.inc)},
        )
        self._service = service
        self._room = threading.BoundedSemaphore(AT_ONCE)
        self._actions: dict[str, Callable[[bytes], bytes]] = {
            "status": lambda body: service.status(StatusRequest.decode(body)).encode(),
            "hello": lambda body: service.register(Register.decode(body)).encode(),
            "plan": lambda body: service.plan(PlanRequest.decode(body)).encode(),
            "received": lambda body: _acknowledged(service.received, Range.decode(body)),
            "logs": lambda _: Logs(list_logs(service.watcher.log_dirs.available)).encode(),
            "committed": lambda body: _acknowledged(service.committed, Committed.decode(body)),
        }

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> Iterator[flight.Result]:
        """Answer a message."""
        del context
        answer = self._actions.get(action.type)
        if answer is None:
            self._count("unknown", "failed")
            raise flight.FlightServerError(f"segtail: this agent knows no action {action.type!r}: are job and agent of the same version?")
        body = action.body.to_pybytes() if action.body is not None else b"{}"
        try:
            result = flight.Result(answer(body))
        except SegtailError as error:
            self._count(action.type, "failed")
            raise flight.FlightServerError(f"segtail: {error}") from error
        self._count(action.type, "ok")
        yield result

    def _count(self, call: str, result: str) -> None:
        self._metrics.calls.labels(call, result).inc()

    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        """The actions that a client may call."""
        del context
        return [(name, "") for name in self._actions]

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        """Stream the rows of a ticket."""
        del context
        kind, _, body = ticket.ticket.partition(b" ")
        try:
            if kind == b"events":
                with self._room:
                    table = self._service.read(Range.decode(body))
            elif kind == b"batches":
                batches = scan_segment(self._service.watcher.log_dirs.available, Log.decode(body))
                self._count("batches", "ok")
                return flight.GeneratorStream(BATCHES, batches)
            else:
                raise AgentError(f"no such ticket: {ticket.ticket[:100]!r}")
        except SegtailError as error:
            self._count("read", "failed")
            raise flight.FlightServerError(f"segtail: {error}") from error
        self._count("read", "ok")
        self._metrics.rows.inc(table.num_rows)
        return flight.GeneratorStream(table.schema, iter(table.to_batches(max_chunksize=ROWS_A_BATCH)))


_Acknowledgement = TypeVar("_Acknowledgement", Range, Committed)


def _acknowledged(handle: Callable[[_Acknowledgement], None], message: _Acknowledgement) -> bytes:
    handle(message)
    return b"{}"
