"""Journals and checkpoints that come back from older copies: what lies on the disks is counted, and nothing twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.model.job import Job
from tests.model.world import EVER, PLENTY, BrokersAndJobs


@pytest.fixture
def world(tmp_path: Path) -> Iterator[BrokersAndJobs]:
    made = BrokersAndJobs(tmp_path)
    for broker in made.agents:
        made.look(broker, hinted=True)
    grow(made)
    try:
        yield made
    finally:
        made.close()


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


@pytest.mark.parametrize("trimmed", [False, True])
@pytest.mark.parametrize("times", [1, 3])
def test_a_checkpoint_that_is_restored_also_below_what_is_trimmed(world: BrokersAndJobs, trimmed: bool, times: int) -> None:
    world.save_checkpoint("first")
    before, saved = counted(world), job(world).at
    for _ in range(times):
        for _ in range(2):  # the second one commits the first
            grow(world)
        for broker, agent in world.agents.items() if trimmed else ():
            world.trim(broker, PLENTY, EVER)
            assert agent.journal.trimmed().seq > saved[agent.name]["seq"] or saved[agent.name]["journal"] != agent.consumers.journal(
                "first"
            )
        world.restore_checkpoint("first")
        assert [each for each, _ in counted(world)] == [each for each, _ in before]
        world.settle()
        assert all(here == there for here, there in counted(world))


def test_a_checkpoint_from_before_what_was_merged_for_another_job(world: BrokersAndJobs) -> None:
    """What another job has missed is a sum without a content: the restored job reads it from the logs."""
    world.begin_job("second", "earliest")
    world.settle()
    world.save_checkpoint("first")
    bills = world.cluster.partitions["bills", 0]
    for _ in range(3):
        world.append(bills, 1, 2)
        world.look(2, hinted=True)
        for _ in range(2):
            world.step("first", {}, None, "")
    world.trim(2, 0, EVER)
    world.restore_checkpoint("first")
    world.settle()
    assert all(here == there for here, there in counted(world))
    assert any(any(state.skipped_bytes) for state in world.jobs["second"].logs().values())


@pytest.mark.parametrize("looks", [False, True])
def test_a_journal_that_flaps(world: BrokersAndJobs, looks: bool) -> None:
    for copies in ([0, 1, 0, 1, 0], [2, 0, 2]):
        world.flap(1, copies, [looks] * 5)
        grow(world)
        assert all(here == there for here, there in counted(world))


def test_an_older_copy_of_journal_and_checkpoint_together(world: BrokersAndJobs) -> None:
    world.save_checkpoint("first")
    world.save_journal(1, 0)
    grow(world)
    world.trim(1, PLENTY, EVER)
    world.restore_journal(1, 0)
    grow(world)
    world.restore_checkpoint("first")
    grow(world)
    assert all(here == there for here, there in counted(world))


def test_an_agent_that_is_renamed_between_two_reads(world: BrokersAndJobs) -> None:
    for _ in range(2):
        orders = world.cluster.partitions["orders", 0]
        world.append(orders, 1, 2)
        world.look(1, hinted=True)
        world.step("first", {}, None, "read")
        world.rename(1)
        grow(world)
        assert all(here == there for here, there in counted(world))


def test_a_beginning_in_a_new_journal_that_is_forgotten_before_anybody_read_it(world: BrokersAndJobs) -> None:
    """What it reported lies on the disk: the job begins once more, and nothing is said as lost, let alone twice."""
    for _ in range(3):
        world.append(world.cluster.partitions["bills", 0], 1, 2)
    world.lose_journal(2)
    for _ in range(3):
        world.step("first", {}, None, "")
    world.look(2, hinted=True)
    world.trim(2, 0, 0)
    assert world.agents[2].journal.trimmed().seq
    world.settle()
    assert all(here == there for here, there in counted(world))


def test_a_copy_of_the_journal_from_before_anything_was_read_comes_back_twice(tmp_path: Path) -> None:
    """By it the job is a new one, and it is not: what it is reported has to say where it may go on."""
    world = BrokersAndJobs(tmp_path)
    for broker in world.agents:
        world.look(broker, hinted=True)
    orders = world.cluster.partitions["orders", 0]
    world.save_journal(1, 1)
    world.append(orders, 2, 4)
    world.move(orders, 1)
    world.restore_journal(1, 1)
    world.settle()
    world.end_transaction(orders, 1, committed=False)
    world.restore_journal(1, 1)
    world.settle()
    assert all(here == there for here, there in counted(world))
    world.close()
