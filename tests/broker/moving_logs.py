"""Topics whose logs grow all the time, plainly and in transactions that are committed or aborted; that get partitions, lose records, are
deleted and come back under the same name. Their leaders change meanwhile, and replicas move to other brokers and log dirs.
"""

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from confluent_kafka import KafkaException, Producer

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.listing_json import (
    ALL_ROWS,
    PARTITIONS_PATH,
    TRANSACTIONS_PATH,
    PartitionPage,
    PartitionRow,
    TransactionPage,
    TransactionRow,
)
from streaming.common.settings import Settings
from streaming.terminal.offline.everything import read_everything
from tests.broker.clients import producer
from tests.broker.coordinator_answers import JUST_DELETED, NONE, OLD_DATA, PATIENCE_MS, WINDOW, Answers, Key
from tests.broker.group_comparing import page_at
from tests.broker.kafka import Kafka, Node
from tests.broker.lab import Lab
from tests.broker.moving_jobs import JOB, LOG_DIRS, LOOKING, Comparison, Job, asking, list_of, meanwhile

_MEASURES = ("log start", "high watermark", "last stable offset", "open transactions", "last producer in one")
_MOST_PARTITIONS = 5
_TOPICS: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "kept": (3, {}),
    "expired": (3, {"segment.ms": "8000", "retention.ms": "10000"}),
    "compacted": (3, {"cleanup.policy": "compact", "segment.ms": "5000", "min.cleanable.dirty.ratio": "0.01"}),
    "strict": (3, {"min.insync.replicas": "2"}),
    "twice": (2, {}),
    "single": (1, {}),
}
"""How many replicas they have, and their configuration."""

_STEP_SECONDS = (2.0, 3.0)
"""Between two changes of a topic: longer than between two questions to a leader, so that no offset is missed."""

_QUIET_SECONDS = 3.0
"""Before a topic is removed: markers of a transaction are written after its client was answered, and what is there then is asked once."""

_MOVE_SECONDS = (5.0, 10.0)
_PATIENCE_SECONDS = 10.0


class LeaderAnswers(Answers):
    """What leaders answer of their partitions; the first of a key is what was asked for, one of the measures."""

    def __init__(self, clients: Lab) -> None:
        super().__init__(clients, [f"{topic}-{number}" for topic in _TOPICS for number in range(_MOST_PARTITIONS)])

    def _offsets(self) -> Mapping[str, Mapping[Key, int]]:
        """Kafka 4 may answer with a last stable offset below the log start, where a transaction began before that; Kafka 3 does not."""
        rows = self._clients.ask("ends_of", topics=[*_TOPICS], most=_MOST_PARTITIONS, patience_ms=PATIENCE_MS)
        found = {}
        for log, values in rows.items():
            topic, _, number = log.rpartition("-")
            if values:
                values[2] = max(values[2], values[0])
            found[log] = {(what, topic, int(number)): value for what, value in zip(_MEASURES, values, strict=False)}
        return found


@dataclass(slots=True)
class _Topic:
    """One, and who writes to it. ``open``: the producers whose transactions are open."""

    name: str
    chance: random.Random
    partitions: int = 2
    plain: Producer | None = None
    transactional: dict[int, Producer] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)


def end_transaction(client: Producer, *, commit: bool, seconds: float) -> None:
    """Commits or aborts what is open."""
    end = client.commit_transaction if commit else client.abort_transaction
    end(seconds)


