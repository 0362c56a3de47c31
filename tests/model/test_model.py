"""The whole path, from the disks of three brokers to the tables of two jobs: whatever happens, every byte is counted once, or as lost.

A thousand steps in the suite, a hundred thousand in ``make fuzz``. A failure is printed as a program of these rules.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.model import coordinators
from tests.model.agent import MOST_BYTES
from tests.model.brokers import Partition, Replica
from tests.model.job import STEPS
from tests.model.world import SECOND, TOPICS, BrokersAndJobs
from tests.scratch import scratch

EXHAUSTIVE = os.environ.get("HYPOTHESIS_PROFILE") == "exhaustive"
STEPS_AT_ONCE = 50
PARTS, EXAMPLES = (4, 500) if EXHAUSTIVE else (1, 20)

topics = st.sampled_from(sorted(TOPICS))
brokers = st.integers(1, 3)
agents = st.integers(1, SECOND)
places = st.integers(0, 2)
jobs = st.sampled_from(["first", "second"])
calls = st.sampled_from(["register", "plan", "events", "rows"])
Happening = tuple[str, dict[str, Any]]
happenings: st.SearchStrategy[Happening] = st.one_of(
    *(
        st.tuples(st.just(what), st.fixed_dictionaries(values))
        for what, values in (
            ("append", {"records": st.integers(1, 3), "batches": st.integers(1, 6)}),
            ("roll", {"place": places}),
            ("delete_segments", {"place": places, "count": st.integers(1, 3)}),
            ("come_and_go", {"records": st.integers(1, 3), "segments": st.integers(1, 4), "kept": st.integers(1, 2)}),
            ("come_and_go", {"records": st.integers(1, 3), "segments": st.integers(1, 4), "kept": st.integers(1, 2)}),
            ("clean", {"place": places, "which": st.integers(0, 3), "keep": st.integers(0, 31)}),
            ("replicate", {"count": st.integers(1, 20)}),
            ("elect", {"place": places}),
            ("take_over", {"place": places, "records": st.integers(1, 3), "batches": st.integers(1, 6)}),
            ("delete_topic", {}),
            ("create_topic", {}),
        )
    )
)
"""What may happen while an agent is held up, or away."""

RINGS = [MOST_BYTES, 100_000]
"""How many bytes an agent keeps."""

MOST_POINTS = 150
"""A look has about so many calls at which it may be held up."""


class WholePath(RuleBasedStateMachine):
    """Rules choose by number what they do something to; where there is no such thing nothing happens."""

    def __init__(self) -> None:
        super().__init__()
        self._root = scratch()
        self.world = BrokersAndJobs(Path(self._root.name))

    def teardown(self) -> None:
        try:
            self.world.bring_back()
            self.world.settle()
        finally:
            self.world.close()
            self._root.cleanup()

    def _partition(self, topic: tuple[str, int]) -> Partition | None:
        return self.world.cluster.partitions.get(topic)

    def _replica(self, topic: tuple[str, int], place: int) -> Replica | None:
        partition = self._partition(topic)
        return None if partition is None else list(partition.replicas.values())[place % len(partition.replicas)]

    def _broker(self, partition: Partition, place: int) -> int:
        return list(partition.replicas)[place % len(partition.replicas)]

    @initialize()
    def begin(self) -> None:
        for agent in self.world.agents:
            self.world.look(agent, hinted=True)

    # --- what brokers do

    @rule(topic=topics, records=st.integers(1, 3), batches=st.integers(1, 6))
    def append(self, topic: tuple[str, int], records: int, batches: int) -> None:
        if partition := self._partition(topic):
            self.world.append(partition, records, batches)

    @rule(topic=topics, records=st.integers(1, 3), count=st.integers(1, 9))
    def append_and_replicate(self, topic: tuple[str, int], records: int, count: int) -> None:
        if partition := self._partition(topic):
            self.world.append(partition, records, 3)
            self.world.replicate(partition, count)

    @rule(count=st.integers(1, 6), replicated=st.integers(0, 9))
    def coordinate(self, count: int, replicated: int) -> None:
        if partition := self._partition((coordinators.TOPIC, 0)):
            self.world.append(partition, 1, count)
            self.world.replicate(partition, replicated)

    @rule(topic=topics, producer=st.integers(1, 3), records=st.integers(1, 2))
    def transact(self, topic: tuple[str, int], producer: int, records: int) -> None:
        if partition := self._partition(topic):
            self.world.transact(partition, producer, records)

    @rule(topic=topics, producer=st.integers(1, 3), committed=st.booleans())
    def end_transaction(self, topic: tuple[str, int], producer: int, committed: bool) -> None:
        if partition := self._partition(topic):
            self.world.end_transaction(partition, producer, committed=committed)

    @rule(topic=topics, count=st.integers(1, 20))
    def replicate(self, topic: tuple[str, int], count: int) -> None:
        if partition := self._partition(topic):
            self.world.replicate(partition, count)

    @rule(topic=topics, place=places)
    def roll(self, topic: tuple[str, int], place: int) -> None:
        if replica := self._replica(topic, place):
            self.world.roll(replica)

    @rule(topic=topics, place=places, count=st.integers(1, 3))
    def delete_segments(self, topic: tuple[str, int], place: int, count: int) -> None:
        if replica := self._replica(topic, place):
            self.world.delete_segments(replica, count)

    @rule(topic=topics, records=st.integers(1, 3), segments=st.integers(1, 4), kept=st.integers(1, 2))
    def come_and_go(self, topic: tuple[str, int], records: int, segments: int, kept: int) -> None:
        if partition := self._partition(topic):
            self.world.come_and_go(partition, records, segments, kept)

    @rule(topic=topics, place=places, which=st.integers(0, 3), keep=st.integers(0, 31))
    def clean(self, topic: tuple[str, int], place: int, which: int, keep: int) -> None:
        if replica := self._replica(topic, place):
            self.world.clean(replica, which, keep)

    @rule(topic=topics, place=places)
    def elect(self, topic: tuple[str, int], place: int) -> None:
        if partition := self._partition(topic):
            self.world.elect(partition, self._broker(partition, place))

    @rule(topic=topics, place=places, records=st.integers(1, 3), batches=st.integers(1, 6))
    def take_over(self, topic: tuple[str, int], place: int, records: int, batches: int) -> None:
        """Another leader overwrites what the others have that it has not."""
        if partition := self._partition(topic):
            self.world.elect(partition, self._broker(partition, place))
            self.world.append(partition, records, batches)
            self.world.replicate(partition, 20)

    @rule(topic=topics, place=places)
    def move(self, topic: tuple[str, int], place: int) -> None:
        if partition := self._partition(topic):
            self.world.move(partition, self._broker(partition, place))

    @rule(topic=topics, place=places)
    def reassign(self, topic: tuple[str, int], place: int) -> None:
        if partition := self._partition(topic):
            self.world.reassign(partition, self._broker(partition, place))

    @rule(topic=topics)
    def delete_topic(self, topic: tuple[str, int]) -> None:
        if partition := self._partition(topic):
            self.world.delete(partition)

    @rule(topic=topics)
    def create_topic(self, topic: tuple[str, int]) -> None:
        self.world.create(*topic, TOPICS[topic])

    @rule(broker=brokers, how=st.sampled_from(["gone", "unmounted"]))
    def take_away(self, broker: int, how: str) -> None:
        self.world.take_away(broker, how)

    @rule()
    def bring_back(self) -> None:
        self.world.bring_back()

    # --- what happens to agents

    @rule(agent=agents, hinted=st.booleans())
    def look(self, agent: int, hinted: bool) -> None:
        self.world.look(agent, hinted=hinted)

    @rule(
        topic=topics,
        place=places,
        hinted=st.booleans(),
        before=st.lists(happenings, max_size=2),
        at=st.integers(0, MOST_POINTS),
        meanwhile=st.lists(happenings, min_size=1, max_size=4),
    )
    def look_held_up(
        self, topic: tuple[str, int], place: int, hinted: bool, before: list[Happening], at: int, meanwhile: list[Happening]
    ) -> None:
        """All of it happens to one partition: that leaves the most to be seen by halves."""
        self._happen(topic, before)
        if partition := self._partition(topic):
            self.world.look_held_up(self._broker(partition, place), at, partial(self._happen, topic, meanwhile), hinted=hinted)

    @rule(topic=topics, before=st.lists(happenings, max_size=2), meanwhile=st.lists(happenings, min_size=1, max_size=4))
    def be_away(self, topic: tuple[str, int], before: list[Happening], meanwhile: list[Happening]) -> None:
        """Jobs have what was before, and no agent sees the rest happen."""
        self._happen(topic, before)
        self.world.be_away(partial(self._happen, topic, meanwhile))

    def _happen(self, topic: tuple[str, int], happenings: list[Happening]) -> None:
        for what, values in happenings:
            getattr(self, what)(topic=topic, **values)

    @rule(agent=agents, budget=st.integers(1, 2_000))
    def turn(self, agent: int, budget: int) -> None:
        self.world.turn(agent, budget)

    @rule(agent=agents, publications=st.integers(0, 8), before=st.booleans(), leads_to=st.sampled_from(["killed", "replaced"]))
    def light_fuse(self, agent: int, publications: int, before: bool, leads_to: str) -> None:
        self.world.light_fuse(agent, publications, before=before, leads_to=leads_to)

    @rule(agent=agents, killed=st.booleans())
    def stop(self, agent: int, killed: bool) -> None:
        self.world.stop(agent, killed=killed)

    @rule(agent=agents)
    def start(self, agent: int) -> None:
        self.world.start(agent)

    @rule(agent=agents)
    def restart(self, agent: int) -> None:
        self.world.restart(agent)

    @rule(agent=agents)
    def replace_watcher(self, agent: int) -> None:
        self.world.replace_watcher(agent)

    @rule(agent=agents, by_ms=st.sampled_from([-7_200_000, -1_000, 1_000, 7_200_000]))
    def set_clock(self, agent: int, by_ms: int) -> None:
        self.world.set_clock(agent, by_ms)

    @rule(agent=agents)
    def drop(self, agent: int) -> None:
        self.world.drop(agent)

    @rule(agent=agents, most_bytes=st.sampled_from(RINGS))
    def resize(self, agent: int, most_bytes: int) -> None:
        self.world.resize(agent, most_bytes)

    @rule(agent=agents)
    def rename(self, agent: int) -> None:
        self.world.rename(agent)

    @rule(one=agents, other=agents)
    def exchange(self, one: int, other: int) -> None:
        self.world.exchange(one, other)

    @rule(agent=agents, job=jobs, times=st.integers(1, 3), seq=st.sampled_from([-10, 0, 1, 1_000]))
    def confuse(self, agent: int, job: str, times: int, seq: int) -> None:
        self.world.confuse(agent, job, times=times, seq=seq)

    # --- what happens to jobs

    @rule(start_from=st.sampled_from(["earliest", "active", "latest"]))
    def second_job(self, start_from: str) -> None:
        self.world.begin_job("second", start_from)

    @rule(job=jobs)
    def step(self, job: str) -> None:
        self.world.step(job, {}, None, "")

    @rule(
        job=jobs,
        fails=st.dictionaries(agents, calls, max_size=2),
        budget=st.sampled_from([None, 300, 3_000]),
        crash_after=st.sampled_from(["", "", *STEPS]),
    )
    def step_badly(self, job: str, fails: dict[int, str], budget: int | None, crash_after: str) -> None:
        self.world.step(job, fails, budget, crash_after)

    @rule(job=jobs)
    def crash(self, job: str) -> None:
        self.world.crash(job)

    @rule(job=jobs)
    def save_checkpoint(self, job: str) -> None:
        self.world.save_checkpoint(job)

    @rule(job=jobs)
    def restore_checkpoint(self, job: str) -> None:
        self.world.restore_checkpoint(job)

    @rule()
    def settle(self) -> None:
        self.world.settle()


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600 if EXHAUSTIVE else 1800)
@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_happens_every_byte_is_counted_once_or_reported_as_lost(part: int) -> None:
    run_state_machine_as_test(
        WholePath,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS_AT_ONCE,
            deadline=None,
            print_blob=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
