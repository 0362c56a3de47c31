"""Producers whose clocks are a day back or a day ahead: what is said of groups, held against what really happened by the wall clock."""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Partition

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail, GroupPartition
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.view.family import EVERYTHING
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests.broker.clients import create_topic
from tests.broker.kafka import Kafka
from tests.broker.loss_experiment import CHECK_MS, deletions, now_ms
from tests.group_answers import detailed
from tests.limits import SECONDS
from tests.processes import until
from tests.worlds.group_job import reported_by_job

DAY = 86_400_000
CLOCKS = {"right": 0, "back": -DAY, "forward": DAY}
DUE, KEPT = "due", "kept"
"""Topics that keep records for a minute: by their stamps all is due now, or in a day."""

KEPT_MS = DAY + DAY // 12
"""What is stamped a day back is deleted in two hours: only who stands still is in danger of that."""

LIMIT_MS = 8_000
"""A group that stands still for so long has stopped."""

ROUNDS = 12
GROUPS = ("stands", "reads", "lags", "waits")
_ANY_STAMP = {"message.timestamp.after.max.ms": str(2**63 - 1), "message.timestamp.before.max.ms": str(2**63 - 1)}
_ROUNDED_MS = 1_000


@dataclass(slots=True)
class Truth:
    """When each record was there, by the wall clock, and when each group last moved: the time before it did, and the time after."""

    appended: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    moved: dict[tuple[str, str], tuple[int, int, int]] = field(default_factory=dict)  # offset, before, after

    def stands_ms(self, group: str, topic: str, asked_ms: int, answered_ms: int) -> tuple[int, int]:
        """For how long a group has not moved though a record was there: at least, and at most; 0 if it has read everything."""
        offset, before, after = self.moved[group, topic]
        if offset >= len(self.appended[topic]):
            return 0, 0
        first, last = self.appended[topic][offset]
        return asked_ms - max(after, last), answered_ms - max(before, first)


class Clients:
    """Appends with stamps of a wrong clock, and commits."""

    def __init__(self, kafka: Kafka) -> None:
        self.truth = Truth()
        self._bootstrap = kafka.bootstrap
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 0})

    def append(self, topic: str, ahead_ms: int, records: int = 3) -> None:
        before = now_ms()
        for _ in range(records):
            self._producer.produce(topic, b"x" * 50, partition=0, timestamp=before + ahead_ms)
        assert self._producer.flush(SECONDS) == 0
        self.truth.appended.setdefault(topic, []).extend([(before, now_ms())] * records)

    def commit(self, group: str, topics: Sequence[str], left: int) -> None:
        """The group leaves so many records of each topic."""
        offsets = {topic: max(len(self.truth.appended[topic]) - left, 0) for topic in topics}
        client, before = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group}), now_ms()

        def committed() -> bool:
            try:
                client.commit(offsets=[Partition(topic, 0, offset) for topic, offset in offsets.items()], asynchronous=False)
            except KafkaException:  # the first commit has the coordinators' topic made
                return False
            return True

        until("the coordinator takes the commit", committed)
        client.close()
        for topic, offset in offsets.items():
            held = self.truth.moved.get((group, topic))
            if held is None or held[0] != offset:
                self.truth.moved[group, topic] = offset, before, now_ms()


def from_disk(kafka: Kafka) -> list[GroupDetail]:
    settings = Settings(server_properties=(kafka.broker(1).properties,), group_stopped_after=timedelta(milliseconds=LIMIT_MS))
    return detailed(read_groups(open_log_dirs(kafka.log_dirs), (), settings, now_ms())).groups


def partitions(groups: Sequence[GroupDetail]) -> Iterator[tuple[str, GroupPartition, list[str]]]:
    """Each partition of each group of these tests, with the verdicts about it."""
    for group in (each for each in groups if each.summary.group in GROUPS):
        for of in group.partitions:
            verdicts = [each.verdict for each in group.findings if (each.topic, each.partition) == (of.topic, of.partition)]
            yield group.summary.group, of, verdicts


def told(groups: Sequence[GroupDetail]) -> set[tuple[str, str, str]]:
    """Each group and topic that has stopped, or will lose records, with that word."""
    return {(group, of.topic, word) for group, of, verdicts in partitions(groups) for word in ("stopped", "will_lose") if word in verdicts}


