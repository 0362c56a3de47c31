"""Foretells what retention deletes of many topics of one broker, again and again, and holds it against what the broker's own log says.

Topics differ in what deletes them (time, size, both, DeleteRecords), in how they roll, and in how late their records are stamped.
"""

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests.broker.clients import create_topic
from tests.broker.kafka import Kafka, Node
from tests.broker.observed import now_ms
from tests.broker.retention_checks import LOGGER, Check, checks
from tests.group_answers import detailed
from tests.limits import SECONDS
from tests.processes import until

CHECK_MS = 2_000
BROKER = {"log.initial.task.delay.ms": 500, "log.retention.check.interval.ms": CHECK_MS}
LOGGERS = (LOGGER, "org.apache.kafka.storage.internals.log.UnifiedLog")

_GROUP = "stands-still"
_EVERY_MS = 250
_BATCH = (10, 90)  # records, bytes of each
_SMALL = {"internal.segment.bytes": "6000"}
_CLOCK_MS = 5
"""A broker reads its clock when a check begins, and its log is a moment later."""

_MOVED = re.compile(
    r"^\[(.+?)\] INFO \[UnifiedLog partition=(\S+)-0, .*Incremented log start offset to (\d+) due to (segment deletion|client delete)", re.M
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A topic: its settings, the batches that are there at first, whether it grows then, and how late its records are stamped."""

    limits: Mapping[str, str]
    batches: int = 0
    grows: bool = True
    late_ms: int = 0
    cut: bool = False  # by DeleteRecords, every few seconds


def _kept(*, ms: int = -1, size: int = -1, segments: Mapping[str, str] = _SMALL) -> dict[str, str]:
    return {"retention.ms": str(ms), "retention.bytes": str(size), **segments}


_AGED = {"segment.ms": "3000"}

TOPICS: Mapping[str, Written] = {
    "time-9s": Written(limits=_kept(ms=9_000)),
    "time-17s": Written(limits=_kept(ms=17_000)),
    "time-still": Written(limits=_kept(ms=15_000), batches=40, grows=False),
    "active-still": Written(limits=_kept(ms=12_000, segments={}), batches=5, grows=False),
    "late-within": Written(limits=_kept(ms=15_000), late_ms=6_000),
    "late-beyond": Written(limits=_kept(ms=10_000), late_ms=60_000),
    "late-beyond-one": Written(limits=_kept(ms=10_000, segments={}), late_ms=60_000),
    "ahead": Written(limits=_kept(ms=8_000), late_ms=-4_000),
    "size": Written(limits=_kept(size=40_000)),
    "size-still": Written(limits=_kept(size=12_000), batches=40, grows=False),
    "both": Written(limits=_kept(ms=14_000, size=30_000)),
    "rolls-by-age": Written(limits=_kept(ms=8_000, segments=_AGED)),
    "rolls-late": Written(limits=_kept(ms=11_000, segments=_AGED), late_ms=5_000),
    "cut": Written(limits=_kept(ms=9_000), cut=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What was foretold of the next unread record, ``offset``, at a time: between which times it goes, with how many records.

    ``end``: of the log at that time. What comes later is not foretold.
    """

    topic: str
    made_ms: int
    offset: int
    end: int
    at_ms: int
    latest_ms: int
    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The log start that a topic got, and whether by retention."""

    at_ms: int
    start: int
    by_retention: bool


@dataclass(slots=True)
class Outcome:
    """The forecasts that came to their end; sentences about those that were wrong."""

    judged: list[tuple[Forecast, Deletion]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def latest_error_ms(self) -> int:
        """How long after the earliest time that was foretold the latest deletion came."""
        return max((deletion.at_ms - max(each.at_ms, each.made_ms) for each, deletion in self.judged), default=0)

    def by_topic(self) -> dict[str, int]:
        """How many of each topic were judged."""
        counts: dict[str, int] = defaultdict(int)
        for each, _ in self.judged:
            counts[each.topic] += 1
        return dict(counts)


def deletions(node: Node) -> dict[str, list[Deletion]]:
    """By topic, in order."""
    found: dict[str, list[Deletion]] = defaultdict(list)
    for moment, topic, start, why in _MOVED.findall(node.log.read_text()):
        at = round(datetime.strptime(moment, "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp() * 1000)
        found[topic].append(Deletion(at_ms=at, start=int(start), by_retention=why == "segment deletion"))
    return found


class Writer:
    """Writes batches into topics, one for each step of the clock, however late the machine gets to it."""

    def __init__(self, kafka: Kafka) -> None:
        self._client = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 30_000})
        self._admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        self._begun = time.monotonic()
        self._steps = 0
        self.late: list[tuple[int, int]] = []  # when a batch was written, and how many milliseconds late

    def fill(self) -> None:
        """Write what is there at first."""
        for step in range(max(each.batches for each in TOPICS.values())):
            self._write([topic for topic, each in TOPICS.items() if step < each.batches])
        self._begun = time.monotonic()

    def step(self) -> float:
        """Write what is due, and return the seconds until the next is."""
        while (ahead := self._begun + self._steps * _EVERY_MS / 1000 - time.monotonic()) <= 0:
            self._steps += 1
            self.late.append((now_ms(), round(-1000 * ahead)))
            self._write([topic for topic, each in TOPICS.items() if each.grows])
            if self._steps % 24 == 0:
                self._cut()
        return ahead

    def _write(self, topics: Sequence[str]) -> None:
        records, size = _BATCH
        for topic in topics:
            for _ in range(records):
                self._client.produce(topic, b"x" * size, partition=0, timestamp=now_ms() - TOPICS[topic].late_ms)
        assert self._client.flush(SECONDS) == 0

    def _cut(self) -> None:
        for topic in (topic for topic, each in TOPICS.items() if each.cut):
            upto = max(0, _BATCH[0] * (self._steps - 30) + 3)
            for answer in self._admin.delete_records([Partition(topic, 0, upto)]).values():
                try:
                    answer.result(SECONDS)
                except KafkaException:  # retention was faster
                    continue


@contextmanager
def writing(writer: Writer) -> Iterator[None]:
    """It goes on until the block ends."""
    over = threading.Event()

    def write() -> None:
        while not over.wait(writer.step()):
            pass

    with ThreadPoolExecutor(1) as threads:
        writes = threads.submit(write)
        try:
            yield
        finally:
            over.set()
        writes.result()


def commit(kafka: Kafka, group: str, topics: Iterable[str], offset: int) -> None:
    """A group without members, which stands still after that."""
    client = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    refused: list[KafkaException] = []

    def committed() -> bool:
        try:
            client.commit(offsets=[Partition(topic, 0, offset) for topic in topics], asynchronous=False)
        except KafkaException as error:  # the first commit has the coordinators' topic made
            refused.append(error)
            return False
        return True

    until("the coordinator takes the commit", committed, saw=lambda: refused[-1:])
    client.close()


def _segments(kafka: Kafka, topic: str) -> list[str]:
    return [path.name for log_dir in kafka.log_dirs for path in log_dir.glob(f"{topic}-0/*.log")]


def foretold(kafka: Kafka) -> list[Forecast]:
    """What segtail says of each topic now, by a reader that knows the broker's settings."""
    at_ms = now_ms()
    settings = Settings(server_properties=(kafka.broker(1).properties,))
    answer = detailed(read_groups(open_log_dirs(kafka.log_dirs), [_GROUP], settings, at_ms))
    partitions = [each for group in answer.groups for each in group.partitions]
    return [
        Forecast(
            topic=each.topic,
            made_ms=now_ms(),
            offset=each.next_offset,
            end=each.high_watermark,
            at_ms=each.loss_ms,
            latest_ms=each.loss_latest_ms,
            least=each.loss_records_least,
            most=each.loss_records,
        )
        for each in partitions
        if each.loss_ms >= 0
    ]


def judged(
    forecasts: Sequence[Forecast], happened: Mapping[str, Sequence[Deletion]], done: Sequence[Check], late: Sequence[tuple[int, int]]
) -> Outcome:
    """Hold each forecast against the first deletion of its record.

    The broker's checks may come late on a machine that is busy, and so may what is written. So a deletion is late only if a check
    that began after the earliest time had ended before it, and a rate is as exact as the batches were punctual.

    Args:
        late: as `Writer.late`.
    """
    outcome = Outcome()
    for each in forecasts:
        deletion = next((one for one in happened.get(each.topic, ()) if one.start > each.offset), None)
        if deletion is None or not deletion.by_retention or deletion.at_ms < each.made_ms:
            continue  # it is there still, or was deleted by hand, or while it was foretold
        outcome.judged.append((each, deletion))
        slack = _CLOCK_MS
        if TOPICS[each.topic].grows:  # what follows a rate speaks of bytes, which come in batches
            slack = 2 * _EVERY_MS + max((ms for at, ms in late if each.made_ms - CHECK_MS <= at <= deletion.at_ms), default=0)
        if deletion.at_ms < each.at_ms - slack:
            outcome.wrong.append(f"{each.at_ms - deletion.at_ms} ms before it was foretold: {each}, {deletion}")
        missed = [check for check in done if check.began > max(each.at_ms, each.made_ms) + slack and check.ended < deletion.at_ms]
        if missed:
            outcome.wrong.append(f"not at the first check after it: {each}, {deletion}, {missed}")
        count = min(deletion.start, each.end) - each.offset
        segment = 7 * _BATCH[0] if TOPICS[each.topic].grows else 0  # one that was not rolled when it was foretold
        most = each.most + segment if each.most >= 0 else count  # where more comes until then, there is no most
        if each.least >= 0 and not each.least - segment <= count <= most:
            outcome.wrong.append(f"{count} records: {each}, {deletion}")
    return outcome


def experiment(kafka: Kafka, enough: Callable[[Outcome], bool]) -> Outcome:
    """Foretell until enough of it has come true, or not."""
    for topic, each in TOPICS.items():
        create_topic(kafka.bootstrap, topic, config=dict(each.limits))
    commit(kafka, _GROUP, TOPICS, 0)
    writer = Writer(kafka)
    writer.fill()
    forecasts: list[Forecast] = []

    def outcome() -> Outcome:
        return judged(forecasts, deletions(kafka.broker(1)), list(checks(kafka.broker(1))), list(writer.late))

    def shows_rates() -> bool:
        """A log of one segment shows none, so it counts as one that does not grow, and two show a rough one."""
        return all(len(_segments(kafka, topic)) > 2 for topic, each in TOPICS.items() if each.grows and not each.late_ms > 30_000)

    def has_enough() -> bool:
        forecasts.extend(foretold(kafka))
        return enough(outcome())

    with writing(writer):
        until("the logs have a few segments", shows_rates)
        until("enough of what was foretold has come", has_enough, saw=lambda: outcome().by_topic())
    return outcome()
