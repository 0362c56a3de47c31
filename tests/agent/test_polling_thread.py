"""The thread of a watcher: what it fails with is kept for whoever looks after it."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.agent import polling_thread
from streaming.agent.backlog_pace import Pace
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


class Behind:
    """A watcher with a backlog, whose second poll is its last."""

    backlog_bytes = 7
    restless = False

    def __init__(self, stop: threading.Event) -> None:
        self._stop, self._polled = stop, 0

    def poll(self, *_: object) -> bool:
        self._polled += 1
        if self._polled == 2:
            self._stop.set()
        return True

    def close(self) -> None:
        """Nothing is held."""


def test_a_backlog_is_paced_by_what_each_poll_has_read_and_how_long_it_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, stop, noted = Agent(log_dir(tmp_path).path, journal=tmp_path / "journal"), threading.Event(), []

    class Noted(Pace):
        def read(self, size: int, began: float, ended: float) -> None:
            noted.append((size, began, ended))
            super().read(size, began, ended)

    monkeypatch.setattr(polling_thread, "Pace", Noted)
    made = HostWatch(Behind(stop), agent.cluster, agent.host_status)  # type: ignore[arg-type]
    structure = Structure((), lambda: None, lambda: NOW)
    thread = PollingThread(lambda _: made, structure, read_rate=1 << 60, pulse=Pulse(), stop=stop, polls=Polls())
    thread.start()
    thread.thread.join(SECONDS)
    assert not thread.alive
    assert [size for size, _, _ in noted] == [7, 7]
    times = [at for _, *both in noted for at in both]
    assert times == sorted(set(times))
    agent.close()


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
