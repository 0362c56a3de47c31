"""What is said about groups that do not go on, on a live broker, held against what the broker then does."""

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
from tests.broker.group_consuming import described
from tests.broker.group_oracle import told_by_tool
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import run_tool
from tests.broker.lab import Lab, Record, lab
from tests.processes import until

RETENTION_MS, CHECK_MS = 25_000, 2_000
_SLACK_MS = 1_500  # for a broker that is busy when a check is due
_STOPPED_AFTER = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Running:
    """A broker and its clients."""

    kafka: Kafka
    lab: Lab

    def why(self, group: str) -> tuple[GroupDetail, list[GroupVerdict]]:
        """What the disks show of a group now."""
        now_ms = time.time_ns() // 1_000_000
        settings = Settings(group_stopped_after=_STOPPED_AFTER, server_properties=(self.kafka.broker(1).properties,))
        answer = read_groups(open_log_dirs(self.kafka.log_dirs), [group], settings, now_ms)
        assert (answer.missing, answer.doubts) == ((), ())
        (found,) = answer.groups
        return found, [each for each in judge(found, now_ms, Bounds()) if each.kind is not Kind.FINE]


@pytest.fixture(scope="module")
def running(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with ExitStack() as stack:
        yield Running(kafka, stack.enter_context(lab(kafka.bootstrap, tmp_path_factory.mktemp("why") / "lab.log")))


def records(count: int, size: int = 100) -> list[list[Record]]:
    """That many batches of one record."""
    return [[(None, size, None)] for _ in range(count)]


def test_a_group_that_an_open_transaction_holds_up(running: Running) -> None:
    create_topic(running.kafka.bootstrap, "why-held")
    running.lab.produce("why-held", 0, records(5))
    running.lab.ask("begin", transaction="why holder")
    running.lab.produce("why-held", 0, records(2), transaction="why holder")
    running.lab.produce("why-held", 0, records(3))
    running.lab.commit("why-held", "assign", [("why-held", 0, 5)])
    _, (verdict,) = running.why("why-held")
    assert verdict.kind is Kind.HELD
    assert 'transactional id "why holder"' in verdict.text
    assert "5 offsets from 5 on cannot be read" in verdict.text
    assert "its producer ends the transaction, or its coordinator does" in verdict.command.reason
    running.lab.ask("end", transaction="why holder", commit=True)
    until("the marker is written", lambda: not running.why("why-held")[0].partitions[0].held)  # it comes after the answer
    found, verdicts = running.why("why-held")
    assert (found.partitions[0].held, found.partitions[0].lag_records_read_committed, verdicts) == (False, 5, [])


def test_a_group_with_nothing_but_markers_left(running: Running) -> None:
    create_topic(running.kafka.bootstrap, "why-markers")
    with running.lab.transaction("why marks", commit=True):
        running.lab.produce("why-markers", 0, records(3), transaction="why marks")
    with running.lab.transaction("why marks", commit=False):
        running.lab.produce("why-markers", 0, records(2), transaction="why marks")
    running.lab.commit("why-markers", "assign", [("why-markers", 0, 3)])
    _, (verdict,) = running.why("why-markers")
    assert (verdict.kind, verdict.text) == (
        Kind.ONLY_MARKERS,
        "nothing to do: the last 4 offsets are only markers, aborted or compacted records",
    )
    assert told_by_tool(described(running.kafka))["why-markers", "why-markers", 0] == (3, 7, 4)  # what Kafka's own tool makes of it


def test_a_group_that_has_stopped_although_it_has_a_member_and_a_record_to_read(running: Running) -> None:
    create_topic(running.kafka.bootstrap, "why-stopped")
    running.lab.produce("why-stopped", 0, records(5))
    running.lab.commit("why-stopped", "classic", [("why-stopped", 0, 2)])
    began = time.time_ns() // 1_000_000
    running.kafka.until(lambda: bool(running.why("why-stopped")[1]), "the group counts as stopped")
    running.lab.commit("why-stopped", "classic", [("why-stopped", 0, 2)])  # as auto-commit repeats it
    found, (verdict,) = running.why("why-stopped")
    assert verdict.kind is Kind.STOPPED
    assert abs(found.partitions[0].stopped_since_ms - began) < 2000
    assert (found.summary.type, found.summary.state, found.summary.members) == ("Classic", "Stable", 1)
    running.lab.commit("why-stopped", "classic", [("why-stopped", 0, 3)])
    assert running.why("why-stopped")[1] == []


@pytest.mark.parametrize(("kind", "type_"), [("classic", "Classic"), ("consumer", "Consumer")])
def test_a_group_whose_members_have_left(running: Running, kind: str, type_: str) -> None:
    group = topic = f"why-left-{kind}"
    create_topic(running.kafka.bootstrap, topic)
    running.lab.produce(topic, 0, records(5))
    running.lab.commit(group, kind, [(topic, 0, 2)])
    found, _ = running.why(group)
    assert (found.summary.type, found.summary.state, found.summary.members) == (type_, "Stable", 1)
    left = time.time_ns() // 1_000_000
    running.lab.ask("leave", group=group)
    found, verdicts = running.why(group)
    assert (found.summary.state, found.summary.members) == ("Empty", 0)
    assert Kind.NO_MEMBERS in [each.kind for each in verdicts]
    assert abs(found.summary.state_ms - left) < 5000


def test_a_share_group_has_left_what_its_coordinator_says(running: Running) -> None:
    create_topic(running.kafka.bootstrap, "why-shared")
    running.lab.produce("why-shared", 0, records(12))
    running.lab.ask("share", group="why-shared", topic="why-shared", answers="aarxa")
    (told,) = [each for each in running.lab.commits() if each.group == "why-shared"]
    found, _ = running.why("why-shared")
    (of,) = found.partitions
    assert (of.topic, of.committed, of.lag_records_read_uncommitted) == ("why-shared", told.offset, told.lag)
    assert (found.summary.type, found.summary.members, told.lag > 0) == ("Share", 1, True)
    running.lab.ask("leave", group="why-shared")


def log_start(running: Running, topic: str) -> int:
    (line,) = run_tool("get-offsets", "--bootstrap-server", running.kafka.bootstrap, "--topic", topic, "--time", "-2").split()
    return int(line.rsplit(":", 1)[1])


@pytest.mark.parametrize(
    ("limit", "config"),
    [
        ("time", {"retention.ms": str(RETENTION_MS)}),
        ("size", {"retention.ms": "-1", "retention.bytes": "40000"}),
    ],
)
def test_a_group_loses_its_next_records_when_it_was_said(running: Running, limit: str, config: dict[str, str]) -> None:
    topic = f"why-lost-by-{limit}"
    create_topic(running.kafka.bootstrap, topic, config={"internal.segment.bytes": "5000", **config})
    running.lab.produce(topic, 0, records(1, 300))
    running.lab.commit(topic, "assign", [(topic, 0, 1)])
    began, appended, said = time.monotonic(), 0, list[int]()
    there = 0  # when it was last seen whole, Unix milliseconds
    while True:
        due = int(4 * (time.monotonic() - began))  # at a steady rate
        running.lab.produce(topic, 0, records(due - appended, 300))
        appended = due
        asked = time.time_ns() // 1_000_000
        found, verdicts = running.why(topic)
        if found.partitions[0].lost_offsets:
            break
        there = asked
        said.append(found.partitions[0].loss_ms)
        assert time.monotonic() < began + 120, "nothing was deleted"
        time.sleep(0.5)
    gone = time.time_ns() // 1_000_000
    assert 1 < found.partitions[0].log_start <= log_start(running, topic)  # the tool asks a moment later, and retention goes on
    assert verdicts[0].kind is Kind.LOST
    halfway = said[len(said) // 2]
    assert gone >= halfway - _SLACK_MS, (limit, [gone - each for each in said])
    assert there <= halfway + CHECK_MS + _SLACK_MS, (limit, [there - each for each in said])
