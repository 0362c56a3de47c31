"""Groups that commit all the time: plainly, with members, in transactions, some held open; and what their coordinators answer.

An answer of segtail is right if the coordinator gave the same one in the ten seconds before, or gives it at that moment.
"""

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests.broker.clients import create_topic
from tests.broker.kafka import Kafka
from tests.broker.lab import Lab
from tests.group_answers import detailed
from tests.processes import until

Key = tuple[str, str, int]

TOPIC, PARTITIONS = "moved", 3
WINDOW = 10.0
"""An answer may be as old as this, in seconds."""

_COMMIT_SECONDS = (2.0, 3.0)
"""Between two commits of a group: longer than between two questions to its coordinator, so that no commit is missed."""
_ASK_SECONDS = 0.2
_MOST_APART = 2.0
"""If two answers are further apart, one between them may have been missed."""

_HELD_SECONDS = (0.0, 6.0)
_PATIENCE_SECONDS = 10.0
_REMEMBERED = 3 * WINDOW


@dataclass(frozen=True, slots=True)
class _Answer:
    asked: float
    answered: float
    offset: int


class Answers:
    """What coordinators answer about all groups, asked again and again on one thread."""

    def __init__(self, clients: Lab) -> None:
        self._clients = clients
        self._given: dict[Key, deque[_Answer]] = {}
        self._asked: deque[tuple[float, float]] = deque()
        self._lock = threading.Lock()

    def ask(self) -> None:
        """Ask about all groups once."""
        asked = time.monotonic()
        try:
            commits = self._clients.commits()
        except AssertionError:  # a coordinator is moving
            return
        answered = time.monotonic()
        with self._lock:
            self._asked.append((asked, answered))
            while self._asked[0][1] < asked - _REMEMBERED:
                self._asked.popleft()
            for each in commits:
                given = self._given.setdefault((each.group, each.topic, each.partition), deque())
                given.append(_Answer(asked, answered, each.offset))
                while given[0].answered < asked - _REMEMBERED:
                    given.popleft()

    def given(self, since: float, until: float) -> Mapping[Key, set[int]]:
        """By partition, what was answered from ``since`` to ``until``; those that have been committed for all that time.

        None if a coordinator did not answer for a moment, in which others may have taken commits that nobody has asked for.
        """
        with self._lock:
            some = [times for times in self._asked if times[1] >= since and times[0] <= until]
            begins = [since, *(answered for _, answered in some)]
            if not some or any(answered - before > _MOST_APART for before, (_, answered) in zip(begins, some, strict=False)):
                return {}
            return {
                key: {each.offset for each in given if each.answered >= since and each.asked <= until}
                for key, given in self._given.items()
                if given and given[0].answered < since <= given[-1].answered
            }

    @property
    def last_asked(self) -> float:
        """When they were last asked and have answered."""
        with self._lock:
            return self._asked[-1][0] if self._asked else -1.0


@dataclass(slots=True)
class Counts:
    """``differ``: sentences. ``absent``: by reason; ``elsewhere``: those of which no log is current here."""

    equal: int = 0
    differ: list[str] = field(default_factory=list)
    absent: Counter[str] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)

    @property
    def compared(self) -> int:
        return self.equal + len(self.differ) + self.absent.total() + self.elsewhere.total()

    @property
    def answered(self) -> float:
        """The share of those that are answered, where the log of the coordinator is current."""
        return self.equal / max(self.equal + self.absent.total(), 1)

    def add(self, who: str, stated: Mapping[Key, tuple[int, str]], given: Mapping[Key, set[int]], doubts: Iterable[str]) -> None:
        """Count one answer of segtail about all groups: committed offsets, -1 for none, and why something is not known."""
        doubt = "; ".join(doubts)
        for key, right in given.items():
            offset, reason = stated.get(key, (-1, "" if not doubt else "doubt"))
            if offset in right:
                self.equal += 1
            elif offset >= 0 and doubt:
                self.elsewhere["another answer, with a doubt"] += 1
            elif offset >= 0 or not reason:
                self.differ.append(f"{who}: {key}: {offset} {reason!r}, and not of {sorted(right)}")
            else:
                (self.elsewhere if reason in ("doubt", "coordinator_not_observed") else self.absent)[reason] += 1


