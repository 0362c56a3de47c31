"""An agent that answers as one of another version would: its status and rows are those of an agent of today, and a test changes them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from streaming.broker.protocol.agent_calls import Call
from streaming.broker.protocol.consumer_messages import Plan, Range
from streaming.broker.protocol.group_stream import row_messages
from streaming.broker.protocol.status_messages import StatusRequest
from tests.agents import Agent, Reader, read_range, served
from tests.builders import batch, log_dir, partition

RECORDS = {"orders": 12 + 11, "bare": 0}
"""How many records its logs hold, by topic."""


class OtherVersion:
    """``says`` and ``rows`` may be changed while it serves: then another process listens at its port."""

    def __init__(self, directory: Path) -> None:
        disk = log_dir(directory, "other")
        for number, counts in enumerate(((3, 2, 7), (11,))):
            partition(disk, "orders", number).append(*map(batch, counts))
        partition(disk, "bare", topic_id=2)
        agent = Agent(disk.path)
        reader = Reader(agent)
        reader.register()
        agent.look()
        self.plan: Plan = reader.plan()
        self.asked: Range = reader.asked(self.plan)
        self.rows: pa.Table = read_range(agent.service, self.asked)
        self.says: dict[str, Any] = json.loads(agent.service.status(StatusRequest()).encode())
        agent.close()
        self.address = ""
        self.answers = {
            Call.STATUS: self._say,
            Call.REGISTER: self._say,
            Call.PLAN: self._plan,
            Call.EVENTS: self._events,
        }

    def _say(self, _: bytes, principal: str) -> Iterator[bytes]:
        yield json.dumps(self.says).encode()

    def _plan(self, body: bytes, principal: str) -> Iterator[bytes]:
        asked = json.loads(body)
        yield replace(self.plan, after=asked["after"] if asked["journal"] == self.plan.journal else self.plan.after).encode()

    def _events(self, body: bytes, principal: str) -> Iterator[bytes | pa.Buffer]:
        rows = self.rows if json.loads(body)["journal"] == self.plan.journal else self.rows.slice(0, 0)
        return row_messages(rows.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)])


@contextmanager
def other_version(directory: Path) -> Iterator[OtherVersion]:
    agent = OtherVersion(directory)
    with served(agent.answers) as agent.address:
        yield agent
