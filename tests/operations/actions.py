"""What an administrator, a disk or a producer does to a cluster, and what is waited for before it counts as done."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    PartitionMetadata,
    ResourceType,
)

from tests.broker.kafka import Kafka
from tests.broker.oracle import run_tool
from tests.broker.wire import ProducerId, Wire
from tests.limits import SECONDS
from tests.processes import until

_UNTHROTTLED = 1_000_000_000
"""Bytes a second, more than any disk writes: a throttle can be changed while replicas are moved, and goes when they have arrived."""

Partitions = dict[tuple[str, int], PartitionMetadata]
Replicas = Mapping[tuple[str, int], Sequence[int]]


def partitions(kafka: Kafka) -> Partitions:
    """What a broker that runs says of all of them."""
    topics = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=SECONDS).topics
    return {(name, number): state for name, topic in topics.items() for number, state in topic.partitions.items()}


def await_partitions(kafka: Kafka, what: str, holds: Callable[[PartitionMetadata], bool], topic: str | None = None) -> None:
    """Until it holds of all partitions, or of those of one topic."""
    until(
        what,
        lambda: all(holds(state) for (name, _), state in partitions(kafka).items() if topic in (None, name)),
        saw=lambda: {key: (state.leader, state.isrs) for key, state in partitions(kafka).items() if topic in (None, key[0])},
    )


def await_replicated(kafka: Kafka) -> None:
    """Until every replica is in sync and every partition is led."""
    await_partitions(kafka, "all replicas are in sync", lambda state: state.leader >= 0 and set(state.isrs) == set(state.replicas))


def create_placed(kafka: Kafka, topic: str, replicas: Sequence[int], config: Mapping[str, str]) -> None:
    """A topic of one partition on these brokers, the first one of which leads it."""
    new = NewTopic(topic, num_partitions=1, replica_assignment=[list(replicas)], config=dict(config))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})  # one that nobody holds ends before it has its answer
    admin.create_topics([new])[topic].result(SECONDS)
    await_partitions(kafka, f"{topic} is led", lambda state: state.leader >= 0, topic)


def set_config(kafka: Kafka, topic: str, name: str, value: str | None) -> None:
    """Of a topic; None takes it away."""
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(name, value or "", incremental_operation=operation)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)


def elect_uncleanly(kafka: Kafka, topic: str, partition: int) -> None:
    """A leader among the replicas that run, whatever they lack."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.elect_leaders(ElectionType.UNCLEAN, [TopicPartition(topic, partition)]).result(SECONDS)


def replaced(kafka: Kafka, old: int, new: int) -> Replicas:
    """Where the replicas of one broker are to go, in its place."""
    wanted = {key: [new if each == old else each for each in state.replicas] for key, state in partitions(kafka).items()}
    return {key: replicas for key, replicas in wanted.items() if new in replicas}


def reassign(kafka: Kafka, wanted: Replicas, scratch: Path, *, bytes_a_second: int | None = None) -> None:
    """Begin to move replicas."""
    _reassignment(kafka, wanted, scratch, "--execute", *(() if bytes_a_second is None else ("--throttle", str(bytes_a_second))))


def await_reassigned(kafka: Kafka, wanted: Replicas, scratch: Path) -> None:
    """Until all are where they should be. What is throttled no longer gets there, however much has gathered meanwhile."""
    _reassignment(kafka, wanted, scratch, "--execute", "--additional", "--throttle", str(_UNTHROTTLED))
    until("the replicas are moved", lambda: _moved(kafka, wanted))
    _reassignment(kafka, wanted, scratch, "--verify")  # which takes the throttle away


def unregister(kafka: Kafka, broker: int) -> None:
    """The cluster forgets a broker that is down for good."""
    run_tool("cluster", "unregister", "--bootstrap-server", kafka.bootstrap, "--id", str(broker))


def hang(kafka: Kafka, topic: str, partition: int, records: int) -> int:
    """A transaction that no coordinator knows. Returns its first offset."""
    leader = partitions(kafka)[topic, partition].leader
    with Wire(kafka.broker(leader).port) as wire:
        now_ms = time.time_ns() // 1_000_000
        return wire.produce("ghost", ProducerId(777_777, 0), topic, partition, 0, records, now_ms=now_ms, implicit=False)


def abort(kafka: Kafka, topic: str, partition: int, first_offset: int) -> None:
    """As the page of a hanging transaction says it."""
    where = ("--topic", topic, "--partition", str(partition), "--start-offset", str(first_offset))
    run_tool("transactions", "--bootstrap-server", kafka.bootstrap, "abort", *where)


def freeze_disk(log_dir: Path, *, frozen: bool) -> None:
    """A log dir in which nothing can be made or renamed any more, as on a file system that went read-only. Needs root."""
    subprocess.run(["chattr", "+i" if frozen else "-i", str(log_dir)], check=True)


def replace_disk(log_dir: Path) -> None:
    """An empty one in its place."""
    freeze_disk(log_dir, frozen=False)
    shutil.rmtree(log_dir)
    log_dir.mkdir()


def _moved(kafka: Kafka, wanted: Replicas) -> bool:
    now = partitions(kafka)
    return all(set(now[key].replicas) == set(now[key].isrs) == set(replicas) for key, replicas in wanted.items())


def _reassignment(kafka: Kafka, wanted: Replicas, scratch: Path, *arguments: str) -> None:
    moves = [{"topic": topic, "partition": number, "replicas": list(replicas)} for (topic, number), replicas in wanted.items()]
    scratch.mkdir(exist_ok=True)
    plan = scratch / "reassignment.json"
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    run_tool("reassign", "--bootstrap-server", kafka.bootstrap, "--reassignment-json-file", str(plan), *arguments)
