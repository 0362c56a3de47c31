"""What is said about groups that are about to lose records, on a live broker, held against what the broker then does."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta

import pytest

from streaming.disk.logdirs import open_log_dirs
from streaming.offline.group_reading import read_groups
from streaming.protocol.group_json import GroupDetail
from streaming.settings import Settings
from streaming.verdicts.group_verdicts import Bounds, GroupVerdict, Kind, judge
from tests.broker.clients import create_topic
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import run_tool
from tests.broker.lab import Lab, Record, lab
from tests.broker.retention_checks import LOGGER, disproved
from tests.processes import until

CHECK_MS = 2_000
LIMITS = {"time": {"retention.ms": "25000"}, "size": {"retention.ms": "-1", "retention.bytes": "40000"}}
APPENDS_A_SECOND = 4
_STOPPED_AFTER = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Running:
    """A broker and its clients."""

    kafka: Kafka
    lab: Lab

    def why(self, group: str) -> tuple[GroupDetail, list[GroupVerdict]]:
        """What the disks show of a group now."""
        at_ms = now_ms()
        settings = Settings(group_stopped_after=_STOPPED_AFTER, server_properties=(self.kafka.broker(1).properties,))
        answer = read_groups(open_log_dirs(self.kafka.log_dirs), [group], settings, at_ms)
        assert (answer.missing, answer.doubts) == ((), ())
        (found,) = answer.groups
        return found, [each for each in judge(found, at_ms, Bounds()) if each.kind is not Kind.FINE]


@pytest.fixture(scope="module")
def running(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    kafka = Kafka(tmp_path_factory.mktemp("why-kafka"), settings={"log.retention.check.interval.ms": CHECK_MS}, tells=[LOGGER])
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        yield Running(kafka, stack.enter_context(lab(kafka.bootstrap, tmp_path_factory.mktemp("why") / "lab.log")))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def records(count: int, size: int = 100) -> list[list[Record]]:
    """That many batches of one record."""
    return [[(None, size, None)] for _ in range(count)]


def log_start(running: Running, topic: str) -> int:
    (line,) = run_tool("get-offsets", "--bootstrap-server", running.kafka.bootstrap, "--topic", topic, "--time", "-2").split()
    return int(line.rsplit(":", 1)[1])


@dataclass(slots=True, kw_only=True)
class Losing:
    """A group that stands still. ``said`` are the moments of its loss, as they were predicted one after the other until it came."""

    topic: str
    said: list[int]
    there_ms: int = 0
    gone_ms: int = 0
    log_start: int = 0
    verdict: Kind = Kind.FINE

    def look(self, running: Running) -> None:
        asked_ms = now_ms()
        found, verdicts = running.why(self.topic)
        if found.partitions[0].lost_offsets:
            self.gone_ms, self.log_start, self.verdict = now_ms(), found.partitions[0].log_start, verdicts[0].kind
        else:
            self.there_ms = asked_ms
            self.said.append(found.partitions[0].loss_ms)


def test_a_group_loses_its_next_records_when_it_was_said(running: Running) -> None:
    groups = {limit: Losing(topic=f"why-lost-by-{limit}", said=[]) for limit in LIMITS}
    for limit, each in groups.items():
        create_topic(running.kafka.bootstrap, each.topic, config={"internal.segment.bytes": "5000", **LIMITS[limit]})
        running.lab.produce(each.topic, 0, records(1, 300))
        running.lab.commit(each.topic, "assign", [(each.topic, 0, 1)])
    began, appended, longest = time.monotonic(), 0, 0.0

    def all_lost() -> bool:
        nonlocal appended, longest
        due = int(APPENDS_A_SECOND * (time.monotonic() - began))
        longest = max(longest, (due - appended) / APPENDS_A_SECOND)
        for each in groups.values():
            running.lab.produce(each.topic, 0, records(due - appended, 300))
            if not each.gone_ms:
                each.look(running)
        appended = due
        return all(each.gone_ms for each in groups.values())

    until("both have lost records", all_lost, saw=lambda: groups)
    unsteady_ms = CHECK_MS + round(2000 * longest)  # a rate is one within limits, here those of the test's own appends
    for limit, each in groups.items():
        assert 1 < each.log_start <= log_start(running, each.topic)  # the tool asks a moment later, and retention goes on
        assert each.verdict is Kind.LOST
        slack_ms = unsteady_ms if limit == "size" else 0
        halfway = each.said[len(each.said) // 2]
        wrong = disproved(
            running.kafka.broker(1), halfway, there_ms=each.there_ms, gone_ms=each.gone_ms, early_ms=slack_ms, late_ms=slack_ms
        )
        assert not wrong, (limit, each.said, wrong)
