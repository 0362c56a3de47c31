"""The Flight server: messages and tickets in, answers and rows out."""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow.flight as flight

from streaming.agent.batches import list_logs, scan_segment
from streaming.agent.messages import Committed, Hello, Log, Logs, PlanRequest, Range, StatusRequest
from streaming.agent.numbers import Numbers
from streaming.agent.security import Certificates, TokenGate
from streaming.agent.service import Service
from streaming.errors import AgentError, SegtailError
from streaming.fresh import Fresh
from streaming.rows import BATCHES
from streaming.units import Address

log = logging.getLogger(__name__)

ROWS_A_BATCH = 65_536

AT_ONCE = 4
"""So many answers with rows are put together at once; others wait, so that many jobs take no more memory than a few."""


class AgentServer(flight.FlightServerBase):  # type: ignore[misc]
    """Serves one agent on one address. ``port`` is the real one when 0 was asked for.

    Args:
        certificates: for TLS; None for none.
        tokens: those of which each call has to show one; None for none.
    """

    def __init__(
        self,
        service: Service,
        listen: Address,
        certificates: Certificates | None = None,
        tokens: Fresh[tuple[bytes, ...]] | None = None,
        numbers: Numbers | None = None,
    ) -> None:
        self._numbers = numbers = numbers or Numbers()
        super().__init__(
            f"grpc{'' if certificates is None else '+tls'}://{listen}",
            tls_certificates=[] if certificates is None else [(certificates.pair.cert, certificates.pair.key)],
            verify_client=certificates is not None and certificates.client_ca is not None,
            root_certificates=None if certificates is None else certificates.client_ca,
            middleware=None if tokens is None else {"token": TokenGate(tokens, numbers.refused.inc)},
        )
        self._service = service
        self._room = threading.BoundedSemaphore(AT_ONCE)
        self._actions: dict[str, Callable[[bytes], bytes]] = {
            "status": lambda body: service.status(StatusRequest.decode(body)).encode(),
            "hello": lambda body: service.hello(Hello.decode(body)).encode(),
            "plan": lambda body: service.plan(PlanRequest.decode(body)).encode(),
            "received": lambda body: _told(service.received, Range.decode(body)),
            "logs": lambda _: Logs(list_logs(service.watcher.log_dirs.available)).encode(),
            "committed": lambda body: _told(service.committed, Committed.decode(body)),
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
        self._numbers.calls.labels(call, result).inc()

    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        """What can be asked."""
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
        self._numbers.rows.inc(table.num_rows)
        return flight.GeneratorStream(table.schema, iter(table.to_batches(max_chunksize=ROWS_A_BATCH)))


_Told = TypeVar("_Told", Range, Committed)


def _told(tell: Callable[[_Told], None], message: _Told) -> bytes:
    tell(message)
    return b"{}"
