"""Agents that keep nothing: a job goes on at what it has counted, and learns what is gone meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.broker.protocol.consumer_messages import Register
from streaming.broker.protocol.known_ends import pack
from streaming.common.log_positions import KnownEnd
from tests.model.brokers import Partition
from tests.model.job import Job
from tests.model.world import SECOND, BrokersAndJobs


@pytest.fixture
def world(tmp_path: Path) -> Iterator[BrokersAndJobs]:
    made = BrokersAndJobs(tmp_path)
    for agent in made.agents:
        made.look(agent, hinted=True)
    made.settle()
    try:
        yield made
    finally:
        made.close()


def orders(world: BrokersAndJobs) -> Partition:
    return world.cluster.partitions["orders", 0]


def grow(world: BrokersAndJobs) -> None:
    for partition in world.cluster.partitions.values():
        world.append(partition, 2, 3)
        world.replicate(partition, 3)
    world.settle()


def job(world: BrokersAndJobs) -> Job:
    return world.jobs["first"]


def counted(world: BrokersAndJobs) -> list[tuple[int, int]]:
    """Of each log the bytes that are counted and those that lie on the disk; nothing is skipped."""
    states = {key: state for key, state in job(world).logs().items() if (key.topic, key.partition) in world.cluster.partitions}
    assert not any(any(state.skipped_bytes) for state in job(world).logs().values())
    found = {}
    for key, state in states.items():
        replica = world.cluster.partitions[key.topic, key.partition].replicas[key.broker]
        found[key] = state.appended_bytes, sum(each.bytes for each in replica.written())
    assert len(found) == sum(len(each.replicas) for each in world.cluster.partitions.values())
    return list(found.values())


@pytest.mark.parametrize("how", ["restart", "drop", "rename"])
def test_everything_that_was_not_counted_is_deleted_and_nothing_follows(world: BrokersAndJobs, how: str) -> None:
    world.stop(1, killed=True)
    if how == "drop":
        world.start(1)
        world.settle()
        world.drop(1)
    elif how == "rename":
        world.rename(1)
    world.come_and_go(orders(world), 1, 2, 1)
    leader = orders(world).replicas[1].log
    assert leader.segments[0].base_offset == leader.log_end_offset
    world.settle()


@pytest.mark.parametrize("again", [False, True])
def test_a_log_that_was_deleted_while_nobody_knew_its_log_dir(world: BrokersAndJobs, again: bool) -> None:
    assert orders(world).replicas[1].disk is world.cluster.brokers[1].disks[-1]  # the one that is taken away
    world.restart(1)
    world.delete(orders(world))
    world.take_away(1, "unmounted")
    world.settle()
    if again:
        world.restart(1)
    world.bring_back()
    world.settle()
    assert not [key for key, state in job(world).logs().items() if key.topic == "orders" and not state.departed]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("times", [1, 3])
def test_an_older_checkpoint(world: BrokersAndJobs, times: int, again: bool) -> None:
    grow(world)
    world.save_checkpoint("first")
    before = counted(world)
    for _ in range(times):
        for _ in range(2):
            grow(world)
        if again:
            world.restart(1)
        world.restore_checkpoint("first")
        assert [each for each, _ in counted(world)] == [each for each, _ in before]
        world.settle()
        assert all(here == there for here, there in counted(world))


def test_an_agent_that_is_renamed_between_two_reads(world: BrokersAndJobs) -> None:
    for _ in range(2):
        world.append(orders(world), 1, 2)
        world.look(1, hinted=True)
        world.step("first", {}, None, "read")
        world.rename(1)
        grow(world)
        assert all(here == there for here, there in counted(world))


def test_agents_that_exchange_their_log_dirs_between_two_reads(world: BrokersAndJobs) -> None:
    for one, other in ((1, 2), (2, 3), (1, 2)):
        world.append(orders(world), 1, 2)
        world.look(1, hinted=True)
        world.step("first", {}, None, "")
        world.exchange(one, other)
        grow(world)
        assert all(here == there for here, there in counted(world))


def test_two_agents_on_the_same_log_dirs(world: BrokersAndJobs) -> None:
    world.start(SECOND)
    for _ in range(2):
        grow(world)
        assert all(here == there for here, there in counted(world))
    world.append(orders(world), 1, 2)
    world.look(SECOND, hinted=True)
    world.step("first", {}, None, "")
    world.stop(SECOND, killed=True)
    grow(world)
    assert all(here == there for here, there in counted(world))


def test_a_log_that_is_away_when_one_job_goes_on_and_another_one_begins(world: BrokersAndJobs) -> None:
    grow(world)
    world.take_away(1, "unmounted")
    world.restart(1)
    world.begin_job("second", "earliest")
    world.settle()
    world.bring_back()
    world.settle()
    assert all(here == there for here, there in counted(world))


def test_who_wants_a_log_that_is_away_is_known_to_a_watcher_that_replaces_another_one(world: BrokersAndJobs) -> None:
    world.begin_job("second", "earliest")
    world.settle()
    world.append(orders(world), 2, 3)  # the first job alone gets it
    world.look(1, hinted=True)
    for _ in range(2):
        world.step("first", {}, None, "")
    world.take_away(1, "unmounted")
    world.restart(1)
    world.settle()
    world.replace_watcher(1)
    world.crash("first")
    world.settle()
    world.bring_back()
    world.settle()


def test_a_stranger_does_not_say_where_a_job_goes_on(world: BrokersAndJobs) -> None:
    """In a log that is away, with the job's id and a token of its own."""
    grow(world)
    world.append(orders(world), 2, 3)
    world.take_away(1, "unmounted")
    world.restart(1)
    world.settle()
    far = {orders(world).log_id(1): KnownEnd(100, 0)}
    register = Register("first", "earliest", resumed=True, run="run", positions=pack(far))
    world.agents[1].service.register(register, "strangers")
    world.look(1, hinted=True)
    world.bring_back()
    grow(world)
    assert all(here == there for here, there in counted(world))
