"""Reads relations at once from agents: they scan their files, and send rows."""

import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa

from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.consumer_messages import Selection
from streaming.broker.protocol.excerpt_messages import Excerpt, Excerpts, ExcerptsRequest, ScanRequest, UnreadPart
from streaming.broker.protocol.status_messages import Status
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError, SameAgentError
from streaming.kafka.formats.properties import known_clusters
from streaming.spark.client.agent_client import AgentClient
from streaming.spark.source import agent_connections
from streaming.spark.source.at_once import AtOnceReader, Task, scan_of
from streaming.spark.source.producer_names import ProducerNames, names_of_agents
from streaming.spark.source.public_options import nothing_fits

MOST_NAMES = 2_000
"""The most topics that one request names."""

BUSY_SECONDS = 600.0
"""How long a task waits for its turn, if an agent answers as many calls as it may."""

_PAUSE_SECONDS = 0.5
_AT_ONCE = 32
_NOTHING = Excerpts(excerpts=[], last=True)


class AgentReader(AtOnceReader):
    """Every agent has to answer, else rows would be missing."""

    def _planned(self) -> list[Task]:
        statuses = self._statuses()
        with ThreadPoolExecutor(min(_AT_ONCE, len(statuses))) as pool:
            answers = dict(zip(statuses, pool.map(self._list, statuses), strict=True))
        narrow = self._selection() != self._options.selection
        if not narrow and not any(answer.matched for answer in answers.values()):
            raise nothing_fits(self._options.selection, {topic for answer in answers.values() for topic in answer.topics})
        tasks = [task for address, answer in answers.items() for task in self.tasks(address, answer.excerpts, statuses[address].cluster_id)]
        if not narrow:  # a filter on topics fits no row of a log dir as a whole
            tasks += [Task(address, (), False, tuple(answer.unavailable)) for address, answer in answers.items() if answer.unavailable]
        return tasks

    def _statuses(self) -> dict[str, Status]:
        """The agents that take part, by address. One that has several takes part once."""
        addresses = self._options.addresses()
        if not addresses:
            raise AgentError("option agents: no agent has an address yet: is it running?")
        with ThreadPoolExecutor(min(_AT_ONCE, len(addresses))) as pool:
            found = dict(zip(addresses, pool.map(self._status, addresses), strict=True))
        refused = agent_connections.unwelcome(found, {}, {}, self._options.cluster_id)
        for error in refused.values():
            if not isinstance(error, SameAgentError):
                raise error
        taking = {address: status for address, status in found.items() if address not in refused}
        clusters = known_clusters(status.cluster_id for status in taking.values())
        if len(clusters) > 1:
            raise AgentError(f"option agents: they watch several clusters ({', '.join(clusters)}): name the agents of one")
        return taking

    def _status(self, address: str) -> Status:
        client = self._client(address)
        status = client.status()
        client.check(status)
        return status

    def _list(self, address: str) -> Excerpts:
        selection, client = self._selection(), self._client(address)
        if selection is None:
            return _NOTHING
        if not selection.pattern:
            return self._ask(client, selection)
        names = client.topics()
        fitting = tuple(topic for topic in names if selection.has_topic(topic))
        if not fitting:
            return replace(_NOTHING, topics=names)
        return self._ask(client, replace(selection, topics=fitting, pattern=""))

    def _ask(self, client: AgentClient, selection: Selection) -> Excerpts:
        """The excerpts of a selection without a pattern."""
        start = self._start()
        position, timestamp = (start, -1) if isinstance(start, StartFrom) else (StartFrom.EARLIEST, start)
        excerpts: list[Excerpt] = []
        answer = _NOTHING
        matched = 0
        for begin in range(0, max(1, len(selection.topics)), MOST_NAMES):
            answer = client.excerpts(
                ExcerptsRequest(
                    excerpt_bytes=self.excerpt_bytes,
                    topics=list(selection.topics[begin : begin + MOST_NAMES]),
                    partitions=list(selection.partitions),
                    start=position,
                    timestamp=timestamp,
                )
            )
            excerpts += answer.excerpts
            matched += answer.matched
        return replace(answer, excerpts=excerpts, matched=matched)  # what else the last answer says, each of them says

    def _rows(self, task: Task) -> Generator[pa.Table, None, list[UnreadPart]]:
        """The rows that the agent sends. If it is busy, nothing was sent, and they are asked for again."""
        client, deadline = self._client(task.address), time.monotonic() + BUSY_SECONDS
        request = ScanRequest(scan=scan_of(self._options.relation), excerpts=list(task.excerpts), ongoing=task.ongoing)
        while True:
            try:
                return (yield from client.scan(request))
            except AgentError as error:
                if error.reason != Reason.BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def _names(self, cluster_id: str) -> ProducerNames:
        return names_of_agents(self._options, cluster_id)

    def _client(self, address: str) -> AgentClient:
        return agent_connections.client(address, self._options.files)