class MovingLogs:
    """The clients. Each topic changes on a thread of its own, one thing at a time.

    Args:
        asking: for what leaders answer.
        working: for what changes topics and logs.
    """

    def __init__(self, kafka: Kafka, asking: Lab, working: Lab, seed: int) -> None:
        self._kafka, self._working = kafka, working
        self._turn, self._ended = threading.Lock(), threading.Event()
        self._topics = [_Topic(name, random.Random(seed + number)) for number, name in enumerate(_TOPICS)]
        self._moves = random.Random(seed - 1)
        self.answers = LeaderAnswers(asking)

    @contextmanager
    def running(self) -> Iterator[None]:
        """From the beginning to the end of the body, logs grow and move."""
        for topic in self._topics:
            self._create(topic)
        changes = [partial(self._change, each) for each in self._topics]
        with meanwhile([*changes, self._move, partial(asking, self.answers.ask, self._ended)], self._ended, 2 * _PATIENCE_SECONDS):
            yield

    def _work(self, do: str, **request: object) -> None:
        """It may not be done: leaders may be moving."""
        with self._turn, suppress(AssertionError):
            if not self._ended.is_set():
                self._working.ask(do, **request)

    def _create(self, topic: _Topic) -> None:
        copies, configs = _TOPICS[topic.name]
        self._work("create", topic=topic.name, partitions=topic.partitions, copies=copies, configs=configs)

    def _change(self, topic: _Topic) -> None:
        steps: dict[Callable[[_Topic], None], int] = {
            self._produce: 30,
            self._produce_in_transaction: 25,
            self._end_transaction: 25,
            self._delete_records: 8,
            self._expand: 3,
            self._come_back: 3,
        }
        while not self._ended.wait(topic.chance.uniform(*_STEP_SECONDS)):
            (step,) = topic.chance.choices([*steps], [*steps.values()])
            try:
                step(topic)
            except KafkaException:  # a leader is moving, or the topic has just been made anew
                topic.plain = None
                topic.transactional.clear()
                topic.open.clear()

    def _send(self, topic: _Topic, client: Producer) -> None:
        """A batch to each of some partitions."""
        for number in topic.chance.sample(range(topic.partitions), topic.chance.randint(1, topic.partitions)):
            for _ in range(topic.chance.randint(1, 20)):
                client.produce(topic.name, b"x" * 100, str(topic.chance.randrange(10)), number)
        client.flush(_PATIENCE_SECONDS)

    def _produce(self, topic: _Topic) -> None:
        topic.plain = topic.plain or producer(self._kafka.bootstrap)
        self._send(topic, topic.plain)

    def _produce_in_transaction(self, topic: _Topic) -> None:
        number = topic.chance.randrange(3)
        if number not in topic.transactional:
            topic.transactional[number] = producer(self._kafka.bootstrap, transactional_id=f"{topic.name}-{number}")
            topic.transactional[number].init_transactions(_PATIENCE_SECONDS)
        if number not in topic.open:
            topic.transactional[number].begin_transaction()
            topic.open.add(number)
        self._send(topic, topic.transactional[number])

    def _end_transaction(self, topic: _Topic) -> None:
        if not topic.open:
            return
        number = topic.chance.choice(sorted(topic.open))
        topic.open.remove(number)
        end_transaction(topic.transactional[number], commit=topic.chance.random() < 0.7, seconds=_PATIENCE_SECONDS)

    def _delete_records(self, topic: _Topic) -> None:
        number = topic.chance.randrange(topic.partitions)
        before = topic.chance.choice((-1, topic.chance.randrange(300)))
        self._work("truncate", topic=topic.name, partition=number, before=before)

    def _expand(self, topic: _Topic) -> None:
        topic.partitions = min(topic.partitions + 1, _MOST_PARTITIONS)
        self._work("expand", topic=topic.name, partitions=topic.partitions)

    def _come_back(self, topic: _Topic) -> None:
        """At once, so that perhaps nobody asks between, or later."""
        self._ended.wait(_QUIET_SECONDS)
        self.answers.until_asked(time.monotonic())
        self._work("remove", topic=topic.name)
        for number in range(_MOST_PARTITIONS):
            self._is_nowhere(topic, number)
        if topic.chance.random() < 0.5:
            self._ended.wait(topic.chance.uniform(5, 20))
        topic.partitions = topic.chance.randint(1, 3)
        self._create(topic)

    def _is_nowhere(self, topic: _Topic, number: int) -> None:
        for measure in _MEASURES:
            self.answers.committed((measure, topic.name, number), NONE)

    def _move(self) -> None:
        """Another broker is to lead, at times one that has no copy yet; or a replica is to lie in a log dir, where it may be already."""
        chance = self._moves
        while not self._ended.wait(chance.uniform(*_MOVE_SECONDS)):
            topic = chance.choice(self._topics)
            number = chance.randrange(topic.partitions)
            brokers = chance.sample([each.node_id for each in self._kafka.brokers], _TOPICS[topic.name][0])
            if chance.random() < 0.5:
                self._work("move", topic=topic.name, partition=number, replicas=brokers)
                if len(brokers) == 1:  # an agent may find the only replica a moment after another has lost it
                    self._is_nowhere(topic, number)
            else:
                log_dir = chance.choice(self._kafka.broker(brokers[0]).log_dirs)
                self._work("rehouse", topic=topic.name, partition=number, broker=brokers[0], log_dir=str(log_dir))


