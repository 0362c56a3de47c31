"""When a group that stands still loses its first unread record: what is predicted, held against the broker that deletes it."""

import math
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests.broker.clients import create_topic
from tests.broker.group_comparing import Reported, reported_from_disk
from tests.broker.kafka import Kafka
from tests.broker.loss_experiment import commit
from tests.broker.observed import now_ms
from tests.broker.retention_checks import disproved
from tests.group_answers import detailed, verdicts
from tests.limits import SECONDS
from tests.processes import until

_BATCH = (10, 90)  # records, bytes of each
_EVERY_MS = 250
_SMALL = {"internal.segment.bytes": "6000"}
BY_TIME, BY_SIZE = TOPICS = ("by-time", "by-size")
_BYTES_A_SECOND = 4_000
_LEAST_SECONDS = 20
_GROUP = "stands-at-75"
_COMMITTED = 75
"""In the middle of a batch of the second segment."""


@dataclass(slots=True)
class Appender:
    """Appends a batch to each topic at equal distances by the times of its records, whenever the machine gets to it.

    So a rate that those times show is exact, and what is predicted by it comes when the records have come so far. ``done_ms`` tells when
    each batch was there, and ``turn`` is held while one is appended.
    """

    began_ms: int
    done_ms: list[int] = field(default_factory=list)
    turn: threading.Lock = field(default_factory=threading.Lock)

    @property
    def now_ms(self) -> int:
        """How far the records have come, by their own times."""
        return self.began_ms + _EVERY_MS * len(self.done_ms)

    def passed_ms(self, time_ms: int) -> int:
        """When the records had come as far as a time of theirs; far ahead where they have not."""
        batch = max(0, math.ceil((time_ms - self.began_ms) / _EVERY_MS) - 1)
        return self.done_ms[batch] if batch < len(self.done_ms) else sys.maxsize

    def between(self, topic: str, loss_ms: int) -> tuple[int, int]:
        """The first and the last moment of the broker's clock that a prediction means."""
        slack = 2 * _EVERY_MS  # one that follows a rate speaks of bytes, which come in batches
        return (self.passed_ms(loss_ms - slack), self.passed_ms(loss_ms + slack)) if topic == BY_SIZE else (loss_ms, loss_ms)


@contextmanager
def appending(kafka: Kafka) -> Iterator[Appender]:
    """A batch for each topic after the other, until the block ends."""
    over = threading.Event()
    client = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 30_000})
    records, size = _BATCH
    appender = Appender(now_ms())

    def append() -> None:
        while not over.wait(max(0.0, (appender.now_ms - now_ms()) / 1000)):
            with appender.turn:
                for topic in TOPICS:
                    at_ms = appender.now_ms + _EVERY_MS if topic == BY_SIZE else 0  # retention by time goes by the broker's clock
                    for _ in range(records):
                        client.produce(topic, b"x" * size, partition=0, timestamp=at_ms)
                assert client.flush(SECONDS) == 0
                appender.done_ms.append(now_ms())

    with ThreadPoolExecutor(1) as threads:
        appends = threads.submit(append)
        try:
            yield appender
        finally:
            over.set()
        appends.result()


def ends(admin: AdminClient, which: OffsetSpec) -> dict[str, int]:
    asked = {Partition(topic, 0): which for topic in TOPICS}
    return {partition.topic: answer.result(SECONDS).offset for partition, answer in admin.list_offsets(asked).items()}  # type: ignore[no-untyped-call]


def bases(kafka: Kafka, topic: str) -> list[int]:
    """The base offsets of its segments."""
    return sorted(int(path.stem) for log_dir in kafka.log_dirs for path in log_dir.glob(f"{topic}-0/*.log"))


def reported(kafka: Kafka, at_ms: int) -> dict[str, Reported]:
    """What segtail says of the group, by topic."""
    found = reported_from_disk(kafka.log_dirs, [kafka.broker(1).properties], "--at", str(at_ms))
    return {topic: partition for (group, topic, _), partition in found.items() if group == _GROUP}


@dataclass(slots=True)
class Fate:
    """Of the first unread record of a topic: when it was last seen and first seen to be gone, and what was said of that before.

    All in milliseconds: the former two by the broker's clock, the latter by the times of the records.
    """

    there_ms: int = 0
    gone_ms: int = 0
    stated: list[int] = field(default_factory=list)
    log_start: int = -1
    verdicts: frozenset[str] = frozenset()


