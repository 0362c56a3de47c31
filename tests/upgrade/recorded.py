"""An agent that answers over Flight as one of another version would: with rows that one of protocol 1 has sent, under whatever protocol."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from streaming.protocol.versions import PROTOCOL
from tests.upgrade import before


class RecordedAgent(flight.FlightServerBase):  # type: ignore[misc]
    """``says`` and ``rows`` may be changed while it serves: then another process listens at its port."""

    def __init__(self) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self.says: dict[str, Any] = json.loads((before.DATA / "status.json").read_bytes()) | {"now_ms": 0, "protocol": PROTOCOL}
        self.rows = pa.concat_tables([before.answer("committed"), before.answer("arrived")])
        self.received: list[dict[str, Any]] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> Iterator[flight.Result]:
        asked = json.loads(action.body.to_pybytes())
        if action.type in ("status", "hello"):
            yield flight.Result(json.dumps(self.says).encode())
        elif action.type == "plan":
            told = json.loads((before.DATA / "plan.json").read_bytes())
            missed = asked["journal"] == told["journal"] and not self.received
            yield flight.Result(json.dumps(told | {"missed": missed, "again": missed}).encode())
        else:
            if action.type == "received":
                self.received.append(asked)
            yield flight.Result(b"{}")

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        asked = json.loads(ticket.ticket.partition(b" ")[2])
        return flight.RecordBatchStream(self.rows if asked["journal"] == self.says["journal"] else self.rows.slice(0, 0))


@contextmanager
def recorded() -> Iterator[RecordedAgent]:
    agent = RecordedAgent()
    try:
        yield agent
    finally:
        agent.shutdown()