def wrong(source: str, groups: Sequence[GroupDetail], truth: Truth, asked_ms: int) -> list[str]:
    """What is said of groups that is not so."""
    answered_ms, found = now_ms(), []
    for group, of, verdicts in partitions(groups):
        least, most = truth.stands_ms(group, of.topic, asked_ms, answered_ms)
        line = f"{source}: {group} in {of.topic}: {verdicts}, it stood for {least} to {most} ms: {of}"
        if "stopped" in verdicts and (most < LIMIT_MS - _ROUNDED_MS or of.stopped_since_ms > answered_ms):
            found.append(line)
        if "fine" in verdicts and source == "log dirs" and least >= LIMIT_MS + _ROUNDED_MS:
            found.append(line)
        deleted = of.lost_offsets or of.buffered_offsets
        if {"held", "lost", "perhaps_lost"} & {*verdicts} or deleted or ("will_lose" in verdicts and "stopped" not in verdicts):
            found.append(line)
        due = of.topic == "back" and of.loss_silent_ms < 0  # while its log is still written to, its newest stamp moves on
        if ("will_lose" in verdicts) != due and "stopped" in verdicts:
            found.append(line)
        if of.topic == "right" and "unknown" in verdicts:
            found.append(line)
    return found


def test_no_group_is_stopped_or_fine_or_loses_by_the_clocks_of_producers(kafka_that_deletes: Kafka, tmp_path: Path) -> None:
    kafka, clients, tracker = kafka_that_deletes, Clients(kafka_that_deletes), GroupTracker(EVERYTHING, LIMIT_MS)
    for topic in CLOCKS:
        create_topic(kafka.bootstrap, topic, config={"retention.ms": str(KEPT_MS), **_ANY_STAMP})
        clients.append(topic, CLOCKS[topic])
    clients.commit("stands", [*CLOCKS], 3)
    errors: list[str] = []
    job: dict[str, GroupDetail] = {}

    def look(number: int) -> set[tuple[str, str, str]]:
        """Both are asked; returns the groups and topics that both say have stopped, and those that both say will lose records."""
        nonlocal job
        asked_ms = now_ms()
        disk = from_disk(kafka)
        errors.extend(wrong("log dirs", disk, clients.truth, asked_ms))
        asked_ms = now_ms()
        job = reported_by_job(kafka.log_dirs, tmp_path / f"journal{number}", now_ms(), tracker)
        errors.extend(wrong("job", [*job.values()], clients.truth, asked_ms))
        return told(disk) & told([*job.values()])

    for number in range(ROUNDS):
        for topic, ahead_ms in CLOCKS.items():
            clients.append(topic, ahead_ms)
        clients.commit("reads", [*CLOCKS], 0)
        clients.commit("lags", [*CLOCKS], 5)
        look(number)
    numbers = iter(range(ROUNDS, sys.maxsize))
    expected = {(group, topic, "stopped") for group in ("stands", "lags") for topic in CLOCKS}
    expected |= {(group, "back", "will_lose") for group in ("stands", "lags")}
    until("those that stand still have stopped", lambda: look(next(numbers)) == expected, saw=lambda: errors)
    assert errors == []


def test_retention_goes_by_the_stamps_and_so_does_what_is_foretold(kafka_that_deletes: Kafka) -> None:
    kafka, clients = kafka_that_deletes, Clients(kafka_that_deletes)
    for topic in (DUE, KEPT):
        create_topic(kafka.bootstrap, topic, config={"retention.ms": "60000", **_ANY_STAMP})
    clients.append(KEPT, DAY)
    clients.commit("waits", [KEPT], 3)
    clients.append(DUE, -DAY)
    appended_ms = now_ms()
    clients.commit("waits", [DUE], 3)

    def answers() -> dict[str, tuple[GroupPartition, list[str]]]:
        return {of.topic: (of, verdicts) for group, of, verdicts in partitions(from_disk(kafka)) if group == "waits"}

    seen = []
    while not deletions(kafka.broker(1)).get(DUE):
        of, verdicts = answers()[DUE]
        asked_ms = now_ms()
        if of.next_offset == 0:  # it is there still: a check deletes it at any moment
            seen.append((of.loss_ms, verdicts))
            assert 0 <= of.loss_ms <= asked_ms, (of, verdicts)
            assert "fine" not in verdicts, (of, verdicts)
        assert asked_ms - appended_ms < 1000 * SECONDS
        time.sleep(0)
    until("the loss is there", lambda: "lost" in answers()[DUE][1] or "perhaps_lost" in answers()[DUE][1], saw=answers)
    (deletion, *_) = deletions(kafka.broker(1))[DUE]
    assert deletion.by_retention
    of, verdicts = answers()[KEPT]
    assert of.loss_ms > now_ms() + DAY - CHECK_MS, "a stamp of tomorrow keeps the record until then"
    assert (of.log_start, of.lag) == (0, 3)
    assert not {"will_lose", "lost", "stopped"} & {*verdicts} or of.stopped_since_ms <= now_ms()
    assert KEPT not in deletions(kafka.broker(1))
