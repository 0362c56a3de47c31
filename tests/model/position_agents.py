"""Agents that answer by positions, in the test's process and without a wire: one for each log dir, and any of them may begin anew."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streaming.broker.agent.position_answers import PositionAnswers
from streaming.broker.disk.logdirs import LogDirs, open_log_dirs
from streaming.broker.excerpts.excerpt_scan import scan_excerpts
from streaming.broker.protocol.excerpt_messages import Scan, ScanRequest, UnreadPart
from streaming.broker.protocol.position_messages import Between, BetweenRequest, Reached, ReachRequest
from streaming.broker.protocol.status_messages import Status
from streaming.errors import AgentError, LogDirError
from streaming.spark.source import agent_connections


@dataclass
class Agent:
    """An agent of one log dir, as its client sees it."""

    address: str
    dirs: LogDirs
    answers: PositionAnswers

    def status(self) -> Status:
        brokers = self.dirs.brokers
        return Status(self.address, "", self.address, self.dirs.cluster_id, brokers, [], logs=0, caught_up=True, seq=0, total=0)

    def reach(self, request: ReachRequest) -> Reached:
        return Reached.decode(self.answers.reached(ReachRequest.decode(request.encode())).encode())

    def between(self, request: BetweenRequest) -> Between:
        messages = [Between.decode(each) for each in self.answers.between(BetweenRequest.decode(request.encode()))]
        excerpts = [one for each in messages for one in each.excerpts]
        return replace(messages[-1], excerpts=excerpts, missing=[one for each in messages for one in each.missing])

    def scan(self, request: ScanRequest) -> Generator[pa.Table, None, list[UnreadPart]]:
        rows = scan_excerpts(self.dirs.available, request.excerpts, Scan(request.scan))
        while True:
            try:
                yield pa.Table.from_batches([next(rows)])
            except StopIteration as end:
                unread: list[UnreadPart] = end.value
                return unread

    def close(self) -> None:
        """It has no connection."""


class Fleet:
    """All of them, by address."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = {f"127.0.0.1:{number}": path for number, path in enumerate(paths, 1)}
        self._running: dict[str, Agent] = {}
        self._errors: dict[str, AgentError] = {}

    @property
    def addresses(self) -> str:
        """As an option has them."""
        return ",".join(self._paths)

    def restart(self) -> None:
        """Nothing is left of what they knew."""
        self._running = {}

    def client(self, address: str, _files: object = None) -> Agent:
        """The agent at an address. One whose log dir is away does not run; one that finds another broker's there begins anew."""
        running, path = self._running.get(address), self._paths[address]
        if running is not None:
            running.dirs.check()
        if running is None or running.dirs.unavailable:
            try:
                dirs = open_log_dirs([path])
            except LogDirError as error:
                raise AgentError(f"agent at {address}: {error}") from error
            running = self._running[address] = Agent(address, dirs, PositionAnswers(address, dirs))
        return running

    def ask_all(self, addresses: Iterable[str], question: Callable[[Any], Any], *_: object, **_more: object) -> dict[str, Any]:
        """As `agent_connections.ask_all`."""
        found = {}
        for address in sorted(addresses):
            self._errors.pop(address, None)
            try:
                found[address] = question(self.client(address))
            except AgentError as error:
                self._errors[address] = error
        return found

    def errors(self, addresses: Iterable[str], _files: object = None) -> dict[str, AgentError]:
        """As `agent_connections.errors`."""
        return {each: self._errors[each] for each in addresses if each in self._errors}

    def connect(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let a stream find these agents and no others."""
        for name in ("ask_all", "errors", "client"):
            monkeypatch.setattr(agent_connections, name, getattr(self, name))
        monkeypatch.setattr(agent_connections, "misfits", lambda *_: {})
