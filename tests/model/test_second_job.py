"""Where a job begins that agents have heard of late: in a log that others have read since, behind what is there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.model.world import BrokersAndJobs


@pytest.fixture
def world(tmp_path: Path) -> Iterator[BrokersAndJobs]:
    made = BrokersAndJobs(tmp_path)
    for broker in made.agents:
        made.look(broker, hinted=True)
    try:
        yield made
    finally:
        made.close()


def test_what_was_led_and_left_before_it_began_is_none_of_its_share(world: BrokersAndJobs) -> None:
    world.begin_job("second", "latest")
    world.stop(3, killed=True)
    bills = world.cluster.partitions["bills", 0]
    world.reassign(bills, 1)  # to broker 3
    world.elect(bills, 3)
    world.append(bills, 1, 4)
    world.stop(3, killed=True)
    world.start(3)
    world.look(3, hinted=False)
    world.step("second", {}, None, "")
    world.look(3, hinted=False)
    world.replicate(bills, 9)
    world.elect(bills, 2)
    world.reassign(bills, 3)
    world.settle()


def test_what_is_dropped_before_either_has_it_is_read_again_for_both(world: BrokersAndJobs) -> None:
    orders = world.cluster.partitions["orders", 0]
    world.append(orders, 1, 1)
    world.settle()
    world.append(orders, 3, 1)
    world.begin_job("second", "earliest")
    world.look(1, hinted=False)
    world.append(orders, 2, 1)
    world.look(1, hinted=False)
    world.drop(1)
    world.settle()
    for job in world.jobs.values():
        (state,) = [state for key, state in job.logs().items() if key.topic == "orders" and key.broker == 1]
        assert state.appended_bytes == sum(each.bytes for each in orders.replicas[1].written())
        assert not any(state.skipped_bytes)
