"""What left a log dir while it was away and nobody knew its logs any more: jobs that had them learn it once it is back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.model.world import BrokersAndJobs


@pytest.fixture
def world(tmp_path: Path) -> Iterator[BrokersAndJobs]:
    """A journal begins without a log dir, of which the job has a log that is deleted."""
    made = BrokersAndJobs(tmp_path)
    for broker in made.agents:
        made.look(broker, hinted=True)
    made.settle()
    orders = made.cluster.partitions["orders", 0]
    assert orders.replicas[1].disk is made.cluster.brokers[1].disks[-1]  # the one that is taken away
    made.lose_journal(1)
    made.delete(orders)
    made.take_away(1, "unmounted")
    made.settle()
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("how", ["the agent runs on", "the agent starts anew"])
def test_a_log_that_only_the_lost_journal_knew_is_gone_for_the_job(world: BrokersAndJobs, how: str) -> None:
    if how == "the agent starts anew":
        world.stop(1, killed=True)
    world.bring_back()
    world.settle()
    assert not [key for key, state in world.jobs["first"].logs().items() if key.topic == "orders" and not state.departed]
