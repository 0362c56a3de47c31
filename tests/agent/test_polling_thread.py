"""The thread of a watcher: what it fails with is kept for whoever looks after it."""

import threading
from collections.abc import Callable
from pathlib import Path

from streaming.agent.health_server import Pulse
from streaming.agent.polling_thread import HostWatch, PollingThread
from streaming.agent.polls import Polls
from streaming.watcher.structure import Structure
from tests.agents import Agent
from tests.builders import NOW, log_dir
from tests.limits import SECONDS


class Broken:
    """A watcher with a fault that nobody thought of."""

    def poll(self, *_: object) -> bool:
        raise ZeroDivisionError

    def close(self) -> None:
        """Nothing is held."""


def test_a_fault_that_nobody_thought_of_ends_the_thread_and_is_kept(tmp_path: Path) -> None:
    agent = Agent(log_dir(tmp_path).path, journal=tmp_path / "journal")

    def make(_: Callable[[], bool]) -> HostWatch:
        return HostWatch(Broken(), agent.cluster, agent.host_status)  # type: ignore[arg-type]

    structure = Structure((), lambda: None, lambda: NOW)
    thread = PollingThread(make, structure, read_rate=1, pulse=Pulse(), stop=threading.Event(), polls=Polls())
    thread.start()
    thread.thread.join(SECONDS)
    assert not thread.alive
    assert isinstance(thread.error, ZeroDivisionError)
    agent.close()
