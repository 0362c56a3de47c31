"""What three real nodes' disks say when one is killed, stopped and started, a disk is replaced, and the quorum is lost."""

import shutil
import time
from pathlib import Path

import pytest

from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.status_messages import BrokerStatus, LogDirStatus
from streaming.cluster.view.broker_status import broker_phases, unwatched_log_dirs
from streaming.kafka.formats.metadata_records import Phase
from tests.broker.clients import create_topic
from tests.broker.kafka import Kafka
from tests.broker.observed import Observed

IDLE_SECONDS = 5
_LOOKS = 20


class Three:
    """An observer beside each node."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        self.observed = [Observed(node) for node in kafka.nodes]

    def statuses(self) -> list[BrokerStatus]:
        return [each.look()[0] for each in self.observed]

    def log_dirs(self, number: int) -> dict[str, LogDirStatus]:
        return {Path(each.log_dir).name: each for each in self.observed[number - 1].look()[1]}

    def phase(self, number: int) -> Phase | None:
        return {each.broker: each.phase for each in broker_phases(self.statuses())}.get(number)

    def newest(self) -> BrokerStatus:
        return max(self.statuses(), key=lambda each: each.metadata_offset)

    def registered(self, number: int) -> Registered:
        """What the metadata log alone says of a broker."""
        return next(each for each in self.newest().registered if each.broker == number)

    def until_phase(self, number: int, phase: Phase) -> None:
        self.kafka.until(lambda: self.phase(number) is phase, f"broker {number} is {phase}", self.statuses)

    def until_fenced(self, number: int) -> None:
        self.kafka.until(lambda: self.registered(number).fenced, f"broker {number} is fenced", lambda: self.registered(number))

    def grown_ms(self) -> int:
        """When a copy grew last."""
        return max(each.appended_ms for each in self.statuses())

    def idle_seconds(self) -> float:
        """For how long the copy that grew last has stood still."""
        return time.time() - self.grown_ms() / 1000


@pytest.fixture(scope="module")
def three(kafka_cluster: Kafka) -> Three:
    create_topic(kafka_cluster.bootstrap, "brokers.live", partitions=1)
    return Three(kafka_cluster)


def test_every_copy_grows_all_the_time_and_every_log_dir_is_watched(three: Three) -> None:
    statuses = three.statuses()
    assert {each.broker: each.phase for each in broker_phases(statuses)} == dict.fromkeys((1, 2, 3), Phase.RUNNING)
    before = three.grown_ms()
    three.kafka.until(lambda: min(each.appended_ms for each in three.statuses()) > before, "every copy grows", three.statuses)
    watched = {each.broker: frozenset(each.log_dirs) for each in statuses}
    assert {len(each) for each in watched.values()} == {2}
    assert unwatched_log_dirs(statuses, watched, {}) == {1: 0, 2: 0, 3: 0}
    one_of_two = Observed(three.kafka.nodes[0], three.kafka.nodes[0].log_dirs[:1])
    status, _ = one_of_two.look()
    assert len(status.log_dirs) == 2, "the registration lists the one that nobody watches"


def test_a_log_dir_without_replicas_is_known_to_be_empty(three: Three) -> None:
    """The one topic has one partition, so one of the two log dirs holds it and the other none; both are registered."""
    three.kafka.until(
        lambda: {each.hosts for each in three.log_dirs(1).values()} == {True, False}, "one log dir is empty", lambda: three.log_dirs(1)
    )
    assert {each.registered for each in three.log_dirs(1).values()} == {True}


def test_a_broker_that_is_stopped_in_an_orderly_way_is_not_down(three: Three) -> None:
    """One that leads nothing is fenced without a record of its shutdown: the metadata log alone takes it for one that is down."""
    leading = three.newest().led[0].broker  # of the one partition
    for number, recorded in ((1 + leading % 3, Phase.DOWN), (leading, Phase.STOPPING)):
        seen = set()
        three.kafka.terminate(number)
        three.until_phase(number, Phase.STOPPING)
        three.until_fenced(number)
        for _ in range(_LOOKS):
            three.kafka.pause()
            seen.add(three.phase(number))
        assert seen == {Phase.STOPPING}
        assert three.registered(number).phase == recorded
        three.kafka.start(number)
        three.until_phase(number, Phase.RUNNING)


def test_a_broker_that_is_killed_is_down_also_for_an_agent_that_starts_then(three: Three) -> None:
    three.kafka.kill(3)
    three.until_phase(3, Phase.DOWN)
    three.until_fenced(3)  # those that were there have seen its process end before its session was over
    anew = [Observed(node).look()[0] for node in three.kafka.nodes]
    assert {each.broker: each.phase for each in broker_phases(anew)}[3] is Phase.DOWN


def test_without_a_majority_of_controllers_no_copy_grows(three: Three) -> None:
    three.kafka.kill(2, 3)
    three.kafka.until(lambda: three.idle_seconds() > IDLE_SECONDS, "no copy grows any more", three.idle_seconds)
    stood_ms = three.grown_ms()
    three.kafka.start(2)
    three.kafka.until(lambda: three.grown_ms() > stood_ms, "a controller is elected", three.statuses)


def test_a_replaced_disk_is_used_again_without_a_restart_of_its_observer(three: Three) -> None:
    """The directory.id that is compared with the registration is that of the new disk."""
    node = three.kafka.nodes[2]
    name = next(name for name, each in three.log_dirs(3).items() if name != "d0")
    before = three.observed[2].look()[0].log_dirs
    three.kafka.kill(3)
    three.until_phase(3, Phase.DOWN)
    shutil.rmtree(node.directory / name)
    assert not three.log_dirs(3)[name].up
    (node.directory / name).mkdir()
    three.kafka.format(3)
    three.kafka.start(3)
    three.until_phase(3, Phase.RUNNING)
    three.kafka.until(
        lambda: three.log_dirs(3)[name].up and three.log_dirs(3)[name].registered is True,
        "the new disk is registered",
        lambda: three.log_dirs(3),
    )
    assert set(three.observed[2].look()[0].log_dirs) != set(before)
