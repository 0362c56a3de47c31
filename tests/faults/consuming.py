"""What an agent hands out, read by a job that counts nothing, so that everything since its beginning comes each time."""

import re

from streaming.broker.protocol.consumer_messages import NOT_BEGUN, PlanRequest, Range, Register
from streaming.broker.protocol.status_messages import Status, StatusRequest
from streaming.common.rows import Kind
from streaming.errors import AgentError
from streaming.spark.client.address_lookup import NO_FILES, ClientFiles
from streaming.spark.client.agent_client import AgentClient
from tests.processes import Segtail, until

Key = tuple[str, int]


class Consumer:
    """One of an agent that may be away. It begins at the first byte."""

    def __init__(self, address: str, name: str = "faults", files: ClientFiles = NO_FILES) -> None:
        self._client = AgentClient(address, files)
        self._name = name
        self._registered = False

    def status(self) -> Status | None:
        """How the agent is, None while it does not answer. The first time it is told that this consumer is there."""
        try:
            asked = StatusRequest(consumer=self._name)
            begins = Register(self._name, "earliest", resumed=False, run="run")
            status = self._client.status(asked) if self._registered else self._client.register(begins)
            self._registered = True
            return status
        except AgentError:
            self._client.close()
            return None

    def bytes(self) -> dict[Key, int]:
        """The bytes of every partition that the agent has read since the beginning; nothing while it does not answer.

        Each byte must be there once: ranges of a segment that overlap or leave a hole fail.
        """
        status = self.status()
        if status is None or not status.caught_up:
            return {}
        try:
            plan = self._client.plan(PlanRequest(self._name, "run", "", -1, None, 0))
            if plan.seq == NOT_BEGUN:
                self._registered = False
                return {}
            table = self._client.read(Range(self._name, "run", plan.journal, plan.after, plan.seq))
        except AgentError:
            return {}
        columns = ("kind", "topic", "partition", "segment", "start_position", "end_position")
        found: dict[Key, int] = {}
        ends: dict[tuple[str, int, int], int] = {}
        for kind, topic, partition, segment, start, end in zip(*(table[name].to_pylist() for name in columns), strict=True):
            if kind == Kind.APPENDED:
                assert ends.get((topic, partition, segment), 0) == start, (topic, partition, segment, start)
                ends[topic, partition, segment] = end
                found[topic, partition] = found.get((topic, partition), 0) + end - start
        return found

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()


def address(agent: Segtail) -> str | None:
    found = re.search(r"message=\"agent listens\" address=(\S+)", agent.stated)
    return found[1] if found else None


def registered(client: AgentClient) -> Status:
    """How the agent is; a job that gets no answer in time asks again too."""

    refused: list[AgentError] = []

    def asked() -> Status | None:
        try:
            return client.register(Register("job", "earliest", False))
        except AgentError as error:
            refused[:] = [error]
            return None

    return until("the agent answers", asked, saw=lambda: refused)
