"""The thread of a watcher: what it fails with is kept for whoever looks after it."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.broker.agent import polling_thread
from streaming.broker.agent.health_server import Pulse
from streaming.broker.agent.polling_thread import BACKLOG_PAUSE_SECONDS, BacklogPace, HostWatch, PollingThread, Polls
from streaming.broker.watcher.structure import Structure
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
    agent, stop, noted = Agent(log_dir(tmp_path).path), threading.Event(), []

    class Noted(BacklogPace):
        def read(self, size: int, began: float, ended: float) -> None:
            noted.append((size, began, ended))
            super().read(size, began, ended)

    monkeypatch.setattr(polling_thread, "BacklogPace", Noted)
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
    agent = Agent(log_dir(tmp_path).path)

    def make(_: Callable[[], bool]) -> HostWatch:
        return HostWatch(Broken(), agent.cluster, agent.host_status)  # type: ignore[arg-type]

    structure = Structure((), lambda: None, lambda: NOW)
    thread = PollingThread(make, structure, read_rate=1, pulse=Pulse(), stop=threading.Event(), polls=Polls())
    thread.start()
    thread.thread.join(SECONDS)
    assert not thread.alive
    assert isinstance(thread.error, ZeroDivisionError)
    agent.close()


RATE, TURN = 1000, 10_000


def test_a_backlog_is_read_half_of_the_time_at_most() -> None:
    pace = BacklogPace(10**9, TURN)
    assert pace.budget(5.0) == TURN
    pace.read(100, 5.0, 5.25)
    assert pace.budget(5.49) == 0
    assert pace.rest(5.25) == 0.25
    assert pace.budget(5.5) == TURN


def test_a_rest_for_its_own_sake_is_short() -> None:
    pace = BacklogPace(10**9, TURN)
    pace.read(100, 0.0, 60.0)
    assert pace.rest(60.0) == BACKLOG_PAUSE_SECONDS


def test_no_more_bytes_a_second_than_the_rate() -> None:
    pace = BacklogPace(RATE, TURN)
    now, read = 0.0, 0
    while now < 100:
        budget = pace.budget(now)
        if budget:
            read += budget
            pace.read(budget, now, now + 0.01)
        now += 0.01 + pace.rest(now + 0.01)
    assert 0.9 * RATE * 100 <= read <= RATE * 100 + TURN


def test_a_turn_is_small_where_the_rate_is() -> None:
    assert BacklogPace(RATE, TURN).budget(0.0) == RATE // 2
    assert BacklogPace(1, TURN).budget(0.0) == 1


def test_the_time_that_reading_took_counts_for_the_rate() -> None:
    pace = BacklogPace(RATE, TURN)
    pace.read(RATE, 0.0, 0.25)
    assert pace.rest(0.25) == 0.75
