"""The Flight server: takes messages and tickets, returns answers and rows."""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa
import pyarrow.flight as flight

from streaming.agent.batch_listing import list_logs, scan_segment
from streaming.agent.own_page import AgentMetrics
from streaming.agent.security import Certificates, TokenGate
from streaming.agent.service import Service
from streaming.errors import AgentError, SegtailError
from streaming.protocol.consumer_messages import Committed, PlanRequest, Range, Register
from streaming.protocol.group_messages import BatchRequest, GroupsRequest, RecordsRequest
from streaming.protocol.problems import UNKNOWN_ACTION
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
        self._slow = threading.BoundedSemaphore(AT_ONCE)  # for answers that wait for a disk: they hold up no rows
        self._actions: dict[str, Callable[[bytes], bytes]] = {
            "status": lambda body: service.status(StatusRequest.decode(body)).encode(),
            "hello": lambda body: service.register(Register.decode(body)).encode(),
            "plan": lambda body: service.plan(PlanRequest.decode(body)).encode(),
            "received": lambda body: _acknowledged(service.received, Range.decode(body)),
            "logs": lambda _: Logs(list_logs(service.watcher.log_dirs.available)).encode(),
            "committed": lambda body: _acknowledged(service.committed, Committed.decode(body)),
        }
        self._streams: dict[str, Callable[[bytes], Iterator[bytes | pa.Buffer]]] = {}
        about_groups = service.about_groups
        if about_groups is not None:
            self._actions["batch"] = lambda body: about_groups.check_batch(BatchRequest.decode(body)).encode()
            self._streams["positions"] = about_groups.positions
            self._streams["records"] = lambda body: about_groups.records(RecordsRequest.decode(body))
            self._streams["groups"] = lambda body: about_groups.groups(GroupsRequest.decode(body))

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> Iterator[flight.Result]:
        """Answer a message."""
        del context
        answer, stream = self._actions.get(action.type), self._streams.get(action.type)
        if answer is None and stream is None:
            self._count("unknown", "failed")
            raise flight.FlightServerError(f"segtail: {UNKNOWN_ACTION} {action.type!r}: are job and agent of the same version?")
        body = action.body.to_pybytes() if action.body is not None else b"{}"
        try:
            if answer is not None:
                yield flight.Result(answer(body))
            elif stream is not None:
                yield from self._one_by_one(stream(body), self._slow if action.type == "positions" else self._room)
        except SegtailError as error:
            self._count(action.type, "failed")
            raise flight.FlightServerError(f"segtail: {error}") from error
        except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
            raise self._failure(action.type, error) from None
        self._count(action.type, "ok")

    @staticmethod
    def _one_by_one(messages: Iterator[bytes | pa.Buffer], room: threading.Semaphore) -> Iterator[flight.Result]:
        """The messages of an answer. Each is made when the one before it is sent, and only a few at the same time for all jobs."""
        while True:
            with room:
                message = next(messages, None)
            if message is None:
                return
            yield flight.Result(message)

    def _failure(self, call: str, error: Exception) -> flight.FlightServerError:
        """What a client gets of an error that is none of ours: no stack, no path, no content of a file. The log has the rest."""
        self._count(call, "failed")
        log.error("a call failed", extra={"call": call, "error": repr(error)})
        return flight.FlightServerError(f"segtail: the call {call} failed ({type(error).__name__}): the agent's log says why")

    def _count(self, call: str, result: str) -> None:
        self._metrics.calls.labels(call, result).inc()

    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        """The actions that a client may call."""
        del context
        return [(name, "") for name in (*self._actions, *self._streams)]

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
        except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
            raise self._failure("read", error) from None
        self._count("read", "ok")
        self._metrics.rows.inc(table.num_rows)
        return flight.GeneratorStream(table.schema, iter(table.to_batches(max_chunksize=ROWS_A_BATCH)))


_Acknowledgement = TypeVar("_Acknowledgement", Range, Committed)


def _acknowledged(handle: Callable[[_Acknowledgement], None], message: _Acknowledgement) -> bytes:
    handle(message)
    return b"{}"
