"""Members of groups that come, go and come back, with the generation that Kafka's client has, and that Kafka's own tool shows."""

import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from tests.broker.clients import create_topic
from tests.broker.kafka_tools import run_tool
from tests.limits import SECONDS
from tests.processes import until

EAGER, COOPERATIVE = {"partition.assignment.strategy": "range"}, {"partition.assignment.strategy": "cooperative-sticky"}
NEWER = {"group.protocol": "consumer"}

SETTINGS = {
    f"group.{kind}.{each}": value
    for kind in ("consumer", "share")
    for each, value in (("heartbeat.interval.ms", 500), ("min.heartbeat.interval.ms", 500))
}
"""For brokers whose members of newer groups hear within half a second what is new."""

PARTITIONS = 6

_CLASSIC_TIMES = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
_POLL_SECONDS = 0.02
_QUIET_SECONDS = 0.8
_MAGIC_CHARS = len(b"CGMDv2:")

NOTHING = "nothing"
"""What was done to members by what raised a generation alone."""


@dataclass(frozen=True, slots=True)
class Step:
    """``done``: "join" or "leave", by members with these names, "return" for static ones that came back, else `NOTHING`.

    ``generation``: of the members afterwards, -1 where there are none.
    """

    done: str
    names: Sequence[str]
    generation: int


@dataclass(slots=True)
class Members:
    """The members of one group, by client id, all of them polled by whoever waits."""

    bootstrap: str
    group: str
    topic: str
    settings: Mapping[str, object]
    partitions: int = PARTITIONS
    there: dict[str, Consumer] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def join(self, *names: str) -> None:
        """Some members join, and the group comes to rest."""
        self._begin(*names)
        self._end("join", *names)

    def leave(self, *names: str) -> None:
        """Some members leave, as when they are closed."""
        for name in names:
            self.there.pop(name).close()
        self._end("leave", *names)

    def come_back(self, name: str) -> None:
        """A static member is closed, and is there again before its session ends: the group does not learn that it was away."""
        self.there.pop(name).close()
        self._begin(name)
        self._end("return", name)

    def add_partitions(self, count: int) -> None:
        """The topic gets some more."""
        self.partitions += count
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_partitions([NewPartitions(self.topic, self.partitions)])[self.topic].result(SECONDS)
        self._end(NOTHING)

    def deploy(self) -> None:
        """Each member is stopped, and started again, one after the other."""
        for name in list(self.there):
            self.leave(name)
            self.join(name)

    def generation(self) -> int:
        """That of its members, -1 where they do not agree; of the newer protocol their epoch."""
        found = {generation for generation, _ in map(self._of, self.there)}
        return found.pop() if len(found) == 1 else -1

    def close(self) -> None:
        """All members leave."""
        for member in self.there.values():
            member.close()
        self.there.clear()

    def _begin(self, *names: str) -> None:
        static = bool(self.settings.get("static"))
        for name in names:
            own = {"client.id": name, **({"group.instance.id": f"static-{name}"} if static else {})}
            self.there[name] = member = Consumer({**self._shared, **own})
            member.subscribe([self.topic])

    @property
    def _shared(self) -> dict[str, object]:
        settings = {name: value for name, value in self.settings.items() if name != "static"}
        return {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 500,
            **({} if "group.protocol" in settings else _CLASSIC_TIMES),
            **settings,
        }

    def rest(self) -> None:
        """Wait until the members have all partitions, of one generation, and that stays so."""
        if self.there:
            until(f"{self.group} is at rest", self._rests, saw=lambda: {name: self._of(name) for name in self.there})

    def _end(self, done: str, *names: str) -> None:
        self.rest()
        self.steps.append(Step(done, names, self.generation()))

    def _rests(self) -> bool:
        """Whether members have all partitions, of one generation, and that stays so: a cooperative group has two after each other."""
        states = []
        for _ in range(2):
            end = time.monotonic() + _QUIET_SECONDS
            while time.monotonic() < end:
                for member in self.there.values():
                    member.poll(_POLL_SECONDS)
            states.append([(name, *self._of(name)) for name in sorted(self.there)])
        return states[0] == states[1] and self.generation() >= 0 and sum(count for _, _, count in states[0]) == self.partitions

    def _of(self, name: str) -> tuple[int, int]:
        """The generation of a member, and how many partitions it has."""
        member = self.there[name]
        (generation,) = struct.unpack_from("<i", member.consumer_group_metadata(), _MAGIC_CHARS)
        return generation, len(member.assignment())


@contextmanager
def members(bootstrap: str, group: str, settings: Mapping[str, object]) -> Iterator[Members]:
    """A group on a topic of its name, whose members leave at the end."""
    create_topic(bootstrap, group, PARTITIONS)
    found = Members(bootstrap, group, group, settings)
    try:
        yield found
    finally:
        found.close()


def play(bootstrap: str, *, older: bool = False) -> dict[str, list[Step]]:
    """Groups of each protocol to which all of that happens; what was done to each. Before 4.0 there are classic ones alone."""
    groups: dict[str, Mapping[str, object]] = {"eager": EAGER, "cooperative": COOPERATIVE, "static": {**EAGER, "static": True}}
    if not older:
        groups |= {"newer": NEWER, "newer-static": {**NEWER, "static": True}}
    steps = {}
    for name, settings in groups.items():
        with members(bootstrap, name, settings) as group:
            group.join("a", "b")
            if settings.get("static"):
                for _ in range(3):
                    group.come_back("b")
            else:
                group.join("c")
                group.deploy()
            group.add_partitions(2)
            if not settings.get("static"):
                for _ in range(4):  # one of them crashes again and again
                    group.leave("b")
                    group.join("b")
                group.leave(*group.there)
            steps[name] = group.steps
    return steps


def described_epoch(bootstrap: str, group: str, tool: str = "groups") -> int:
    """The group epoch that Kafka's own tool shows of a group of a newer protocol."""
    lines = run_tool(tool, "--bootstrap-server", bootstrap, "--describe", "--group", group, "--state", "--verbose").splitlines()
    head = next(line.replace("(ID)", "").split() for line in lines if "GROUP-EPOCH" in line)
    row = next(line for line in lines if line.startswith(f"{group} ")).split()
    return int(row[head.index("GROUP-EPOCH") - len(head)])
