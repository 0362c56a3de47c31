"""What a job lacks of a coordinator's log heals: the agent reads it again from its first byte, and that replaces what jobs have of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.model import coordinators
from tests.model.brokers import Partition
from tests.model.world import BrokersAndJobs


@pytest.fixture
def world(tmp_path: Path) -> Iterator[BrokersAndJobs]:
    """Three brokers with some entries that everybody has."""
    made = BrokersAndJobs(tmp_path)
    for broker in made.agents:
        made.look(broker, hinted=True)
    write(made, 7)
    made.settle()
    assert known(made, 1)
    assert upto(made, 1) == 7
    try:
        yield made
    finally:
        made.close()


def partition(world: BrokersAndJobs) -> Partition:
    return world.cluster.partitions[coordinators.TOPIC, 0]


def write(world: BrokersAndJobs, count: int) -> None:
    world.append(partition(world), 1, count)
    world.replicate(partition(world), 99)


def state(world: BrokersAndJobs, broker: int):  # type: ignore[no-untyped-def]
    (found,) = (each for key, each in world.jobs["first"].logs().items() if (key.broker, key.topic) == (broker, coordinators.TOPIC))
    return found


def known(world: BrokersAndJobs, broker: int) -> dict[str, tuple[int, str]]:
    return coordinators.known(state(world, broker))


def upto(world: BrokersAndJobs, broker: int) -> int:
    return int(state(world, broker).coordinator_upto)


def look(world: BrokersAndJobs) -> None:
    for broker in world.agents:
        world.look(broker, hinted=False)


@pytest.mark.parametrize("how", ["drop", "restart", "replace_watcher"])
def test_what_a_job_did_not_get_of_it_is_read_again(world: BrokersAndJobs, how: str) -> None:
    write(world, 9)
    look(world)
    for agent in world.agents:
        {"drop": world.drop, "restart": world.restart, "replace_watcher": world.replace_watcher}[how](agent)
    write(world, 3)
    world.step("first", {}, None, "")
    world.settle()
    for broker, replica in partition(world).replicas.items():
        assert upto(world, broker) == 19
        assert state(world, broker).appended_bytes == sum(each.bytes for each in replica.written())


def test_entries_of_a_deposed_leader(world: BrokersAndJobs) -> None:
    world.append(partition(world), 1, 5)  # by broker 2 alone
    look(world)
    world.step("first", {}, None, "")
    deposed = known(world, 2)
    world.elect(partition(world), 3)
    world.append(partition(world), 1, 1)
    world.replicate(partition(world), 99)
    look(world)
    world.settle()
    assert known(world, 2) == known(world, 3) != deposed
    assert upto(world, 2) == 8


def test_a_second_job_takes_nothing_from_the_first(world: BrokersAndJobs) -> None:
    world.begin_job("second", "latest")
    look(world)
    world.step("first", {}, None, "")
    assert upto(world, 1) == 7
    world.settle()


def test_what_is_cut_off_before_it_is_reported_again_for_a_second_job(world: BrokersAndJobs) -> None:
    world.append(partition(world), 1, 1)  # by broker 2 alone
    look(world)
    world.settle()
    world.begin_job("second", "earliest")
    world.elect(partition(world), 3)
    write(world, 1)
    world.settle()
    assert known(world, 2) == known(world, 3)
    assert upto(world, 2) == 8


def test_a_follower_forgets_the_epoch_in_which_it_led_and_appended_nothing(world: BrokersAndJobs) -> None:
    """As in Kafka (`UnifiedLog.truncateTo`); else what it copies of an earlier epoch would take all epochs with it."""
    world.append(partition(world), 1, 3)  # by broker 2 alone
    world.elect(partition(world), 3)
    world.elect(partition(world), 2)
    write(world, 1)
    two, three = (partition(world).replicas[broker].log for broker in (2, 3))
    assert three.leader_epochs == two.leader_epochs == [(0, 0), (2, 10)]
    world.settle()
    assert upto(world, 3) == 11
