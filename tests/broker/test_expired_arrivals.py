"""Producers with clocks that are wrong, a replay and topics that keep records otherwise, on a live broker: what came past its retention."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Partition

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.journal.journal import Journal
from streaming.broker.watcher.beginnings import Beginning
from streaming.broker.watcher.watcher import Watcher
from streaming.common.event_row import EVENT, EventRow
from streaming.common.log_positions import KnownEnd
from streaming.common.rows import Kind
from streaming.common.start_from import StartFrom
from streaming.rules.expired_arrivals import DAY_MS, LateLooks, looks_of
from streaming.rules.log_state import LogState
from tests.broker.clients import create_topic
from tests.broker.kafka import Kafka
from tests.broker.loss_experiment import now_ms
from tests.broker.running import running
from tests.commands import run_command
from tests.events import Shard
from tests.limits import SECONDS
from tests.processes import until
from tests.recorded.worlds.retention import set_config
from tests.watcher.journalled import events_of

LIMIT_MS = 7 * DAY_MS
_ANY_STAMP = {"message.timestamp.after.max.ms": str(2**63 - 1), "message.timestamp.before.max.ms": str(2**63 - 1)}
_KEPT = {"retention.ms": str(LIMIT_MS), **_ANY_STAMP}
TOPICS: Mapping[str, dict[str, str]] = {
    "right": _KEPT,
    "back": _KEPT,
    "back-within": _KEPT,
    "ahead": _KEPT,
    "unset": _KEPT,
    "in-seconds": _KEPT,
    "replayed": _KEPT,
    "dated-by-broker": {"retention.ms": str(LIMIT_MS), "message.timestamp.type": "LogAppendTime"},
    "compact-too": {**_KEPT, "cleanup.policy": "compact,delete"},
    "compact": {**_KEPT, "cleanup.policy": "compact"},
    "for-ever": {**_KEPT, "retention.ms": "-1"},
    "changed": {**_KEPT, "retention.ms": "-1"},
    "by-the-broker": _ANY_STAMP,
}
AWAY: Mapping[str, dict[str, str]] = {"goes-on": _KEPT, "rolls": {**_KEPT, "internal.segment.bytes": "4000"}}
"""Topics that are written to while no agent looks. A segment of the second one has room for some batches."""

LATE_MS = LIMIT_MS + DAY_MS
"""Batches in one segment whose timestamps differ by a week roll it."""

BATCH = 10
NEVER = str(24 * 3_600_000)


@pytest.fixture(scope="module")
def kafka_that_waits(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker that never checks what it may delete: it would delete what is late as soon as it has begun another segment."""
    settings = {"log.initial.task.delay.ms": NEVER, "log.retention.check.interval.ms": NEVER}
    yield from running(Kafka(tmp_path_factory.mktemp("kafka-expired"), settings=settings))


class Observer:
    """The watcher of an agent and the fold of a job, by the wall clock."""

    def __init__(self, kafka: Kafka, directory: Path, topics: Collection[str]) -> None:
        self._kafka, self._directory, self._topics = kafka, directory, topics
        self._shard = Shard()
        self.start()

    def start(self) -> None:
        """The job goes on where it has counted."""
        log_dirs, states = open_log_dirs(self._kafka.log_dirs), self._shard.states
        self._journal, self._seen = Journal(), 0
        self._watcher = Watcher(log_dirs, self._journal, ClusterView(log_dirs), now_ms, producers_limit=100, attached=not states)
        if states:
            ends = {key: KnownEnd(state.log_end_offset, state.log_epoch) for key, state in states.items()}
            self._watcher.begin(Beginning(StartFrom.EARLIEST, resumed=True, ends=ends))

    def stop(self) -> None:
        self._watcher.close()

    def look(self) -> dict[str, LogState]:
        """The logs of the topics, after another look."""
        directories = {path for log_dir in self._kafka.log_dirs for path in log_dir.glob("*-0")}
        while self._watcher.poll(directories):
            pass
        found = [(seq, each) for seq, each in events_of(self._journal, self._seen, 1 << 60) if each.kind is not Kind.CENSUS]
        columns = ((seq, {name: getattr(each, name) for name in EVENT.names}) for seq, each in found)
        self._shard.fold(*(EventRow(agent="a", journal=self._journal.id, seq=seq, **values) for seq, values in columns))
        self._seen = found[-1][0] if found else self._seen
        return {key.topic: state for key, state in self._shard.states.items() if key.topic in self._topics}

    def ends(self) -> dict[str, int]:
        """Up to where each topic is read."""
        return {topic: state.log_end_offset for topic, state in self.look().items()}


def write(producer: Producer, topic: str, *timestamps: int) -> None:
    """A batch for each of these timestamps. While the leader is not known, records of one may come apart."""
    producer.list_topics(topic, SECONDS)
    for timestamp in timestamps:
        for number in range(BATCH):
            producer.produce(topic, b"x" * 50, key=str(number), partition=0, timestamp=timestamp)
        assert producer.flush(SECONDS) == 0


