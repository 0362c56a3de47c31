"""A broker with three log dirs, the agents that share them, and a job that reads all of these."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.broker.protocol.consumer_messages import NOT_BEGUN
from streaming.common.event_row import EventRow
from streaming.rules.fold import LogChange
from streaming.rules.log_state import LogState
from streaming.simulator.log import LogDir, PartitionLog
from tests.agents import Agent, Reader
from tests.builders import batch, log_dir, partition
from tests.events import Shard


class World:
    """A broker with three log dirs, its agents, and a job."""

    def __init__(self, tmp_path: Path) -> None:
        self._root = tmp_path
        self.dirs = [log_dir(tmp_path, f"d{number}") for number in range(3)]
        self.shard = Shard()
        self.readers: dict[str, Reader] = {}
        self._paused: set[str] = set()
        self.stepped_back: set[str] = set()  # topics whose counters were gone or began anew

    def start(self, name: str, *dirs: int) -> None:
        """An agent that watches these log dirs; one of this name ends before."""
        before = self.readers.get(name)
        if before is not None and name not in self._paused:
            before.agent.close()
        self._paused.discard(name)
        made = Agent(*(self.dirs[number].path for number in dirs), name=name)
        if before is None:
            self.readers[name] = Reader(made, counted=_Known(self.shard))
        self.readers[name].agent = made
        self.readers[name].register(resumed=bool(self.shard.states))

    @property
    def running(self) -> list[str]:
        """The agents that run now."""
        return sorted(self.readers.keys() - self._paused)

    def pause(self, name: str) -> None:
        """An agent ends, and the job waits for it."""
        if name not in self._paused:
            self.readers[name].agent.close()
            self._paused.add(name)

    def stop(self, name: str) -> None:
        """An agent ends, and the job does not know it any more."""
        self.pause(name)
        self._paused.discard(name)
        del self.readers[name]

    def rows(self, name: str) -> list[EventRow]:
        """What an agent publishes now. A job that it does not know, or not by this name, begins anew as a job does: in the plan after."""
        reader = self.readers[name]
        reader.agent.look()
        if reader.plan().seq == NOT_BEGUN:
            reader.register(resumed=True)
            reader.agent.look()
        return reader.step()

    def look(self, *names: str) -> None:
        """A micro-batch for each of the agents, one after the other."""
        for name in names:
            before = dict(self.shard.states)
            self.shard.fold(*self.rows(name))
            for key, state in before.items():
                after = self.shard.states.get(key)
                if after is None or after.appended_records < state.appended_records:
                    self.stepped_back.add(key.topic)

    def log(self, topic: str) -> LogState | None:
        return next((state for key, state in self.shard.states.items() if key.topic == topic), None)

    def check(self, topic: str, written: int) -> None:
        """A log is there and always was, and all of it was counted once."""
        log = self.log(topic)
        assert log is not None
        assert topic not in self.stepped_back
        assert (log.departed, log.appended_records, log.share_records, sum(log.skipped_bytes)) == (False, written, written, 0)

    def close(self) -> None:
        for name in list(self.readers):
            self.stop(name)


class _Known(Shard):
    """What the job has counted of all agents. It is folded elsewhere, in an order that a test chooses."""

    def __init__(self, shard: Shard) -> None:
        super().__init__()
        self.states = shard.states

    def fold(self, *rows: EventRow) -> list[LogChange]:
        del rows
        return []


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def log_in(directory: LogDir, topic: str, *batches: int) -> PartitionLog:
    made = partition(directory, topic, topic_id=None)
    made.append(*map(batch, batches))
    return made
