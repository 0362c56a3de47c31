"""`segtail count`, and every position of the ladder, against what Kafka's own consumer really got."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.ladder.positions import count_log
from tests.broker.install import KAFKA_VERSION
from tests.broker.kafka_tools import TopicPartition
from tests.commands import run_command
from tests.recorded.recordings import Disk, replay
from tests.recorded.worlds.count import ISOLATIONS, TOPICS


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The disk of a broker that was stopped after its consumer had read it: offsets by isolation, topic and partition; and our rows."""

    disk: Disk
    consumed: Mapping[str, Mapping[TopicPartition, list[int]]]
    rows: Mapping[TopicPartition, Mapping[str, Any]]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Counted:
    """All of `TOPICS`."""
    replayed = replay("count", KAFKA_VERSION, tmp_path_factory.mktemp("counted"))
    consumed = {isolation: {(topic, number): offsets for topic, number, offsets in replayed.json(isolation)} for isolation in ISOLATIONS}
    rows = {(row["topic"], row["partition"]): row for row in count(replayed.disk(), "--by", "partition")}
    return Counted(disk=replayed.disk(), consumed=consumed, rows=rows)


def count(disk: Disk, *arguments: str) -> list[dict[str, Any]]:
    dirs = ",".join(map(str, disk.log_dirs))
    done = run_command("count", "--log-dirs", dirs, "--format", "json", *arguments, *TOPICS)
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return found


def test_as_many_records_as_a_consumer_gets(counted: Counted) -> None:
    committed, uncommitted = counted.consumed["read_committed"], counted.consumed["read_uncommitted"]
    assert {place: row["readable"] for place, row in counted.rows.items()} == {key: len(found) for key, found in committed.items()}
    assert {place: row["data"] for place, row in counted.rows.items()} == {key: len(found) for key, found in uncommitted.items()}
    by_topic = {row["topic"]: row["readable"] for row in count(counted.disk)}
    assert by_topic == {topic: sum(len(found) for key, found in committed.items() if key[0] == topic) for topic in TOPICS}


def test_from_every_offset_on_as_many_as_a_consumer_gets(counted: Counted) -> None:
    """Not only from the beginning: from each offset at which a group might be, inside batches too."""
    for (topic, number), row in counted.rows.items():
        (directory,) = (path / f"{topic}-{number}" for path in counted.disk.log_dirs if (path / f"{topic}-{number}").exists())
        first, end, stable = (row[name] for name in ("first_offset", "next_offset", "last_stable_offset"))
        positions = count_log(list_segments(directory), 0, window()).positions(range(first, end + 1), end)
        at = {position.offset: position for position in positions}
        uncommitted = counted.consumed["read_uncommitted"][topic, number]
        committed = counted.consumed["read_committed"][topic, number]
        for offset in range(first, end + 1):
            assert at[end].data - at[offset].data == sum(one >= offset for one in uncommitted), (topic, number, offset)
            if offset <= stable:
                readable = at[stable].data - at[stable].aborted - at[offset].data + at[offset].aborted
                assert readable == sum(one >= offset for one in committed), (topic, number, offset)
                following = next((one for one in committed if one >= offset), at[stable].next_offset)
                assert at[offset].next_offset == following, (topic, number, offset)


def test_the_logs_have_everything_that_is_counted_in_a_special_way(counted: Counted) -> None:
    rows = counted.rows
    assert all(rows["count-transactions", number]["aborted"] > 0 for number in (0, 1))
    assert rows["count-transactions", 1]["waiting"] == 10
    assert rows["count-deleted", 0]["first_offset"] == 47
    compacted = rows["count-compacted", 0]
    assert compacted["data"] + compacted["control"] < compacted["next_offset"]
    assert rows["count-old", 0]["data"] == 54