class LogComparison(Comparison):
    """What jobs with an agent beside each broker, and the log dirs of all that run and of all, say of partitions."""

    def compare(self, running: Iterable[Job]) -> None:
        """Each of them once."""
        for job in running:
            began = time.monotonic()
            page = PartitionPage.decode(list_of(job, PARTITIONS_PATH))
            opened = TransactionPage.decode(list_of(job, TRANSACTIONS_PATH))
            away = {row.topic for row in page.rows if row.broker in self.kafka.down}
            stated = {
                key: (value, reason or (JUST_DELETED if key[1] in away else ""))
                for key, (value, reason) in _stated(page.rows, opened.rows).items()
            }
            if max(value for series, value in page_at(job.url).items() if series.name == "segtail_tail_lag_seconds") > WINDOW - LOOKING:
                stated = dict.fromkeys(stated, (NONE, OLD_DATA))
            self._add((JOB, len(job.agents)), f"the job of {job.agents}", began, stated, page.doubts)
        up = [node for node in self.kafka.brokers if node.node_id not in self.kafka.down]
        self._compare_log_dirs(tuple(up))
        if len(up) < len(self.kafka.brokers):
            self._compare_log_dirs(self.kafka.brokers)

    def _compare_log_dirs(self, some: tuple[Node, ...]) -> None:
        began = time.monotonic()
        log_dirs = open_log_dirs([each for node in some for each in node.log_dirs])
        state = read_everything(log_dirs, Settings(late_after=timedelta()), None)
        page, opened = state.partitions(f"limit={ALL_ROWS}"), state.transactions(f"limit={ALL_ROWS}")
        who = f"brokers {[node.node_id for node in some]}"
        self._add((LOG_DIRS, len(some)), who, began, _stated(page.rows, opened.rows), page.doubts)


def _stated(rows: Sequence[PartitionRow], opened: Sequence[TransactionRow]) -> dict[Key, tuple[int, str]]:
    """What there is of each measure, or that it is not known."""
    found = {}
    for row in rows:
        producers = [each.producer_id for each in opened if (each.topic, each.partition) == (row.topic, row.partition)]
        values = (row.log_start_offset, row.high_watermark, row.last_stable_offset, row.open_transactions)
        for measure, value in zip(_MEASURES, values, strict=False):
            found[measure, row.topic, row.partition] = (value, "" if value >= 0 else f"{measure} not known")
        found[_MEASURES[-1], row.topic, row.partition] = (max(producers, default=NONE), "")
    return found


def knows_logs(job: Job) -> bool:
    """Whether a job lists what there is, with what is known of it."""
    answered = list_of(job, PARTITIONS_PATH)
    return any(row.topic in _TOPICS and row.high_watermark >= 0 for row in PartitionPage.decode(answered).rows) if answered else False
