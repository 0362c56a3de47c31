"""The job on a Spark cluster, fed by agents beside three real brokers: its sums are the brokers' own, whatever befalls one of them."""

import pytest

from tests.broker.clients import CODECS, create_topic, producer, send
from tests.certificates import TOKEN
from tests.cluster.world import Counted, SpreadJob

pytestmark = pytest.mark.spark

TOPIC = "spread"
PARTITIONS = 6


def produce(world: SpreadJob, *, batches: int = 1) -> None:
    client = producer(world.kafka.bootstrap, "lz4")
    for partition in range(PARTITIONS):
        send(client, TOPIC, partition, batches, 10 + partition)


def test_a_spread_job_counts_what_the_brokers_have_through_every_mishap(world: SpreadJob) -> None:
    """One story, because its stage takes a minute to set up."""
    create_topic(world.kafka.bootstrap, TOPIC, partitions=PARTITIONS)
    for codec in CODECS:
        create_topic(world.kafka.bootstrap, f"spread-{codec}")
        send(producer(world.kafka.bootstrap, codec), f"spread-{codec}", 0, 2, 20)
    produce(world, batches=3)
    world.until("the job exports", lambda: world.counted())
    world.until_counted(1)
    world.until("leaders are exported", lambda: world.exported_from(TOPIC) == world.leaders(TOPIC))
    assert set(world.leaders(TOPIC).values()) == {1, 2, 3}
    assert [world.up(number) for number in (1, 2, 3)] == [1, 1, 1]
    no_secret_shows(world)

    world.agents[3].kill()
    world.until("the agent is down", lambda: world.up(3) == 0)
    led_elsewhere = [partition for partition, leader in world.leaders(TOPIC).items() if leader != 3]
    before = world.counted()
    produce(world)
    world.until("the others' numbers go on", lambda: grown(before, world.counted(), led_elsewhere))
    world.agents[3] = world.start_agent(3)
    world.until("the agent is back", lambda: world.up(3) == 1)
    world.until_counted(1)

    world.kafka.kill(2)
    world.until("leaders have moved", lambda: 2 not in world.leaders(TOPIC).values())
    produce(world)
    world.until_counted(1)
    world.until("the new leaders are exported", lambda: world.exported_from(TOPIC) == world.leaders(TOPIC))
    world.kafka.start(2)

    world.kafka.kill(3)
    world.agents[3].kill()
    world.until("leaders have moved", lambda: 3 not in world.leaders(TOPIC).values())
    produce(world)
    world.until_counted(1)
    world.until("what it led is exported from others", lambda: world.exported_from(TOPIC) == world.leaders(TOPIC))
    assert world.up(3) == 0
    skipped = {series: value for series, value in world.job.page().items() if series.name == "segtail_skipped_bytes_total"}
    assert skipped
    assert not any(skipped.values())
    no_secret_shows(world)

    world.job.terminate()
    assert world.job.wait() == 0
    world.agents[1].terminate()
    assert world.agents[1].wait() == 0
    assert "agent stops" in world.agents[1].stated.splitlines()[-1]


def grown(before: Counted, now: Counted, partitions: list[int]) -> bool:
    return bool(now) and all(now[TOPIC, each] != before[TOPIC, each] for each in partitions)


def no_secret_shows(world: SpreadJob) -> None:
    """Neither in what everybody may see of the processes, nor in what is logged, nor in a checkpoint."""
    token, key = TOKEN.encode(), b"PRIVATE KEY"
    seen = world.commands()
    assert TOKEN not in seen
    assert "never-shown" not in seen
    for stated in (
        world.job.stated,
        *(agent.stated for agent in world.agents.values()),
        *(path.read_text() for path in world.spark.stated),
    ):
        assert TOKEN not in stated
        assert "never-shown" not in stated
    for where in ("checkpoint", "state"):
        written = world.written(world.directory / where)
        assert token not in written
        assert key not in written
        assert b"never-shown" not in written
