"""What agents beside real brokers tell of partitions: a host that dies, elections clean and unclean, replicas that move.

Each broker has an agent of its own, without a process; what they publish is folded as a job does. There is no Spark in it.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from streaming.broker.protocol.cluster_messages import AffectedPartition, PartitionCounts, Reassignment, TopicCounts
from streaming.broker.protocol.status_messages import BrokerStatus
from streaming.cluster.view.broker_status import newest
from streaming.rules.log_state import LogState
from streaming.rules.shard import state_rows
from tests.agents import Agent, Reader
from tests.broker.clients import create_topic, producer, send
from tests.broker.kafka import Kafka
from tests.events import Shard
from tests.exposition.reading import page, samples
from tests.limits import SECONDS
from tests.operations import actions
from tests.processes import until
from tests.view.rows import new_table

_REMAINING = "segtail_partition_reassignment_remaining_"


class Hosts:
    """Brokers with an agent each, and what a job folds of the agents."""

    def __init__(self, directory: Path, kafka: Kafka) -> None:
        self.brokers = [node.node_id for node in kafka.brokers]
        self.kafka = kafka
        self.agents: dict[int, Agent] = {}
        self.fold = Shard()
        self.table = new_table()
        self._directory = directory
        self._readers: dict[int, Reader] = {}

    def up(self, *brokers: int) -> None:
        """Start the agents of these."""
        for broker in brokers:
            agent = self.agents[broker] = Agent(*self.kafka.broker(broker).log_dirs, name=f"a{broker}")
            before, reader = self._readers.get(broker), Reader(agent)
            self._readers[broker] = reader
            if before is not None:
                reader.counted = before.counted
            reader.register(resumed=before is not None)

    def down(self, broker: int) -> None:
        """Its agent is no more."""
        self.agents.pop(broker).close()

    def read(self) -> None:
        """The agents look around, and the job reads what they publish."""
        for broker, agent in self.agents.items():
            agent.look()
            plan = self._readers[broker].plan()
            if plan.seq >= 0:
                changes = self.fold.fold(*self._readers[broker].apply(plan))
                if changes:
                    self.table.apply(pa.Table.from_batches([state_rows(changes)]))

    def remaining(self, topic: str, broker: int) -> dict[str, float]:
        """Bytes and seconds that a broker has to copy still, as a page says now, and whatever else it says of moves."""
        self.table.set_context(reassignments=self.counts().reassignments)
        found = samples(page(self.table, now=time.time()))
        kinds = {name.removeprefix(_REMAINING): value for (name, labels), value in found.items() if name.startswith(_REMAINING)}
        assert all(dict(labels)["broker"] == str(broker) for (name, labels) in found if name.startswith(_REMAINING))
        return kinds

    def size(self, topic: str, broker: int) -> int:
        """Bytes of the segments of its partition 0 there."""
        dirs = self.kafka.broker(broker).log_dirs
        return sum(file.stat().st_size for log_dir in dirs for file in (log_dir / f"{topic}-0").glob("*.log"))

    def wait(self, what: str, look: Callable[[], bool]) -> None:
        """Read on until something is so."""

        def is_so() -> bool:
            self.read()
            return look()

        until(what, is_so, saw=self.counts)

    def counts(self) -> PartitionCounts:
        """By the newest copy of the metadata among agents that are up."""
        statuses: list[BrokerStatus] = [status for agent in self.agents.values() for status in agent.service.status().broker_statuses]
        found = newest(statuses)
        assert found is not None
        return PartitionCounts.unpack(found.counts)

    def topic(self, name: str) -> TopicCounts | None:
        """Its counts, without the id that each topic has of its own."""
        return next((replace(each, topic_id="") for each in self.counts().topics if each.topic == name), None)

    def affected(self, topic: str) -> list[AffectedPartition]:
        return [each for each in self.counts().affected if each.topic == topic]

    def log(self, topic: str, broker: int) -> LogState:
        (found,) = (state for state in self.fold.states.values() if (state.topic, state.broker) == (topic, broker))
        return found

    def replicas(self, topic: str) -> tuple[int, list[int], list[int]]:
        """Leader, replicas and in-sync replicas of its partition 0, as brokers tell."""
        client = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        # a broker that has not read of the topic yet tells of it without partitions
        reported = until(f"a broker tells of {topic}", lambda: client.list_topics(topic, timeout=SECONDS).topics[topic].partitions.get(0))
        return reported.leader, list(reported.replicas), sorted(reported.isrs)


@pytest.fixture
def hosts(kafka_with_quorum: Kafka, tmp_path: Path) -> Iterator[Hosts]:
    """All of them up, and everything replicated."""
    if kafka_with_quorum.down:
        kafka_with_quorum.start(*kafka_with_quorum.down)
    actions.await_replicated(kafka_with_quorum)
    made = Hosts(tmp_path, kafka_with_quorum)
    try:
        yield made
    finally:
        for agent in made.agents.values():
            agent.close()


def test_a_throttled_reassignment_shows_what_is_left_to_copy_and_nothing_is_missing_meanwhile(hosts: Hosts, tmp_path: Path) -> None:
    kafka = hosts.kafka
    create_topic(kafka.bootstrap, "moving", replicas=1)
    old, _, _ = hosts.replicas("moving")
    new = next(broker for broker in hosts.brokers if broker != old)
    hosts.up(*hosts.brokers)
    send(producer(kafka.bootstrap), "moving", 0, 40, 100, value_bytes=1000)
    hosts.wait("it is read", lambda: hosts.log("moving", old).log_end_offset == 4000)
    whole = hosts.size("moving", old)
    assert hosts.remaining("moving", new) == {}

    actions.reassign(kafka, {("moving", 0): [new]}, tmp_path, bytes_a_second=200_000)
    moving = Reassignment(topic="moving", partition=0, leader=old, adding=[new], removing=[old])
    seen: list[dict[str, float]] = []

    def copied() -> bool:
        assert hosts.topic("moving") == TopicCounts(topic="moving", partitions=1)  # neither under-replicated nor anything else
        if hosts.counts().reassignments == [moving]:
            before = hosts.size("moving", new)
            hosts.read()
            reported = hosts.remaining("moving", new)
            if not reported:
                return False  # it has moved meanwhile
            assert whole - hosts.size("moving", new) - 110_000 <= reported["bytes"] <= whole - before + 1_200_000  # within a fetch
            seen.append(reported)
        return bool(seen) and hosts.counts().reassignments == []

    hosts.wait("it has moved", copied)
    left = [reported["bytes"] for reported in seen]
    assert left == sorted(left, reverse=True)
    assert 0 < left[len(left) // 2] < whole
    assert any(reported.get("seconds", 0) > 0 for reported in seen)
    assert hosts.remaining("moving", new) == {}


def test_a_host_that_dies_takes_partitions_offline_and_an_unclean_election_loses_what_was_produced(hosts: Hosts) -> None:
    kafka = hosts.kafka
    create_topic(kafka.bootstrap, "lossy", replicas=2, config={"unclean.leader.election.enable": "true", "min.insync.replicas": "1"})
    old, replicas, _ = hosts.replicas("lossy")
    (new,) = set(replicas) - {old}
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic("alone", num_partitions=1, replica_assignment=[[new]])])["alone"].result(SECONDS)
    hosts.up(*hosts.brokers)
    for topic in ("lossy", "alone"):
        send(producer(kafka.bootstrap), topic, 0, 3, 10)
    hosts.wait("both replicas are read", lambda: all(hosts.log("lossy", broker).log_end_offset == 30 for broker in replicas))
    hosts.wait("what is on one alone is read", lambda: hosts.log("alone", new).log_end_offset == 30)
    kafka.kill(new)
    hosts.wait("one is in sync", lambda: [each.in_sync for each in hosts.affected("lossy")] == [[old]])
    hosts.wait("what was on it alone is offline", lambda: [each.problem for each in hosts.affected("alone")] == ["offline"])
    epoch = hosts.log("alone", new).leader_epoch
    send(producer(kafka.bootstrap), "lossy", 0, 5, 10)
    hosts.wait("the high watermark is written down", lambda: hosts.log("lossy", old).high_watermark == 80)

    kafka.kill(old)
    hosts.down(old)
    hosts.wait(
        "it is offline by the other copies",
        lambda: hosts.topic("lossy") == TopicCounts(topic="lossy", partitions=1, offline=1, under_min_isr=1, under_replicated=1),
    )
    (affected,) = hosts.affected("lossy")
    assert (affected.problem, affected.leader, affected.electable) == ("offline", -1, [old])

    kafka.start(new)
    hosts.wait("the election is counted", lambda: hosts.log("lossy", new).unclean_elections == 1)
    assert ("lossy", 0) in [(each.topic, each.partition) for each in hosts.counts().recovering]
    hosts.wait("it leads what it has alone", lambda: hosts.log("alone", new).leader_epoch > epoch and hosts.affected("alone") == [])
    send(producer(kafka.bootstrap), "alone", 0, 1, 5)
    hosts.wait("that is read on", lambda: hosts.log("alone", new).log_end_offset == 35)
    send(producer(kafka.bootstrap), "lossy", 0, 1, 5)
    for _ in range(2):
        hosts.down(new)  # the metadata is read again: the same election
        hosts.up(new)
        hosts.read()
    state = hosts.log("lossy", new)
    assert (state.unclean_elections, state.unclean_from, state.unclean_lost_upper, state.unclean_lost_acknowledged) == (1, old, 50, 50)

    hosts.up(old)
    kafka.start(old)
    hosts.wait("the old leader has cut its log off", lambda: hosts.log("lossy", old).log_end_offset == 35)
    hosts.wait("both are in sync", lambda: hosts.affected("lossy") == [])
    assert (hosts.log("lossy", old).truncations, hosts.log("lossy", old).truncated_committed) == (1, 50)
    state = hosts.log("lossy", new)
    assert (state.unclean_elections, state.unclean_lost_upper, state.unclean_lost_acknowledged) == (1, 50, 50)
    alone = hosts.log("alone", new)
    assert (alone.unclean_elections, alone.truncations) == (0, 0), "a crash of the only replica is no unclean election"


def test_an_eligible_leader_replica_is_elected_without_loss(hosts: Hosts) -> None:
    kafka = hosts.kafka
    create_topic(kafka.bootstrap, "safe", replicas=3, config={"min.insync.replicas": "2"})
    leader, replicas, _ = hosts.replicas("safe")
    first, second = (broker for broker in replicas if broker != leader)
    hosts.up(*hosts.brokers)
    send(producer(kafka.bootstrap), "safe", 0, 3, 10)
    hosts.wait("all replicas are read", lambda: all(hosts.log("safe", broker).log_end_offset == 30 for broker in replicas))
    kafka.kill(first)
    hosts.wait("two are in sync", lambda: [each.in_sync for each in hosts.affected("safe")] == [sorted({leader, second})])
    kafka.stop(second)  # cleanly: it stays eligible
    hosts.wait("one is in sync", lambda: [each.in_sync for each in hosts.affected("safe")] == [[leader]])
    assert hosts.affected("safe")[0].problem == "under_min_isr"
    assert second in hosts.affected("safe")[0].electable
    kafka.kill(leader)
    hosts.wait("it is offline", lambda: [each.problem for each in hosts.affected("safe")] == ["offline"])
    assert hosts.affected("safe")[0].electable == sorted({leader, second})
    epoch = hosts.log("safe", second).leader_epoch
    kafka.start(second)
    hosts.wait("it leads", lambda: hosts.log("safe", second).leader == second and hosts.log("safe", second).leader_epoch > epoch)
    hosts.read()
    assert hosts.log("safe", second).unclean_elections == 0
    assert "safe" not in {each.topic for each in hosts.counts().recovering}
