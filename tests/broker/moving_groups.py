"""Groups of every kind that commit all the time: plainly, with members, in transactions that stay open or are aborted, as share groups;
groups that are deleted and come back, that are reset, whose offsets are deleted or expire. And coordinators that move meanwhile.
"""

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from tests.broker.clients import create_topic
from tests.broker.coordinator_answers import WINDOW, Answers
from tests.broker.kafka import Kafka
from tests.broker.lab import Lab
from tests.broker.moving_jobs import asking, meanwhile

TOPIC = "moved"

BROKER_SETTINGS: Mapping[str, object] = {
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 5000,
    "offsets.topic.segment.bytes": 1 << 20,
}
"""So that offsets expire, and segments of coordinators' logs roll and are compacted."""

COMMIT_SECONDS = (2.0, 3.0)
"""Between two commits of a group: longer than between two questions to its coordinator, so that no commit is missed."""

_HELD_SECONDS = (0.0, 6.0)
_ABSENT_SECONDS = (0.5 * WINDOW, 2 * WINDOW)
_LAPSED_SECONDS = 90.0
_MOVE_SECONDS = (8.0, 16.0)
_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many groups of each kind, and the partitions that each of them reads."""

    plain: int = 4
    transactional: int = 4
    classic: int = 2
    consumer: int = 2
    reborn: int = 2
    reset: int = 1
    forgetting: int = 1
    lapsing: int = 1
    sharing: int = 1
    partitions: int = 3


class MovingGroups:
    """The clients. Each group commits on a thread of its own.

    Args:
        asking: for what coordinators answer.
        working: for what only Java's clients can do.
    """

    def __init__(self, bootstrap: str, asking: Lab, working: Lab, seed: int, sizes: Sizes = Sizes()) -> None:
        self._bootstrap, self._working, self._seed = bootstrap, working, seed
        self._partitions = sizes.partitions
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._turn = threading.Lock()
        self._ended = threading.Event()
        self._produced = 0
        kinds: dict[str, tuple[int, Callable[[str, random.Random], None]]] = {
            "plain": (sizes.plain, self._commit),
            "transactional": (sizes.transactional, self._transact),
            "classic": (sizes.classic, self._consume),
            "consumer": (sizes.consumer, self._consume),
            "reborn": (sizes.reborn, self._come_back),
            "reset": (sizes.reset, self._reset),
            "forgetting": (sizes.forgetting, self._forget),
            "lapsing": (sizes.lapsing, self._lapse),
        }
        self._work = {f"{kind}-{number}": work for kind, (count, work) in kinds.items() for number in range(count)}
        self._sharers = [f"sharing-{number}" for number in range(sizes.sharing)]
        self.answers = Answers(asking, self._work, self._sharers)

    @contextmanager
    def running(self) -> Iterator[None]:
        """From the beginning to the end of the body, groups commit and coordinators move."""
        create_topic(self._bootstrap, TOPIC, self._partitions)
        work = {"moving": self._move} | dict.fromkeys(self._sharers, self._share) | self._work
        works = [partial(each, name, random.Random(self._seed + number)) for number, (name, each) in enumerate(work.items())]
        beside = self._produce, partial(asking, self.answers.ask, self._ended)
        with meanwhile([*beside, *works], self._ended, 2 * _PATIENCE_SECONDS):
            yield

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "acks": "all"})
        while not self._ended.wait(0.1):
            for partition in range(self._partitions):
                producer.produce(TOPIC, b"x" * 100, partition=partition)
            if not producer.flush(_PATIENCE_SECONDS):
                self._produced += 1

    def _work_by_java(self, do: str, **request: object) -> None:
        """It may not be done: coordinators may be moving. Python's client ends the process at times where a broker goes meanwhile."""
        with self._turn, suppress(AssertionError):
            self._working.ask(do, **request)

    def _offsets(self, chance: random.Random) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, each, max(self._produced - chance.randrange(3), 0)) for each in range(self._partitions)]

    def _consumer(self, group: str) -> Consumer:
        return Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "enable.auto.commit": False})

    def _commit_times(self, consumer: Consumer, chance: random.Random, times: int) -> None:
        for _ in range(times):
            if self._ended.wait(chance.uniform(*COMMIT_SECONDS)):
                return
            with suppress(KafkaException):  # the coordinator is moving
                consumer.commit(offsets=self._offsets(chance), asynchronous=False)

    def _commit(self, group: str, chance: random.Random) -> None:
        consumer = self._consumer(group)
        while not self._ended.is_set():
            self._commit_times(consumer, chance, 1)
        consumer.close()

    def _come_back(self, group: str, chance: random.Random) -> None:
        """A group that is deleted, and commits again a while after that."""
        while not self._ended.is_set():
            consumer = self._consumer(group)
            self._commit_times(consumer, chance, 6)
            consumer.close()
            self._ended.wait(chance.uniform(*COMMIT_SECONDS))
            self._work_by_java("delete", group=group)
            self._ended.wait(chance.uniform(*_ABSENT_SECONDS))

    def _reset(self, group: str, chance: random.Random) -> None:
        """A group that is set back to the beginning, and to the end again."""
        consumer = self._consumer(group)
        while not self._ended.is_set():
            self._commit_times(consumer, chance, 3)
            self._ended.wait(chance.uniform(*COMMIT_SECONDS))
            self._work_by_java("reset", group=group, offsets=[(TOPIC, each, 0) for each in range(self._partitions)])
        consumer.close()

    def _forget(self, group: str, chance: random.Random) -> None:
        """A group of which the offset in one partition is deleted."""
        consumer = self._consumer(group)
        while not self._ended.is_set():
            self._commit_times(consumer, chance, 3)
            self._ended.wait(chance.uniform(*COMMIT_SECONDS))
            self._work_by_java("forget", group=group, topic=TOPIC, partition=chance.randrange(self._partitions))
            self._ended.wait(chance.uniform(*_ABSENT_SECONDS))
        consumer.close()

    def _lapse(self, group: str, chance: random.Random) -> None:
        """A group whose offsets expire before it commits again."""
        while not self._ended.is_set():
            consumer = self._consumer(group)
            self._commit_times(consumer, chance, 3)
            consumer.close()
            self._ended.wait(_LAPSED_SECONDS)

    def _transact(self, group: str, chance: random.Random) -> None:
        consumer = self._consumer(group)
        producer = self._transactional(group)
        while not self._ended.wait(chance.uniform(*COMMIT_SECONDS)):
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
        """A member, of a protocol that the name of its group begins with."""

        def committed(_: KafkaError | None, offsets: list[TopicPartition]) -> None:
            """Of one whose answer was lost, the client knows no more than that it was sent."""
            for each in offsets:
                if each.offset >= 0:
                    self.answers.committed((group, each.topic, each.partition), each.offset)

        often = {"auto.commit.interval.ms": 2500, "auto.offset.reset": "earliest", "group.protocol": group.split("-")[0]}
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "on_commit": committed, **often})
        consumer.subscribe([TOPIC])
        while not self._ended.is_set():
            consumer.poll(0.2)
        consumer.close()

    def _share(self, group: str, chance: random.Random) -> None:
        while not self._ended.wait(chance.uniform(*COMMIT_SECONDS)):
            self._work_by_java("share", group=group, topic=TOPIC)

    def _move(self, _: str, chance: random.Random) -> None:
        """Another broker is to lead a coordinators' log; at times only two have it, and the third gets it anew later."""
        while not self._ended.wait(chance.uniform(*_MOVE_SECONDS)):
            try:
                topics = self._admin.list_topics(timeout=_PATIENCE_SECONDS).topics
            except KafkaException:  # a broker is just ending
                continue
            topic = chance.choice([each for each in ("__consumer_offsets", "__transaction_state") if each in topics])
            partition = chance.choice([*topics[topic].partitions])
            brokers = chance.sample((1, 2, 3), 2 if chance.random() < 0.2 else 3)
            self._work_by_java("move", topic=topic, partition=partition, replicas=brokers)


def await_replicas(kafka: Kafka, what: str) -> None:
    """Until every partition with a replica on a broker that runs has a leader, and all of these replicas are in sync."""

    def others() -> list[tuple[str, int, list[int], list[int]]]:
        topics = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=_PATIENCE_SECONDS).topics
        states = [(name, state) for name, topic in topics.items() for state in topic.partitions.values()]
        up = [(name, state, {*state.replicas} - {*kafka.down}) for name, state in states]
        kept = [(name, state, both) for name, state, both in up if both]
        return [(name, state.leader, state.replicas, state.isrs) for name, state, both in kept if {*state.isrs} != both or state.leader < 0]

    kafka.until(lambda: not others(), what, others)
