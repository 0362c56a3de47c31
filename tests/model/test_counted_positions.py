"""A job that tells its agent where it has counted each log: whatever is killed, lost or damaged between, every record counts once.

An agent is started anew or forgets its events, the job's driver dies behind any step or goes back to an older checkpoint, calls do not come
through, and the file from which it plans is damaged or gone.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from streaming.broker.agent.call_answers import answers
from streaming.broker.protocol.agent_calls import Call
from streaming.simulator.log import PartitionLog
from streaming.spark.client.agent_client import AgentClient
from tests.agents import Agent
from tests.builders import batch, log_dir, partition
from tests.model.job import STEPS, Crashed, Job
from tests.scratch import scratch

_ROUNDS = 60


class Wire(AgentClient):
    """The real client; what it sends goes to the service without a network. ``fails``: calls that do not come through now."""

    def __init__(self, agent: Agent) -> None:
        super().__init__("127.0.0.1:1")
        self.agent: Any = agent
        self.fails: set[str] = set()
        agent.broker, agent.up = 1, True  # type: ignore[attr-defined]

    def _open(self) -> Any:
        return self

    def call(self, name: str, request: bytes, seconds: float, most: int, headers: object, *, single: bool = False) -> Iterator[bytes]:
        del seconds, most, headers, single
        if name in self.fails:
            raise ConnectionError("no connection")
        messages = list(map(bytes, answers(self.agent.service)[Call(name)](request, "")))
        if name == Call.EVENTS and "rows" in self.fails:  # the agent has sent them
            raise ConnectionError("lost on the way")
        yield from messages


class World:
    """Two logs, their agent, and a job."""

    def __init__(self, directory: Path, start_from: str) -> None:
        disk = log_dir(directory)
        self.logs: list[PartitionLog] = [partition(disk, "orders"), partition(disk, "bills", topic_id=2)]
        self.counts, self.epochs = [0, 0], 0
        self.agent = Agent(disk.path)
        self.wire = Wire(self.agent)
        self.job = Job("job", start_from, {1: self.wire}, directory / "counted")  # type: ignore[dict-item]

    def append(self, number: int) -> None:
        self.logs[number % 2].append(batch(number + 1), batch(1), leader_epoch=self.epochs)
        self.counts[number % 2] += number + 2

    def roll(self, number: int) -> None:
        self.logs[number % 2].roll()

    def cut_off(self, number: int) -> None:
        """Another leader has other batches at the end: all that was counted stays counted."""
        self.settle()
        log = self.logs[number % 2]
        if len(log.active.entries) > 1:
            self.epochs += 1
            log.truncate(log.active.entries[-1].base_offset)
            log.append(batch(2), leader_epoch=self.epochs)
            self.counts[number % 2] += 2

    def look(self, _: int) -> None:
        self.agent.look()

    def restart(self, _: int) -> None:
        self.agent.restart()

    def drop(self, _: int) -> None:
        """The agent has no room for its events any more."""
        with self.agent.journal._lock:
            self.agent.journal._most_bytes, most = 0, self.agent.journal._most_bytes
            self.agent.journal._drop()
            self.agent.journal._most_bytes = most

    def fail(self, number: int) -> None:
        self.wire.fails = {("register", "plan", "events", "rows")[number % 4]}

    def mend(self, _: int) -> None:
        self.wire.fails = set()

    def step(self, number: int) -> None:
        self.job.budget = None if number % 2 else 300
        self.job.step()

    def crash(self, number: int) -> None:
        self.job.crash_after = STEPS[number % len(STEPS)]
        with contextlib.suppress(Crashed):
            self.job.step()
        self.job.start()

    def save(self, _: int) -> None:
        self.job.save()

    def restore(self, _: int) -> None:
        self.job.restore()

    def damage(self, number: int) -> None:
        if number % 2:
            self.job._counted_file.unlink(missing_ok=True)
        else:
            self.job._counted_file.write_bytes(b"nonsense")

    def keep(self, _: int) -> None:
        self.job._counting.keep()

    def settle(self) -> None:
        self.mend(0)
        idle = 0
        for _ in range(_ROUNDS):
            self.keep(0)
            self.look(0)
            idle = 0 if self.job.step() else idle + 1
            if idle > 2:
                return
        raise AssertionError("the job never gets to the end")

    def check(self) -> None:
        states = {key.topic: state for key, state in self.job.logs().items() if key.topic}
        assert [states[log.topic].appended_records for log in self.logs] == self.counts
        assert not any(any(state.skipped_bytes) for state in states.values())

    def close(self) -> None:
        self.agent.close()


_OFTEN = ("append", "append", "look", "step", "step", "crash")
_RARE = ("roll", "restart", "drop", "fail", "mend", "damage", "keep")
_BACK = ("save", "restore")
_CUT = ("cut_off",)


@given(
    st.sampled_from([_BACK, _CUT]).flatmap(
        lambda some: st.lists(st.tuples(st.sampled_from([*_OFTEN, *_OFTEN, *_RARE, *some]), st.integers(0, 9)), max_size=40)
    )
)
@example([("append", 0), ("step", 1), ("look", 0), ("look", 0), ("crash", 4)])  # the table has a log that the states do not have
@settings(deadline=None, max_examples=150)
def test_every_record_counts_once(steps: list[tuple[str, int]]) -> None:
    with scratch() as directory:
        world = World(Path(directory), "earliest")
        try:
            for name, number in steps:
                getattr(world, name)(number)
            world.settle()
            world.check()
        finally:
            world.close()
