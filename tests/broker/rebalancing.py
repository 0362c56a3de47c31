"""Members of groups that come, go, crash and come back, with the generation that Kafka's client has, and that Kafka's own tool shows."""

import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from tests.broker.kafka_tools import run_tool
from tests.limits import SECONDS
from tests.processes import until

EAGER, COOPERATIVE = {"partition.assignment.strategy": "range"}, {"partition.assignment.strategy": "cooperative-sticky"}
NEWER = {"group.protocol": "consumer"}

_CLASSIC_TIMES = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
_POLL_SECONDS = 0.02
_MAGIC_CHARS = len(b"CGMDv2:")


class Members:
    """The members of one group, by client id, all of them polled by whoever waits."""

    def __init__(self, bootstrap: str, group: str, topic: str, settings: Mapping[str, object], partitions: int) -> None:
        self.group, self.topic, self.partitions = group, topic, partitions
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 500,
            **({} if "group.protocol" in settings else _CLASSIC_TIMES),
            **settings,
        }
        self.there: dict[str, Consumer] = {}

    def join(self, *names: str, static: bool = False) -> None:
        """Some members join, and the group comes to rest."""
        for name in names:
            self.there[name] = self._member(name, static=static)
        self.rest()

    def leave(self, *names: str) -> None:
        """Some members leave, as when they are closed; static ones do not, and the group does not learn of that."""
        for name in names:
            self.there.pop(name).close()
        self.rest()

    def rest(self) -> None:
        """Wait until the members have all partitions, of one generation, and that stays so."""
        if self.there:
            until(f"{self.group} is at rest", self._rests, saw=lambda: {name: self._of(name) for name in self.there})

    def generation(self) -> int:
        """That of its members, -1 where they do not agree; of the newer protocol their epoch."""
        found = {generation for generation, _ in map(self._of, self.there)}
        return found.pop() if len(found) == 1 else -1

    def close(self) -> None:
        """All members leave."""
        for member in self.there.values():
            member.close()
        self.there.clear()

    def _member(self, name: str, *, static: bool) -> Consumer:
        member = Consumer({**self._settings, "client.id": name, **({"group.instance.id": f"static-{name}"} if static else {})})
        member.subscribe([self.topic])
        return member

    def _rests(self) -> bool:
        states = []
        for _ in range(2):  # a cooperative group is at rest between its two rounds, too
            end = time.monotonic() + 0.6
            while time.monotonic() < end:
                for member in self.there.values():
                    member.poll(_POLL_SECONDS)
            states.append(sorted((name, *self._of(name)) for name in self.there))
        return states[0] == states[1] and self.generation() >= 0 and sum(count for _, _, count in states[0]) == self.partitions

    def _of(self, name: str) -> tuple[int, int]:
        """The generation of a member, and how many partitions it has."""
        member = self.there[name]
        (generation,) = struct.unpack_from("<i", member.consumer_group_metadata(), _MAGIC_CHARS)
        return generation, len(member.assignment())


@contextmanager
def members(bootstrap: str, group: str, topic: str, settings: Mapping[str, object], partitions: int) -> Iterator[Members]:
    """A group, whose members leave at the end."""
    found = Members(bootstrap, group, topic, settings, partitions)
    try:
        yield found
    finally:
        found.close()


def add_partitions(bootstrap: str, topic: str, partitions: int) -> None:
    """The topic gets new partitions, so that it has so many."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(SECONDS)


def described_epoch(bootstrap: str, group: str, tool: str = "groups") -> int:
    """The group epoch that Kafka's own tool shows of a group of a newer protocol."""
    lines = run_tool(tool, "--bootstrap-server", bootstrap, "--describe", "--group", group, "--state", "--verbose").splitlines()
    head = next(line.split() for line in lines if "EPOCH" in line)
    row = next(line.split() for line in lines if line.startswith(f"{group} "))
    return int(row[len(row) - len(head) + head.index("GROUP-EPOCH")])
