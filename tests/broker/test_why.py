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
    until("the marker is written", lambda: not running.why("why-held")[0].partitions[0].held, saw=lambda: running.why("why-held"))
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
    before = now_ms()
    running.lab.commit("why-stopped", "classic", [("why-stopped", 0, 2)])
    after = now_ms()
    running.kafka.until(lambda: bool(running.why("why-stopped")[1]), "the group counts as stopped", lambda: running.why("why-stopped"))
    running.lab.commit("why-stopped", "classic", [("why-stopped", 0, 2)])  # as auto-commit repeats it
    found, (verdict,) = running.why("why-stopped")
    assert verdict.kind is Kind.STOPPED
    assert before <= found.partitions[0].stopped_since_ms <= after
    assert (found.summary.type, found.summary.state, found.summary.members) == ("Classic", "Stable", 1)
    running.lab.commit("why-stopped", "classic", [("why-stopped", 0, 3)])
    assert running.why("why-stopped")[1] == []


@pytest.mark.parametrize(("kind", "type_"), [("classic", "Classic"), ("consumer", "Consumer")])
def test_a_group_whose_members_have_left(running: Running, kind: str, type_: str) -> None:
    group = topic = f"why-left-{kind}"
    create_topic(running.kafka.bootstrap, topic)
    running.lab.produce(topic, 0, records(5))
    joined = now_ms()
    running.lab.commit(group, kind, [(topic, 0, 2)])
    found, _ = running.why(group)
    assert (found.summary.type, found.summary.state, found.summary.members) == (type_, "Stable", 1)
    left = now_ms()
    running.lab.ask("leave", group=group)
    found, verdicts = running.why(group)
    assert (found.summary.state, found.summary.members) == ("Empty", 0)
    assert Kind.NO_MEMBERS in [each.kind for each in verdicts]
    since = joined if type_ == "Consumer" else left  # of a newer group only the time of its last assignment is stored
    assert since <= found.summary.state_ms <= now_ms()


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
