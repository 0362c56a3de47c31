"""What is said about retention from a broker's disk, held against what the broker then did."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from streaming.broker.protocol.listing_json import RetentionRow
from streaming.common.settings import Settings
from tests.broker.install import KAFKA_VERSION
from tests.broker.oracle import sizes_in
from tests.offline.lists import kept
from tests.recorded.recordings import Disk, Replayed, replay
from tests.recorded.worlds.retention import HOUR, TOPICS

BLOCKED = {"future": "future_timestamp", "head-of-line": "head_of_line", "active": "active_segment"}


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    """Before the broker looked for what to delete, after it, and after a limit was changed."""
    return replay("retention", KAFKA_VERSION, tmp_path_factory.mktemp("retention"))


def look(disk: Disk) -> dict[str, RetentionRow]:
    judged = kept(disk.log_dirs, Settings(server_properties=disk.properties), disk.now_ms).rows
    return {row.topic: row for row in judged if row.topic in TOPICS}


def predicted(judged: Mapping[str, RetentionRow]) -> dict[str, list[int]]:
    """The base offsets of the segments that will be left: without the prefix that is reclaimable, a new one where that is everything."""
    left = {}
    for topic, row in judged.items():
        reclaimable = row.retention_reclaimable_bytes
        assert reclaimable >= 0
        segments = sorted((int(path.stem), path.stat().st_size) for path in Path(row.log_dir).glob(f"{topic}-0/*.log"))
        while reclaimable:
            reclaimable -= segments.pop(0)[1]
        left[topic] = [base for base, _ in segments] or [row.log_end_offset]
    return left


def on_disk(disk: Disk) -> dict[str, list[int]]:
    directories = [path for log_dir in disk.log_dirs for path in log_dir.iterdir() if path.name.removesuffix("-0") in TOPICS]
    return {path.name.removesuffix("-0"): sorted(int(each.stem) for each in path.glob("*.log")) for path in directories}


def test_before_the_broker_looks_it_is_stated_what_is_to_be_deleted_and_what_holds_it_up(replayed: Replayed) -> None:
    judged = look(replayed.disk("before"))
    before, left = on_disk(replayed.disk("before")), predicted(judged)
    assert set(left) == set(TOPICS)
    assert {topic for topic in TOPICS if left[topic] != before[topic]} == {
        *("by-time", "all-gone", "idle", "by-size", "records-deleted", "by-the-broker", "born-again")
    }
    assert {topic: row.retention_blocked for topic, row in judged.items() if row.retention_blocked} == BLOCKED
    assert judged["records-deleted"].log_start_offset == 95
    assert (judged["by-the-broker"].limit_source, judged["by-the-broker"].retention_limit_ms) == ("static", 480 * 60_000)


def test_kafka_deletes_exactly_the_segments_that_were_predicted(replayed: Replayed) -> None:
    left = predicted(look(replayed.disk("before")))
    assert on_disk(replayed.disk("after")) == left
    assert predicted(look(replayed.disk("after"))) == left, "nothing more is to be deleted"


def test_a_limit_that_was_changed_takes_effect_and_the_others_are_as_they_were(replayed: Replayed) -> None:
    disk = replayed.disk("changed")
    changed = {**predicted(look(replayed.disk("after"))), "changed-while-running": [80]}
    judged = look(disk)
    assert on_disk(disk) == predicted(judged) == changed
    assert judged["changed-while-running"].retention_limit_ms == HOUR


def test_sizes_are_those_of_the_broker(replayed: Replayed) -> None:
    sizes = sizes_in(replayed.text("sizes"))
    assert {topic: row.size_bytes for topic, row in look(replayed.disk("changed")).items()} == {
        topic: sizes[1, topic, 0] for topic in TOPICS
    }