def consumed(kafka: Kafka, topic: str, count: int) -> list[int]:
    """The timestamps that a consumer of Kafka's gets."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "reads", "enable.auto.commit": False})
    consumer.assign([Partition(topic, 0, 0)])
    found: list[int] = []
    until(f"{topic} is read", lambda: found.extend(each.timestamp()[1] for each in consumer.consume(count, 1)) or len(found) >= count)
    consumer.close()
    return found


def segments(kafka: Kafka, topic: str) -> list[Path]:
    """The segments of its only partition, the first one first."""
    return sorted(path for log_dir in kafka.log_dirs for path in log_dir.glob(f"{topic}-0/*.log"))


def expired(states: Mapping[str, LogState]) -> dict[str, int]:
    return {topic: state.share_expired_records for topic, state in states.items() if state.share_expired_records}


def looks(state: LogState) -> LateLooks:
    return looks_of((state.expired_since_ms, state.expired_since_timestamp), (state.expired_ms, state.expired_timestamp))


def test_what_is_past_its_retention_when_it_is_written_is_counted_and_nothing_else(kafka_that_waits: Kafka, tmp_path: Path) -> None:
    kafka = kafka_that_waits
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 30_000})
    for topic, config in TOPICS.items():
        create_topic(kafka.bootstrap, topic, config=config)
    until("all logs are there", lambda: len([*kafka.broker(1).directory.glob("d*/*-0/*.log")]) > len(TOPICS))
    observer = Observer(kafka, tmp_path, TOPICS)
    until("all logs are read", lambda: set(observer.ends()) == set(TOPICS))
    begun = now_ms()
    for turn in range(3):
        now = now_ms()
        for topic in ("back", "compact-too", "compact", "for-ever", "changed", "dated-by-broker", "by-the-broker"):
            write(producer, topic, now - 30 * DAY_MS)
        write(producer, "right", now)
        write(producer, "back-within", now - LIMIT_MS + 60_000)
        write(producer, "ahead", now + DAY_MS)
        write(producer, "unset", 1)  # librdkafka takes 0 for now
        write(producer, "in-seconds", now // 1000)
        write(producer, "replayed", *(now - (30 - 10 * turn - each) * DAY_MS - DAY_MS // 2 for each in range(10)))
        wanted = {**dict.fromkeys(TOPICS, BATCH * (turn + 1)), "replayed": 10 * BATCH * (turn + 1)}
        until("all is read", lambda wanted=wanted: observer.ends() == wanted)  # type: ignore[misc]
        if turn == 1:
            set_config(kafka, "changed", "retention.ms", str(LIMIT_MS))
            until("the change is known", lambda: observer.look()["changed"].judges_expiry)
    states = observer.look()
    counted = expired(states)
    of_replay, cleaned = counted.pop("replayed"), counted.pop("compact-too")
    assert counted == {**dict.fromkeys(("back", "unset", "in-seconds"), 3 * BATCH), "changed": BATCH}
    assert 0 < cleaned <= 3 * BATCH  # the cleaner deletes beside the reader, every 15 s
    assert of_replay == BATCH * sum(30.5 - each > 7 for each in range(30))
    assert {topic: looks(states[topic]) for topic in ("unset", "in-seconds", "replayed")} == {
        "unset": LateLooks.NO_TIME,
        "in-seconds": LateLooks.SECONDS,
        "replayed": LateLooks.REPLAY,
    }
    assert looks(states["back"]) in (LateLooks.CLOCK, LateLooks.OLD)
    for topic, count in expired(states).items():
        if topic == "compact-too":  # the cleaner has deleted them by now
            continue
        timestamps = consumed(kafka, topic, states[topic].log_end_offset)
        before = now_ms() if topic != "replayed" else begun
        past = sum(each < before - LIMIT_MS for each in timestamps)
        assert count <= past
        assert count == past or topic in ("changed", "replayed")
    assert {topic: state.judges_expiry for topic, state in states.items() if not state.judges_expiry} == dict.fromkeys(
        ("compact", "for-ever", "by-the-broker"), False
    )
    assert (states["ahead"].share_ahead_batches, sum(states["ahead"].share_append_delay_buckets)) == (3, 0)
    assert states["back-within"].share_append_delay_buckets == (0, 0, 0, 0, 0, 3, 0, 0)
    assert states["back"].share_append_delay_buckets == (0, 0, 0, 0, 0, 0, 3, 0)
    assert sum(states["right"].share_append_delay_buckets[1:]) == 0
    observer.stop()


def test_a_segment_that_was_written_a_moment_ago_was_not_left_by_two_checks(kafka_that_waits: Kafka) -> None:
    printed = run_command(
        "retention",
        "--server-properties",
        str(kafka_that_waits.broker(1).properties),
        "--log-dirs",
        ",".join(map(str, kafka_that_waits.log_dirs)),
    ).stdout
    assert "0 overdue" in printed


def test_neither_a_first_backlog_nor_what_comes_while_no_agent_runs_is_counted(kafka_that_waits: Kafka, tmp_path: Path) -> None:
    kafka = kafka_that_waits
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 30_000})
    for topic, config in AWAY.items():
        create_topic(kafka.bootstrap, topic, config=config)
        write(producer, topic, now_ms() - LATE_MS)
    observer = Observer(kafka, tmp_path, AWAY)
    until("the backlog is read", lambda: observer.ends() == dict.fromkeys(AWAY, BATCH))
    assert expired(observer.look()) == {}
    for topic in AWAY:
        write(producer, topic, now_ms() - LATE_MS)
    until("it is counted", lambda: expired(observer.look()) == dict.fromkeys(AWAY, BATCH))

    observer.stop()
    late_ms = now_ms() - LATE_MS
    write(producer, "goes-on", late_ms)
    batches = 2
    while len(segments(kafka, "rolls")) < 3:
        write(producer, "rolls", late_ms)
        batches += 1

    observer.start()
    until("all is read", lambda: observer.ends() == {"goes-on": 3 * BATCH, "rolls": BATCH * batches})
    assert expired(observer.look()) == dict.fromkeys(AWAY, BATCH)  # when they were appended is not known
    for topic in AWAY:
        write(producer, topic, late_ms)
    until("it counts on", lambda: expired(observer.look()) == dict.fromkeys(AWAY, 2 * BATCH))
    observer.stop()
