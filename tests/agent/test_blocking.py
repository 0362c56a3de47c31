"""A call that does not come back: its log dir is left alone, another watcher goes on, and the first writes nothing any more."""

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from streaming.broker.agent.parts import PATIENCE_POLLS, Blocking
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.disk.opening import Calling, ThreadCalls, calls_of_this_thread
from tests.builders import log_dir
from tests.limits import SECONDS
from tests.processes import until


@dataclass
class Reader:
    """Reads one file on a thread of its own, as a watcher does, or none."""

    path: Path | None
    calls: ThreadCalls = field(default_factory=ThreadCalls)
    error: Any = None
    replaced: bool = False
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        self.calls = calls_of_this_thread()
        if self.path is not None:
            with Calling(self.path):
                os.close(os.open(self.path, os.O_RDONLY))

    @property
    def alive(self) -> bool:
        return self.thread.is_alive()

    def replace(self) -> None:
        self.replaced = True


class OneDeadLogDir:
    """Two log dirs, and a file in the second that does not answer."""

    def __init__(self, tmp_path: Path) -> None:
        self.paths = [log_dir(tmp_path / name).path for name in ("one", "two")]
        self.fifo = self.paths[1] / "t-0" / "file"
        self.fifo.parent.mkdir()
        os.mkfifo(self.fifo)
        self.log_dirs = open_log_dirs(self.paths)
        self.reads: list[Path | None] = [self.fifo]
        self.readers: list[Reader] = []
        self.fenced: list[threading.Thread] = []
        self.now = 100.0
        self.blocking = Blocking(self.log_dirs, self._start, self.fenced.append, clock=lambda: self.now)
        until("it waits", lambda: self.readers[0].calls.path == self.fifo)

    def _start(self) -> Any:
        self.readers.append(Reader(self.reads.pop(0) if self.reads else None))
        return self.readers[-1]

    def poll(self, times: int) -> None:
        for _ in range(times):
            self.now += 1
            self.blocking.poll()

    def free(self, reader: int = 0) -> None:
        os.close(os.open(self.fifo, os.O_WRONLY))
        self.readers[reader].thread.join(SECONDS)


@pytest.fixture
def world(tmp_path: Path) -> OneDeadLogDir:
    return OneDeadLogDir(tmp_path)


def test_a_call_that_stays_is_named_and_another_watcher_takes_over_without_its_log_dir(world: OneDeadLogDir) -> None:
    world.poll(PATIENCE_POLLS)
    assert world.blocking.blocked == []
    world.poll(1)
    (call,) = world.blocking.blocked
    assert (call.log_dir.path, call.path) == (world.paths[1], world.fifo)
    assert world.blocking.blocked_for(call) == PATIENCE_POLLS
    assert list(world.log_dirs.unavailable) == [world.paths[1]]
    assert world.readers[0].replaced
    assert world.fenced == [world.readers[0].thread]
    assert world.blocking.current is world.readers[1]
    world.free()


def test_when_the_call_comes_back_the_log_dir_is_used_again_and_has_more_time_from_then_on(world: OneDeadLogDir) -> None:
    world.poll(PATIENCE_POLLS + 1)
    world.poll(3)
    assert list(world.log_dirs.unavailable) == [world.paths[1]]
    world.reads = [world.fifo]
    world.free()
    world.poll(1)
    assert world.blocking.blocked == []
    world.log_dirs.check()
    assert not world.log_dirs.unavailable
    until("it waits again", lambda: world.readers[-1].calls.path == world.fifo)
    world.poll(2 * PATIENCE_POLLS)
    assert world.blocking.blocked == []
    world.poll(1)
    assert len(world.blocking.blocked) == 1
    world.free(2)


def test_calls_that_come_and_go_are_no_call_that_stays(world: OneDeadLogDir) -> None:
    world.poll(PATIENCE_POLLS + 1)
    calls = world.blocking.current.calls
    for _ in range(3 * PATIENCE_POLLS):
        calls.path, calls.count = world.paths[0] / "busy", calls.count + 1
        world.poll(1)
    assert len(world.blocking.blocked) == 1
    calls.path = None
    world.poll(3 * PATIENCE_POLLS)
    assert len(world.readers) == 2
    world.free()


def test_what_the_watcher_fails_with_is_passed_on(world: OneDeadLogDir) -> None:
    world.poll(PATIENCE_POLLS + 1)
    world.readers[-1].error = PermissionError("its disk is full")
    with pytest.raises(PermissionError, match="full"):
        world.poll(1)
    world.free()
