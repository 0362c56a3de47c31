"""What is left for each group, counted by consuming it; and what Kafka's own tool says of all groups."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import run_tool
from tests.broker.lab import Commit, Consumed, Ends, Lab
from tests.limits import SECONDS

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Of one group in one partition. ``committed`` and ``uncommitted`` are what came to a consumer of that isolation."""

    commit: Commit
    ends: Ends
    committed: Consumed
    uncommitted: Consumed

    @property
    def key(self) -> tuple[str, str, int]:
        return self.commit.group, self.commit.topic, self.commit.partition


def consumed(lab: Lab) -> list[Left]:
    """Of all groups but share groups, in partitions that have a leader; nothing may be appended meanwhile."""
    ends = lab.ends()
    commits = [each for each in lab.commits() if each.lag < 0 and (each.topic, each.partition) in ends]
    offsets = [(each.topic, each.partition, each.offset) for each in commits]
    counts = [lab.consume(isolation, offsets) for isolation in (COMMITTED, UNCOMMITTED)]
    assert lab.ends() == ends, "a log has grown while it was read"
    return [
        Left(commit=commit, ends=ends[commit.topic, commit.partition], committed=committed, uncommitted=uncommitted)
        for commit, committed, uncommitted in zip(commits, *counts, strict=True)
    ]


def leading(kafka: Kafka, topics: Iterable[str]) -> list[Path]:
    """The directories of the leaders of these topics' partitions."""
    found = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=SECONDS).topics
    leaders = {f"{topic}-{number}": state.leader for topic in topics for number, state in found[topic].partitions.items()}
    return [
        path for node in kafka.brokers for log_dir in node.log_dirs for path in log_dir.iterdir() if leaders.get(path.name) == node.node_id
    ]


def described(kafka: Kafka) -> str:
    """What kafka-consumer-groups prints of all groups' offsets."""
    return run_tool("groups", "--bootstrap-server", kafka.bootstrap, "--describe", "--all-groups", "--offsets")
