"""Asks the job's agent how it is, for what the metrics say of it."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from streaming.agent.client import AgentClient
from streaming.agent.messages import Status
from streaming.errors import AgentError
from streaming.metrics.observer import AgentStatus, Observer
from streaming.metrics.table import Table

log = logging.getLogger(__name__)


class AgentWatch:
    """One agent, found through a file that holds its address. For one thread."""

    def __init__(self, name: str, address_file: Path, observer: Observer, table: Table, clock: Callable[[], float]) -> None:
        self._address_file = address_file
        self._observer = observer
        self._table = table
        self._clock = clock
        self._client: AgentClient | None = None
        self._known = AgentStatus(name=name, up=False)

    def poll(self) -> None:
        """Ask once; an agent that does not answer is down until it does."""
        try:
            status = self._open(self._address_file.read_text().strip()).status()
        except (AgentError, FileNotFoundError) as error:
            self.close()
            if self._known.up:  # polled every second: said once
                log.warning("the agent does not answer", extra={"agent": self._known.name, "error": str(error)})
            self._known = replace(self._known, up=False)
            self._observer.polled(self._known)
        else:
            self._take(status)

    def _take(self, status: Status) -> None:
        self._known = AgentStatus(
            name=status.agent,
            up=True,
            brokers=tuple(status.brokers),
            cluster_id=status.cluster_id,
            catching_up=not status.caught_up,
            metadata_brokers=frozenset(status.brokers) - frozenset(status.unreadable_metadata),
        )
        now = self._clock()
        self._observer.polled(self._known)
        self._observer.published(status.agent, status.total, now)
        self._table.mark_agent(status.agent, now)

    def _open(self, address: str) -> AgentClient:
        if self._client is None or self._client.address != address:
            self.close()
            self._client = AgentClient(address)
        return self._client

    def close(self) -> None:
        """Let go of the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None
