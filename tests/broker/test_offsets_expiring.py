"""Offsets that expire, on a live broker: what log dirs and a job say of groups before and after, and what their coordinators do."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.view.family import EVERYTHING
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests.broker.clients import create_topic
from tests.broker.coordinator_answers import WINDOW
from tests.broker.kafka import Kafka, Node
from tests.broker.lab import Lab, lab
from tests.broker.observed import now_ms
from tests.broker.running import running
from tests.group_answers import detailed
from tests.limits import SECONDS
from tests.processes import until
from tests.worlds.group_job import STOPPED_AFTER_MS, reported_by_job

RETENTION_MS = 60_000
CHECK_MS = 2_000
HOUR_MS = 3_600_000
TOPIC, LEFT = "read", "left"
RECORDS, COMMITTED = 10, 4
NOBODYS = {"simple": "assign", "classic": "classic", "consumer": "consumer"}
"""Groups that nobody uses any more, and what committed for them."""

GROUPS = [*NOBODYS, "stays", "moved", "deleted"]

_LOGGER = "org.apache.kafka.coordinator.group.OffsetMetadataManager"
_EXPIRED = re.compile(r"^\[(.+?)\] DEBUG .*\[GroupId (\S+)\] Expired offset for partition=(\S+)-0\b", re.MULTILINE)
_BROKER = {
    "offsets.retention.minutes": RETENTION_MS // 60_000,
    "offsets.retention.check.interval.ms": CHECK_MS,
    "log.retention.ms": HOUR_MS,
}

Offsets = dict[tuple[str, int], int]


@pytest.fixture(scope="module")
def forgetting(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """One broker that keeps the offsets of groups without members for a minute."""
    yield from running(Kafka(tmp_path_factory.mktemp("expiring"), settings=_BROKER, loggers=[_LOGGER]))


@pytest.fixture(scope="module")
def clients(forgetting: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(forgetting.bootstrap, tmp_path_factory.mktemp("lab") / "lab.log") as started:
        yield started


@dataclass
class Looks:
    """Looks from log dirs, and by a job that goes on looking, each between two answers of the coordinators."""

    kafka: Kafka
    directory: Path
    tracker: GroupTracker = field(default_factory=lambda: GroupTracker(EVERYTHING, STOPPED_AFTER_MS))
    count: int = 0

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        self._given: list[tuple[float, dict[str, Offsets]]] = []
        self._settings = Settings(server_properties=(self.kafka.broker(1).properties,))

    def coordinators(self, groups: Sequence[str]) -> dict[str, Offsets]:
        """The committed offsets that coordinators answer."""
        asked = {name: self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name] for name in groups}
        found = {}
        for name, answer in asked.items():
            offsets = {(of.topic, of.partition): of.offset for of in answer.result(SECONDS).topic_partitions}
            found[name] = {key: offset for key, offset in offsets.items() if offset >= 0}
        return found

    def log_dirs(self) -> dict[str, GroupDetail]:
        """What log dirs show now."""
        answer = detailed(read_groups(open_log_dirs(self.kafka.log_dirs), (), self._settings, now_ms()))
        assert answer.doubts == ()
        return {group.summary.group: group for group in answer.groups}

    def job(self) -> dict[str, GroupDetail]:
        """What the job says now."""
        self.count += 1
        return reported_by_job(self.kafka.log_dirs, self.directory / f"journal{self.count}", now_ms(), self.tracker, self._settings)

    def compare(self, groups: Sequence[str]) -> dict[str, Offsets]:
        """Both, held against answers of the coordinators before and after; returns the last of these.

        The job, whose agent has just begun, may be as old as the answers of the last seconds.
        """
        before, from_disk = self._answered(groups), self.log_dirs()
        between, by_job = self._answered(groups), self.job()
        after = self._answered(groups)
        recent = [offsets for at, offsets in self._given if at >= time.monotonic() - WINDOW]
        for group in groups:
            if before[group] == between[group]:
                assert committed(from_disk.get(group)) == between[group], ("log dirs", group, from_disk.get(group))
            given = [offsets[group] for offsets in recent if group in offsets]
            assert committed(by_job.get(group)) in given, ("job", group, by_job.get(group))
        return after

    def agree(self, expected: Mapping[str, Offsets]) -> bool:
        """Whether coordinators, log dirs and the job all say so now."""
        after = self.compare([*expected])
        return after == expected and all(committed(self.job().get(group)) == offsets for group, offsets in expected.items())

    def _answered(self, groups: Sequence[str]) -> dict[str, Offsets]:
        offsets = self.coordinators(groups)
        self._given.append((time.monotonic(), offsets))
        return offsets


def committed(group: GroupDetail | None) -> Offsets:
    """The committed offsets that are said of a group; of one that is not there, none."""
    partitions = () if group is None else group.partitions
    return {(of.topic, of.partition): of.committed for of in partitions if of.committed >= 0}


def expired(node: Node) -> dict[tuple[str, str], int]:
    """When the offset of each group and topic expired, by the broker's log."""
    found: dict[tuple[str, str], int] = {}
    for moment, group, topic in _EXPIRED.findall(node.log.read_text()):
        at = round(datetime.strptime(moment, "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp() * 1000)
        found.setdefault((group, topic), at)
    return found


@dataclass(frozen=True, slots=True)
class Worked:
    """When the groups had begun to commit, when they had committed, and when the members of some had left."""

    began_ms: int
    committed_ms: int
    left_ms: int


def work(kafka: Kafka, clients: Lab) -> Worked:
    """Groups commit; the members of some stay."""
    for topic in (TOPIC, LEFT):
        create_topic(kafka.bootstrap, topic)
        clients.produce(topic, 0, [[(None, 100, None)]] * RECORDS)
    began_ms = now_ms()
    for group, kind in {**NOBODYS, "stays": "classic", "moved": "consumer", "deleted": "assign"}.items():
        clients.commit(group, kind, [(TOPIC, 0, COMMITTED)])
    clients.commit("moved", "consumer", [(LEFT, 0, COMMITTED)])  # a topic that its member is not subscribed to
    committed_ms = now_ms()
    for group in ("classic", "consumer"):
        clients.ask("leave", group=group)
    return Worked(began_ms, committed_ms, now_ms())


def foretold(answers: Mapping[str, GroupDetail], worked: Worked) -> dict[str, int]:
    """When offsets of each group expire that do, as it is said of them."""
    times = {name: {of.topic: of.expiration_ms for of in group.partitions} for name, group in answers.items()}
    assert times["stays"] == {TOPIC: -1}, "it has a member"
    assert times["moved"][TOPIC] == -1, "its member is subscribed to that"
    used = {group: answers[group].summary.use for group in GROUPS}
    assert used == {**dict.fromkeys(GROUPS, "abandoned"), "stays": "in_use", "moved": "in_use"}, "offsets expire before records are deleted"
    assert {answers[group].summary.severity for group in GROUPS} <= {"", "info"}, "nobody is called for that"
    losses = [of.loss_ms for group in GROUPS for of in answers[group].partitions if of.topic != LEFT]
    assert {of.loss_ms for group in GROUPS for of in answers[group].partitions if of.topic == LEFT} == {-1}, "nobody reads it any more"
    assert min(losses) > worked.left_ms + HOUR_MS // 2, "records stay longer than the offsets"
    found = {group: times[group][LEFT if group == "moved" else TOPIC] for group in GROUPS if group != "stays"}
    for group, at in found.items():
        earliest, latest = (worked.committed_ms, worked.left_ms) if group == "classic" else (worked.began_ms, worked.committed_ms)
        assert earliest + RETENTION_MS <= at <= latest + RETENTION_MS, group
    of_groups = {group: answers[group].summary.expiration_ms for group in found}
    assert of_groups == found | {"moved": -1}, "what a group has left is not what it is about to lose"
    return found


def come_back(looks: Looks, clients: Lab, group: str) -> int:
    """A group is deleted, and commits again. Returns when its offsets expire."""
    looks.admin.delete_consumer_groups([group])[group].result(SECONDS)
    until("all say that it is gone", lambda: looks.agree({group: {}}))
    assert group not in looks.log_dirs().keys() | looks.job().keys()
    before_ms = now_ms()
    clients.commit(group, "assign", [(TOPIC, 0, COMMITTED + 1)])
    until("all say that it is there again", lambda: looks.agree({group: {(TOPIC, 0): COMMITTED + 1}}))
    (at, again) = (answers[group].summary.expiration_ms for answers in (looks.log_dirs(), looks.job()))
    assert at == again >= before_ms + RETENTION_MS, "it counts anew"
    return at


def test_offsets_are_there_until_they_expire_as_was_foretold_and_then_no_more(forgetting: Kafka, clients: Lab, tmp_path: Path) -> None:
    looks, worked = Looks(forgetting, tmp_path), work(forgetting, clients)
    due = foretold(looks.log_dirs(), worked)
    assert foretold(looks.job(), worked) == due, "a job and log dirs say the same"
    due["deleted"] = come_back(looks, clients, "deleted")

    over = [group for group in due if group != "moved"]
    until("all have expired that nobody uses", lambda: not any(looks.compare(over).values()))
    until("what the member has left has expired", lambda: looks.compare(["moved"])["moved"].keys() == {(TOPIC, 0)})
    gone = expired(forgetting.broker(1))
    assert gone.keys() == {(group, LEFT if group == "moved" else TOPIC) for group in due}
    assert all(at >= due[group] for (group, _), at in gone.items()), "none expires before"
    until("none of those is there", lambda: looks.agree({group: {} for group in over}))
    assert looks.log_dirs().keys() == looks.job().keys() == {"stays", "moved"}
    reading = read_groups(open_log_dirs(forgetting.log_dirs), over, Settings(), now_ms())
    assert (reading.missing, reading.answers.totals.names) == (tuple(sorted(over)), [])

    for group, kind in NOBODYS.items():
        clients.commit(group, kind, [(TOPIC, 0, RECORDS)])
    until("all are there again", lambda: looks.agree({group: {(TOPIC, 0): RECORDS} for group in NOBODYS}))
    for answers in (looks.log_dirs(), looks.job()):
        assert {answers[group].summary.lag for group in NOBODYS} == {0}, "they have come back, with nothing of before"


def test_what_is_seen_of_a_group_that_has_never_committed_is_what_it_would_read(forgetting: Kafka, tmp_path: Path) -> None:
    """Until its coordinator deletes it, which happens when that next looks for what has expired."""
    looks = Looks(forgetting, tmp_path)
    create_topic(forgetting.bootstrap, "bare")
    consumer = Consumer({"bootstrap.servers": forgetting.bootstrap, "group.id": "bare", "enable.auto.commit": False})
    consumer.subscribe(["bare"])
    until("it has a member", lambda: consumer.poll(0.1) is None and consumer.assignment())
    consumer.close()

    def look() -> bool:
        answers = [looks.log_dirs().get("bare"), looks.job().get("bare")]
        seen = [group for group in answers if group is not None]
        assert all([(of.topic, of.partition, of.committed) for of in group.partitions] == [("bare", 0, -1)] for group in seen)
        words = {(group.summary.verdict, len(group.findings)) for group in seen}
        assert words <= {("fine", 1), ("unknown", 1)}, "its topic is empty, or not known to be yet"
        return not seen

    until("its coordinator has deleted it", look)
