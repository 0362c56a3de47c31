"""What is said of a broker's disk, held against ``du``, kafka-log-dirs, and what the broker then deleted."""

import subprocess
from pathlib import Path

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.disk_json import DiskAnswer
from streaming.broker.protocol.listing_json import ALL_ROWS
from streaming.cluster.usage.disk_answer import answer_of
from streaming.cluster.usage.reckoning import parse_trial
from streaming.common.settings import Settings
from streaming.terminal.offline.disk_reading import DiskQuestion, read_disk
from streaming.terminal.offline.everything import read_topics
from tests.broker.install import KAFKA_VERSION
from tests.broker.oracle import sizes_in
from tests.recorded.recordings import Disk, Replayed, replay
from tests.recorded.worlds.disk import MINUTES, TRIALS


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    """Before and after limits were lowered, after a topic was deleted, with a replica that nobody knows, and when it was put aside."""
    return replay("disk", KAFKA_VERSION, tmp_path_factory.mktemp("disk"))


def look(disk: Disk, *trials: str, by: str = "partition") -> DiskAnswer:
    asked = DiskQuestion(now_ms=disk.now_ms, trials=[parse_trial(each) for each in trials])
    found = read_disk(open_log_dirs(disk.log_dirs), Settings(server_properties=disk.properties), asked)
    return answer_of(found, by, 1000)


def du(path: str) -> int:
    done = subprocess.run(["du", "-s", "-B1", path], capture_output=True, text=True, check=True)
    return int(done.stdout.split("\t")[0])


def kinds(disk: Disk) -> dict[str, int]:
    return {row.kind: row.taken for row in look(disk, by="kind").rows}


def bytes_of(disk: Disk) -> dict[str, int]:
    """Bytes of the live segments of each topic."""
    found: dict[str, int] = {}
    for log_dir in disk.log_dirs:
        for segment in log_dir.glob("*/*.log"):
            topic = segment.parent.name.rpartition("-")[0]
            found[topic] = found.get(topic, 0) + segment.stat().st_size
    return found


@pytest.mark.parametrize("state", ["before", "limited", "deleted", "unknown", "stray"])
def test_the_sum_is_that_of_du(replayed: Replayed, state: str) -> None:
    """With preallocated indexes, which take no room, and with what waits to be unlinked."""
    taken = {each.log_dir: each.taken for each in look(replayed.disk(state)).log_dirs}
    assert {path: du(path) for path in taken} == taken
    assert len(taken) == 2


def test_sizes_are_those_of_the_broker(replayed: Replayed) -> None:
    reported = sizes_in(replayed.text("sizes"))
    rows = {(row.broker, row.topic, row.partition): row.segments for row in look(replayed.disk("before")).rows if row.topic in MINUTES}
    assert rows == {place: reported[place] for place in rows}
    assert len(rows) == len(MINUTES)


def test_a_topic_costs_on_all_replicas_what_the_broker_said(replayed: Replayed) -> None:
    reported, disk = sizes_in(replayed.text("sizes")), replayed.disk("before")
    settings = Settings(server_properties=disk.properties)
    rows = read_topics(open_log_dirs(disk.log_dirs), (), settings, disk.now_ms).topics(f"limit={ALL_ROWS}&internal=false").rows
    found = {row.topic: (row.replica_bytes, row.replica_more) for row in rows if row.topic in MINUTES}
    assert found == {topic: (sum(size for (_, name, _), size in reported.items() if name == topic), False) for topic in MINUTES}


def test_what_is_freed_by_another_configuration_is_what_the_broker_then_deletes(replayed: Replayed) -> None:
    trials = [f"{topic}:{name}={value}" for topic, (name, value) in TRIALS.items()]
    before, limited = replayed.disk("before"), replayed.disk("limited")
    answer = look(before, *trials)
    predicted = {row.topic: row.frees_now for row in answer.rows if row.topic in TRIALS}
    assert [topic for topic, size in predicted.items() if not size] == ["young"]
    assert sum(each.frees_now for each in answer.in_force) == 0
    sizes, left = bytes_of(before), bytes_of(limited)
    assert {topic: left[topic] for topic in TRIALS} == {topic: sizes[topic] - size for topic, size in predicted.items()}
    assert kinds(limited)["deleted"] >= sum(predicted.values())
    assert {row.topic: row.frees_now for row in look(limited).rows if row.topic in TRIALS} == dict.fromkeys(TRIALS, 0)


def test_a_topic_that_is_deleted_and_a_replica_that_nobody_knows_are_distinguished(replayed: Replayed) -> None:
    assert {row.topic for row in look(replayed.disk("deleted")).rows if row.not_live and row.replicas == 0} == {"gone"}
    assert kinds(replayed.disk("deleted"))["delete"] > 0
    unknown = look(replayed.disk("unknown")).leftovers
    assert [(Path(each.path).name, each.kind) for each in unknown] == [("ghost-0", "foreign")]
    found = look(replayed.disk("stray")).leftovers
    assert [(Path(each.path).name.startswith("ghost-0."), each.kind) for each in found] == [(True, "stray")]
