"""An agent that answers as one of another version would: with rows that one of protocol 1 has sent, under whatever protocol."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from streaming.protocol.agent_calls import Call
from streaming.protocol.group_stream import row_messages
from streaming.protocol.versions import PROTOCOL
from tests.agents import served
from tests.upgrade import before


class RecordedAgent:
    """``says`` and ``rows`` may be changed while it serves: then another process listens at its port."""

    def __init__(self) -> None:
        self.says: dict[str, Any] = json.loads((before.DATA / "status.json").read_bytes()) | {"now_ms": 0, "protocol": PROTOCOL}
        self.rows = pa.concat_tables([before.answer("committed"), before.answer("arrived")])
        self.received: list[dict[str, Any]] = []
        self.address = ""
        self.answers = {
            Call.STATUS: self._say,
            Call.REGISTER: self._say,
            Call.PLAN: self._plan,
            Call.EVENTS: self._events,
            Call.RECEIVED: self._receive,
            Call.COMMITTED: lambda *_: iter([b"{}"]),
        }

    def _say(self, _: bytes, principal: str) -> Iterator[bytes]:
        yield json.dumps(self.says).encode()

    def _plan(self, body: bytes, principal: str) -> Iterator[bytes]:
        told = json.loads((before.DATA / "plan.json").read_bytes())
        missed = json.loads(body)["journal"] == told["journal"] and not self.received
        yield json.dumps(told | {"missed": missed, "again": missed}).encode()

    def _receive(self, body: bytes, principal: str) -> Iterator[bytes]:
        self.received.append(json.loads(body))
        yield b"{}"

    def _events(self, body: bytes, principal: str) -> Iterator[bytes | pa.Buffer]:
        rows = self.rows if json.loads(body)["journal"] == self.says["journal"] else self.rows.slice(0, 0)
        return row_messages(rows.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)])


@contextmanager
def recorded() -> Iterator[RecordedAgent]:
    agent = RecordedAgent()
    with served(agent.answers) as agent.address:
        yield agent
