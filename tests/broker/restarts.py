"""Random states of three brokers, each judged before a restart is made: whether what was said would happen is what happens.

A state is a broker that hangs, was killed or was stopped, and producers that have just written with acks=1. Then one of the brokers that
serve is judged by the log dirs, and stopped or killed. While it is away every partition is asked who leads it, and whether it takes a
record with acks=all. At the end each partition has all records that were acknowledged, unless it was named in a reason.
"""

import os
import random
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from streaming.broker.disk.log_dir_search import open_below
from streaming.broker.protocol.restart_json import SAFE, UNSAFE, RestartRow
from streaming.common.settings import Settings
from streaming.terminal.offline.everything import read_everything
from tests.broker.clients import producer
from tests.broker.kafka import CONTROLLER_ID, Kafka
from tests.broker.wire import Wire
from tests.limits import SECONDS
from tests.operations.actions import await_replicated, partitions
from tests.processes import until

_REFUSES_MS = 4_000
"""A producer that is refused tries again for so long."""

_LOOKS = 100

KINDS = {1: (1,), 2: (1, 2), 3: (1, 2, 3)}
"""min.insync.replicas of the topics, by how many replicas they have."""

ROBUST = {2: (1,), 3: (1, 2)}
"""Those that can do with one broker less."""

STATES = ALL_UP, KILLED, STOPPED, HANGS, MOVES, NO_CONTROLLER = (
    "all up",
    "one killed",
    "one stopped",
    "one hangs",
    "replicas move to one that hangs",
    "no controller",
)
"""What is so when a broker is judged."""

Partition = tuple[str, int]


@dataclass
class Outcomes:
    """What was said and what was seen. ``problems``: where these differ."""

    states: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    problems: list[str] = field(default_factory=list)


