"""Topics to which records come past their retention, in three states, and which of them the broker's next check deletes."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from tests.broker.clients import create_topic, producer, transaction
from tests.broker.dumped_logs import printed
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import run_tool
from tests.limits import SECONDS
from tests.recorded.making import Making
from tests.recorded.worlds.resting import settle
from tests.recorded.worlds.retention import NEVER, bases

MINUTE_MS, DAY_MS = 60_000, 86_400_000
LIMIT_MS = 7 * DAY_MS
RECORDS = 4
"""In each batch."""

_ANY_STAMP = {"message.timestamp.after.max.ms": str(2**63 - 1), "message.timestamp.before.max.ms": str(2**63 - 1)}
_KEPT = {"retention.ms": str(LIMIT_MS), **_ANY_STAMP}
_KEEPS: Mapping[str, Mapping[str, str]] = {
    "rolls": {**_KEPT, "internal.segment.bytes": "1000"},
    "dated-by-broker": {"retention.ms": str(LIMIT_MS), "message.timestamp.type": "LogAppendTime"},
    "compacted": {**_KEPT, "cleanup.policy": "compact"},
    "for-ever": {**_KEPT, "retention.ms": "-1"},
    "by-the-broker": _ANY_STAMP,
}
IN_TRANSACTIONS, MIXED = "in-transactions", "mixed"


def late(topic: str, turn: int, now_ms: int) -> list[int]:
    """The timestamps of the batches that a topic gets in a turn, of two; in `MIXED` every other record is in time."""
    back = [now_ms - 30 * DAY_MS] * 3
    stamps = {
        "in-time": [now_ms, now_ms],
        "within": [now_ms - LIMIT_MS + 10 * MINUTE_MS],
        "clock-back": back,
        "clock-ahead": [now_ms + DAY_MS],
        "no-time": [1, 1],
        "in-seconds": [now_ms // 1000],
        "catches-up": [now_ms - (30 - 15 * turn - each) * DAY_MS + DAY_MS // 2 for each in range(15)],
        "breaks-off": [now_ms - (30 - 5 * turn - each) * DAY_MS for each in range(5)],
        "recovers": back if turn == 0 else [now_ms],
        "rolls": back * 4,
    }
    return stamps.get(topic, back)


TOPICS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(
        ("in-time", "within", "clock-back", "clock-ahead", "no-time", "in-seconds", "catches-up", "breaks-off", "recovers"), _KEPT
    ),
    IN_TRANSACTIONS: _KEPT,
    MIXED: _KEPT,
    **_KEEPS,
}
"""The configurations of each topic."""


def make(making: Making) -> None:
    """The states are `before`, `half` and `written`; the answers are of what was written, and of what the next check has left of it."""
    settings = {"log.initial.task.delay.ms": NEVER, "log.retention.check.interval.ms": NEVER, "log.index.size.max.bytes": 4096}
    kafka = Kafka(making.directory / "kafka", settings=settings, version=making.version)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        for topic, config in TOPICS.items():
            create_topic(kafka.bootstrap, topic, config=config)
        clients = Clients(kafka)
        kafka.until(lambda: {path.parent.name.removesuffix("-0") for path in segments(kafka)} == {*TOPICS}, "all logs are there")
        making.disk(kafka, "before")
        for turn, state in enumerate(("half", "written")):
            for topic in TOPICS:
                clients.write(topic, turn)
            making.disk(kafka, state)
        dumped = printed({path.parent for path in segments(kafka)}).replace(str(making.directory), "")
        making.answer("dumped", dumped, by="kafka-dump-log --deep-iteration")
        making.answer("kept_for", kept_for(kafka), by="DescribeConfigs: retention.ms and cleanup.policy")

        kafka.stop()
        kafka.configure({"log.initial.task.delay.ms": 500, "log.retention.check.interval.ms": 1000})
        before = bases(kafka)
        kafka.start()
        kafka.until(lambda: bases(kafka) != before, "something is deleted")
        settle(kafka, lambda: bases(kafka), "what the broker has left")
        earliest = run_tool("get-offsets", "--bootstrap-server", kafka.bootstrap, "--time", "earliest")
        making.answer("earliest", earliest, by="kafka-get-offsets --time earliest, after the check")


class Clients:
    """Producers that make a batch of each timestamp."""

    def __init__(self, kafka: Kafka) -> None:
        self._plain = producer(kafka.bootstrap)
        self._transactional = producer(kafka.bootstrap, transactional_id="late")
        self._transactional.init_transactions(SECONDS)

    def write(self, topic: str, turn: int) -> None:
        """What a topic gets in a turn."""
        client = self._transactional if topic == IN_TRANSACTIONS else self._plain
        client.list_topics(topic, SECONDS)  # while the leader is not known, records of a batch may come apart
        now_ms = int(time.time() * 1000)
        with ExitStack() as stack:
            if topic == IN_TRANSACTIONS:
                stack.enter_context(transaction(client))
            for stamp in late(topic, turn, now_ms):
                for number in range(RECORDS):
                    own = now_ms if topic == MIXED and number % 2 else stamp
                    client.produce(topic, b"x" * 50, key=str(number), partition=0, timestamp=own)
                assert client.flush(SECONDS) == 0


def segments(kafka: Kafka) -> Iterator[Path]:
    """Those of the topics."""
    return (path for log_dir in kafka.log_dirs for path in log_dir.glob("*-0/*.log") if path.parent.name.removesuffix("-0") in TOPICS)


def kept_for(kafka: Kafka) -> dict[str, tuple[int, str]]:
    """How long each topic keeps records, and by which policy."""
    asked = {ConfigResource(ResourceType.TOPIC, topic): topic for topic in TOPICS}
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    found = {asked[resource]: answer.result(SECONDS) for resource, answer in admin.describe_configs([*asked]).items()}
    return {topic: (int(configs["retention.ms"].value), configs["cleanup.policy"].value) for topic, configs in found.items()}