class MovingGroups:
    """The clients. Each commits on a thread of its own."""

    def __init__(self, bootstrap: str, clients: Lab, seed: int, *, plain: int = 6, transactional: int = 4, members: int = 2) -> None:
        self._bootstrap = bootstrap
        self._seed = seed
        self._ended = threading.Event()
        self._produced = 0
        self._work: dict[str, Callable[[str, random.Random], None]] = {f"plain-{number}": self._commit for number in range(plain)}
        self._work |= {f"transactional-{number}": self._transact for number in range(transactional)}
        self._work |= {f"member-{number}": self._consume for number in range(members)}
        self.answers = Answers(clients)

    @contextmanager
    def running(self) -> Iterator[None]:
        """From the beginning to the end of the body, groups commit."""
        create_topic(self._bootstrap, TOPIC, PARTITIONS)
        threads = [threading.Thread(target=work, daemon=True) for work in (self._produce, self._ask)]
        threads += [
            threading.Thread(target=work, args=(group, random.Random(self._seed + number)), daemon=True)
            for number, (group, work) in enumerate(self._work.items())
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join(_PATIENCE_SECONDS)

    def until_asked(self, at: float) -> None:
        """Wait until all coordinators were asked after a moment."""
        until("coordinators are asked", lambda: self.answers.last_asked >= at)

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "acks": "all"})
        while not self._ended.wait(0.1):
            for partition in range(PARTITIONS):
                producer.produce(TOPIC, b"x" * 100, partition=partition)
            if not producer.flush(_PATIENCE_SECONDS):
                self._produced += 1

    def _ask(self) -> None:
        while not self._ended.wait(_ASK_SECONDS):
            self.answers.ask()

    def _offsets(self, chance: random.Random) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, each, max(self._produced - chance.randrange(3), 0)) for each in range(PARTITIONS)]

    def _commit(self, group: str, chance: random.Random) -> None:
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "enable.auto.commit": False})
        while not self._ended.wait(chance.uniform(*_COMMIT_SECONDS)):
            try:
                consumer.commit(offsets=self._offsets(chance), asynchronous=False)
            except KafkaException:  # the coordinator is moving
                continue
        consumer.close()

    def _transact(self, group: str, chance: random.Random) -> None:
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "enable.auto.commit": False})
        producer = self._transactional(group)
        while not self._ended.wait(chance.uniform(*_COMMIT_SECONDS)):
            try:
                producer.begin_transaction()
                producer.send_offsets_to_transaction(self._offsets(chance), consumer.consumer_group_metadata(), _PATIENCE_SECONDS)
                self._ended.wait(chance.uniform(*_HELD_SECONDS))
                if chance.random() < 0.7:
                    producer.commit_transaction(_PATIENCE_SECONDS)
                else:
                    producer.abort_transaction(_PATIENCE_SECONDS)
            except KafkaException:
                producer = self._transactional(group)
        consumer.close()

    def _transactional(self, group: str) -> Producer:
        while True:
            producer = Producer({"bootstrap.servers": self._bootstrap, "transactional.id": f"of {group}"})
            try:
                producer.init_transactions(_PATIENCE_SECONDS)
            except KafkaException:
                if self._ended.wait(1):
                    return producer
            else:
                return producer

    def _consume(self, group: str, _: random.Random) -> None:
        often = {"auto.commit.interval.ms": 2500, "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, **often})
        consumer.subscribe([TOPIC])
        while not self._ended.is_set():
            consumer.poll(0.2)
        consumer.close()


def compare_all(moving: MovingGroups, kafka: Kafka, counts: Counts) -> None:
    """The log dirs of each broker that runs, of each two and of all, once."""
    running = [node for node in kafka.brokers if node.node_id not in kafka.down]
    for some in (each for count in range(1, len(running) + 1) for each in combinations(running, count)):
        compare_log_dirs(moving, f"brokers {[node.node_id for node in some]}", [each for node in some for each in node.log_dirs], counts)


def compare_log_dirs(moving: MovingGroups, who: str, log_dirs: Iterable[Path], counts: Counts) -> None:
    """What log dirs say now, against the coordinators."""
    began = time.monotonic()
    answer = detailed(read_groups(open_log_dirs(log_dirs), (), Settings(), time.time_ns() // 1_000_000))
    moving.until_asked(time.monotonic())
    partitions = [(group.summary.group, each) for group in answer.groups for each in group.partitions]
    stated = {(group, each.topic, each.partition): (each.committed, each.unknown) for group, each in partitions}
    counts.add(who, stated, moving.answers.given(began - WINDOW, time.monotonic()), answer.doubts)