class Restarts:
    """A cluster of brokers beside a controller of its own, with topics of every kind."""

    def __init__(self, kafka: Kafka, seed: int, kinds: Mapping[int, tuple[int, ...]], outcomes: Outcomes | None = None) -> None:
        self._kafka = kafka
        self._chance = random.Random(seed)
        self._admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "socket.timeout.ms": 2000})  # one that hangs is asked, too
        self._acknowledged: Counter[Partition] = Counter()
        self._least: dict[str, int] = {}
        self.outcomes = Outcomes() if outcomes is None else outcomes
        ids = [node.node_id for node in kafka.brokers]
        made = []
        for replicas, every in kinds.items():
            for least in every:
                name = f"r{replicas}-min{least}"
                self._least[name] = least
                places = [self._chance.sample(ids, replicas) for _ in ids]
                made.append(NewTopic(name, len(ids), replica_assignment=places, config={"min.insync.replicas": str(least)}))
        for future in self._admin.create_topics(made).values():
            future.result(SECONDS)
        self._partitions = [(name, number) for name in self._least for number in range(len(ids))]
        await_replicated(kafka)
        self._write("all", self._partitions)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for future in self._admin.delete_topics([*self._least]).values():
            future.result(SECONDS)

    def run(self, states: int, of: Sequence[str] = STATES) -> Outcomes:
        """So many states, each with one restart."""
        for _ in range(states):
            self._one_state(self._chance.choice(of))
        return self.outcomes

    def _one_state(self, first: str) -> None:
        kafka, chance = self._kafka, self._chance
        ids = [node.node_id for node in kafka.brokers]
        other, broker = chance.sample(ids, 2)
        hung = None
        if first == NO_CONTROLLER:
            self._without_controller(broker)
            return
        if first == KILLED:
            kafka.kill(other)
        elif first == STOPPED:
            kafka.stop(other)
        elif first in (HANGS, MOVES):
            hung = self._process(other)
            os.kill(hung, signal.SIGSTOP)
            if first == MOVES:
                self._move(broker, other)
        if hung is not None:
            until(f"broker {other} is seen to hang", lambda: not self._judged(other).running)
        elif first != ALL_UP:
            self._until_left(other)
        led = [each for each, (leader, _) in self._seen().items() if leader >= 0 and leader != other]
        self._write("1", chance.sample(led, len(led) // 2))
        how = chance.choice(["stopped", "killed"])
        state = f"{first}, broker {broker} is {how}"
        self.outcomes.states[f"{first}, {how}"] += 1
        try:
            row = self._restart(broker, how, state)
        finally:
            if hung is not None:
                os.kill(hung, signal.SIGCONT)
            kafka.start(*kafka.down)
            await_replicated(kafka)
        self._check_records(state, {name for each in row.reasons for name in each.partitions})

    def _move(self, broker: int, other: int) -> None:
        """Begin to move replicas of one broker to another; those that hang do not arrive."""
        there = {key: state.replicas for key, state in partitions(self._kafka).items() if key in self._partitions}
        wanted = {
            key: [other if each == broker else each for each in old] for key, old in there.items() if broker in old and other not in old
        }
        some = self._chance.sample(sorted(wanted), min(3, len(wanted)))
        with Wire(self._kafka.broker(broker).port) as wire:
            for topic, number in some:
                wire.reassign(topic, number, wanted[topic, number])

    def _without_controller(self, broker: int) -> None:
        """Nobody takes over what a broker leads, so no restart is made."""
        self.outcomes.states[NO_CONTROLLER] += 1
        self._kafka.kill(CONTROLLER_ID)
        try:
            until("it is doubted that there is a controller", lambda: self._doubts_controller(broker))
        finally:
            self._kafka.start(CONTROLLER_ID)
        until("the controller is seen to be active", lambda: not self._doubts_controller(broker))

    def _doubts_controller(self, broker: int) -> bool:
        return any("there is no active controller" in doubt for doubt in self._judged(broker).doubts)

    def _restart(self, broker: int, how: str, state: str) -> RestartRow:
        before = self._seen()
        row = self._judged(broker)
        self.outcomes.verdicts[row.verdict] += 1
        if row.verdict not in (SAFE, UNSAFE):
            self.outcomes.problems.append(f"{state}: not known, though all log dirs are read: {row.doubts}")
        if how == "stopped":
            self._kafka.stop(broker)
        else:
            self._kafka.kill(broker)
        self._until_left(broker)
        after = self._seen()
        told = {each.code: set(each.partitions) for each in row.reasons}
        offline = {each for each, (leader, _) in after.items() if leader < 0 <= before[each][0] and broker in before[each][1]}
        self._compare(state, "offline", told.get("offline", set()) | told.get("single_replica", set()), offline)
        refused = self._write("all", [each for each, (leader, _) in after.items() if leader >= 0])
        refused = self._write("all", sorted(refused))  # a busy machine refuses nothing: it is only slow
        was_in_sync = {each for each in refused if broker in before[each][1]}
        self._compare(state, "under_min_isr", told.get("under_min_isr", set()), was_in_sync)
        return row

    def _process(self, broker: int) -> int:
        """The id of the process of a broker."""
        properties = str(self._kafka.broker(broker).properties).encode()
        return next(pid for pid in self._kafka.pids if properties in Path(f"/proc/{pid}/cmdline").read_bytes())

    def _compare(self, state: str, what: str, told: set[str], found: set[Partition]) -> None:
        self.outcomes.compared += 1
        seen = {f"{topic}-{number}" for topic, number in found}
        mine = {each for each in told if each.rpartition("-")[0] in self._least}
        if mine != seen:
            self.outcomes.problems.append(f"{state}: {what}: told alone {sorted(mine - seen)}, seen alone {sorted(seen - mine)}")

    def _judged(self, broker: int) -> RestartRow:
        """As the command does it: with a second look where a follower is just copying."""
        state = read_everything(open_below(self._kafka.log_dirs), Settings(), None)
        if before := state.leader_ends():
            self._kafka.pause()
            state = read_everything(open_below(self._kafka.log_dirs), Settings(), None)
        (row,) = state.restart(f"broker={broker}", before).rows
        return row

    def _seen(self) -> dict[Partition, tuple[int, frozenset[int]]]:
        """Leader and replicas in sync of each partition, as brokers tell."""
        topics = self._admin.list_topics(timeout=SECONDS).topics
        states = {(name, number): topics[name].partitions[number] for name, number in self._partitions}
        return {each: (state.leader, frozenset(state.isrs)) for each, state in states.items()}

    def _until_left(self, broker: int) -> None:
        """Until a broker that is away leads nothing, and is in sync alone where no other replica is."""
        until(f"broker {broker} has left", lambda: all(leader != broker for leader, _ in self._seen().values()))
        until(f"broker {broker} is out of sync", lambda: all(broker not in isr or isr == {broker} for _, isr in self._seen().values()))

    def _write(self, acks: str, partitions: Sequence[Partition]) -> set[Partition]:
        """Send a record to each of these. Returns those that did not take it."""
        client = producer(self._kafka.bootstrap, more={"acks": acks, "linger.ms": 0, "message.timeout.ms": _REFUSES_MS})
        refused: set[Partition] = set()

        def delivered(error: object, message: object) -> None:
            of = message.topic(), message.partition()  # type: ignore[attr-defined]
            if error is None:
                self._acknowledged[of] += 1
            else:
                refused.add(of)

        for topic, number in partitions:
            client.produce(topic, b"record", partition=number, on_delivery=delivered)
        client.flush(SECONDS)
        return refused

    def _check_records(self, state: str, lossy: set[str]) -> None:
        """Whether each partition has as many records as were acknowledged, at least: what was refused may be there all the same."""
        lacking = self._lacking()
        for _ in range(_LOOKS):  # a new leader tells its high watermark after its followers have fetched
            if lacking:
                self._kafka.pause()
                lacking = self._lacking()
        for (topic, number), records in lacking.items():
            self._acknowledged[topic, number] -= records
            if f"{topic}-{number}" not in lossy:
                self.outcomes.problems.append(f"{state}: {topic}-{number} has lost {records} records")

    def _lacking(self) -> dict[Partition, int]:
        consumer = Consumer({"bootstrap.servers": self._kafka.bootstrap, "group.id": "ends"})
        ends = {each: consumer.get_watermark_offsets(TopicPartition(*each), timeout=SECONDS) for each in self._partitions}
        consumer.close()
        every = {each: self._acknowledged[each] - (end - first) for each, (first, end) in ends.items()}
        return {each: records for each, records in every.items() if records > 0}