def look(kafka: Kafka, appender: Appender, fates: Mapping[str, Fate]) -> None:
    """What the disks show of the group now, by a reader that knows the broker's settings."""
    looked_ms = now_ms()
    settings = Settings(server_properties=(kafka.broker(1).properties,))
    with appender.turn:
        answer = detailed(read_groups(open_log_dirs(kafka.log_dirs), [_GROUP], settings, appender.now_ms))
    assert (answer.missing, answer.doubts) == ((), ())
    (group,) = answer.groups
    for partition in group.partitions:
        fate = fates[partition.topic]
        if not partition.lost_offsets:
            fate.there_ms = looked_ms
            fate.stated.append(partition.loss_ms)
        elif not fate.gone_ms:
            fate.gone_ms, fate.log_start = now_ms(), partition.log_start
            fate.verdicts = frozenset(verdicts(group))


def deleted(kafka: Kafka, appender: Appender) -> dict[str, Fate]:
    """By topic; waits for it."""
    fates = {topic: Fate() for topic in TOPICS}

    def all_gone() -> bool:
        look(kafka, appender, fates)
        return all(fate.gone_ms for fate in fates.values())

    until("the broker has deleted what was not read", all_gone, saw=lambda: fates)
    return fates


def create_topics(kafka: Kafka) -> None:
    """Topics whose records are kept for ten times as long as segtail takes to tell of them on this machine."""
    began = time.monotonic()
    reported(kafka, now_ms())
    seconds = max(_LEAST_SECONDS, round(10 * (time.monotonic() - began)))
    limits = {
        BY_TIME: {"retention.ms": str(1000 * seconds)},
        BY_SIZE: {"retention.ms": "-1", "retention.bytes": str(_BYTES_A_SECOND * seconds)},
    }
    for topic in TOPICS:
        create_topic(kafka.bootstrap, topic, config=_SMALL | limits[topic])


def test_the_first_unread_record_is_deleted_by_the_check_after_the_time_that_is_predicted(kafka_that_deletes: Kafka) -> None:
    kafka = kafka_that_deletes
    create_topics(kafka)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    until("the broker knows the topics", lambda: admin.list_topics(timeout=SECONDS).topics.keys() >= set(TOPICS))
    commit(kafka, _GROUP, TOPICS, 0)  # what is appended has no time to wait for a coordinator
    with appending(kafka) as appender:
        until("the second segments are closed", lambda: min(ends(admin, OffsetSpec.latest()).values()) > 3 * _COMMITTED)
        commit(kafka, _GROUP, TOPICS, _COMMITTED)

        def predicted() -> dict[str, Reported]:
            with appender.turn:
                return reported(kafka, appender.now_ms)

        first = until("the commit is replicated", lambda: both if (both := predicted()).keys() == set(TOPICS) else None)
        following = {topic: next(base for base in bases(kafka, topic) if base > _COMMITTED) for topic in TOPICS}
        assert max(ends(admin, OffsetSpec.earliest()).values()) <= _COMMITTED, "it was told before it was gone"
        fates = deleted(kafka, appender)
    for topic, fate in fates.items():
        stated = first[topic]
        # at the latest check that deletes it, as far as is known here: without server.properties that is 5 minutes later, and more comes
        least, most = stated["loss_records_least"], stated["loss_records"]
        assert following[topic] - _COMMITTED <= least <= stated["lag_records_read_committed"]
        assert most is None or least <= most <= stated["lag_records_read_committed"]
        assert fate.stated, "it was gone before it was looked at"
        for loss_ms in (stated["loss_ms"], fate.stated[len(fate.stated) // 2]):
            wrong = disproved(kafka.broker(1), *appender.between(topic, loss_ms), there_ms=fate.there_ms, gone_ms=fate.gone_ms)
            assert not wrong, (topic, loss_ms, appender, wrong)
        assert "lost" in fate.verdicts
        assert _COMMITTED < fate.log_start <= ends(admin, OffsetSpec.earliest())[topic]  # asked a moment later, and retention goes on
    for topic, stated in reported(kafka, now_ms()).items():
        assert stated["log_start"] > _COMMITTED
        assert stated["lost_offsets"] == stated["log_start"] - _COMMITTED, topic
