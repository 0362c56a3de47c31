"""Committed offsets that an admin client moves while the coordinators of their groups move, too: each counts once, as a consumer counts."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from streaming.cluster.consumers.group_moves import SETTLED_MS
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.view.family import EVERYTHING
from streaming.common.settings import Settings
from streaming.kafka.formats.names import OFFSETS_TOPIC, coordinator_partition
from tests.broker.clients import create_topic
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import run_tool
from tests.broker.lab import Lab, lab
from tests.broker.moving_groups import await_replicas
from tests.limits import SECONDS
from tests.worlds.group_job import STOPPED_AFTER_MS, reported_by_job

TOPIC, GROUP = "orders", "billing"
_COORDINATORS = 4

Moves = Counter[str]
"""Records by direction."""


@dataclass
class Watched:
    """A cluster, and a job that looks at it now and then, each time with new agents."""

    kafka: Kafka
    clients: Lab
    directory: Path
    done: Moves = field(default_factory=Counter)
    looks: int = 0

    def __post_init__(self) -> None:
        self.tracker = GroupTracker(EVERYTHING, STOPPED_AFTER_MS)
        self.admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})

    def look(self, later_ms: int = 0) -> Moves:
        """Look, and say what is counted by now."""
        self.looks += 1
        settings = Settings(server_properties=tuple(node.properties for node in self.kafka.brokers))
        at_ms = time.time_ns() // 1_000_000 + later_ms
        reported_by_job(self.kafka.log_dirs, self.directory / f"journal{self.looks}", at_ms, self.tracker, settings)
        found: Moves = Counter()
        for name, amount in self.tracker.finish().moved.amounts.items():
            assert (str(name.kind), amount.offsets) == ("admin", 0)
            found["skipped" if name.forwards else "rewound"] += amount.records
        return found

    def move(self, before: int, offset: int) -> None:
        """Kafka's tool moves the offset of a group without members."""
        where = ("--bootstrap-server", self.kafka.bootstrap, "--group", GROUP, "--topic", f"{TOPIC}:0")
        run_tool("groups", *where, "--reset-offsets", "--to-offset", str(offset), "--execute")
        least, most = (self.clients.consume("read_committed", [(TOPIC, 0, each)])[0].records for each in sorted((before, offset)))
        self.done["skipped" if offset > before else "rewound"] += least - most

    @property
    def coordinator(self) -> int:
        """The broker that coordinates the group."""
        found = self.admin.list_topics(OFFSETS_TOPIC, timeout=SECONDS).topics[OFFSETS_TOPIC]
        leader: int = found.partitions[coordinator_partition(GROUP, _COORDINATORS)].leader
        return leader


@pytest.fixture
def watched(kafka_cluster: Kafka, tmp_path: Path) -> Iterator[Watched]:
    """Three brokers, one of which may be killed, and a group that has read a part of a log with transactions, and has left."""
    kafka = kafka_cluster
    if kafka.down:
        kafka.start(*kafka.down)
    with lab(kafka.bootstrap, tmp_path / "lab.log") as clients:
        create_topic(kafka.bootstrap, TOPIC)
        for number in range(6):
            with clients.transaction(f"writer {number}", commit=number % 2 == 0):
                clients.produce(TOPIC, 0, [[(None, 20, None)] * 7], transaction=f"writer {number}")
        clients.commit(GROUP, "classic", [(TOPIC, 0, 5)])
        clients.ask("leave", group=GROUP)
        await_replicas(kafka, "all replicas are in sync")
        yield Watched(kafka, clients, tmp_path)


def test_a_move_counts_once_over_elections_and_restarts_of_agents(watched: Watched) -> None:
    assert watched.look() == {}
    watched.move(5, 40)
    assert not any(watched.look().values())
    gone = watched.coordinator
    watched.kafka.kill(gone)
    watched.kafka.until(lambda: watched.coordinator not in (gone, -1), "another broker coordinates the group")
    await_replicas(watched.kafka, "the others lead")
    watched.look()
    watched.move(40, 12)
    watched.look()
    watched.kafka.start(gone)
    await_replicas(watched.kafka, "all of them are in sync")
    watched.look()
    assert watched.look(SETTLED_MS) == watched.done
    watched.kafka.terminate(watched.coordinator)
    await_replicas(watched.kafka, "the others lead again")
    assert watched.look(2 * SETTLED_MS) == watched.done
    assert watched.done == {"skipped": 2 + 7 + 7, "rewound": 7 + 7}, "without markers and aborted records"
