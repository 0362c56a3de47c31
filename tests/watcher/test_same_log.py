"""A log whose topic id is lost for a while, comes late, or is another one by then: the files show that it is the same log."""

from pathlib import Path
from uuid import UUID

import pytest

from streaming.common.rows import Kind
from streaming.simulator.log import PartitionLog
from streaming.simulator.segment_writer import encode_partition_metadata
from tests.agents import Agent, Reader
from tests.builders import batch, log_dir, partition
from tests.events import Shard
from tests.watcher.scene import Scene

NEW = UUID(int=77)


def metadata(log: PartitionLog) -> Path:
    return log.directory / "partition.metadata"


def appended(world: Scene) -> int:
    return sum(event.records for event in world.station.events if event.kind is Kind.APPENDED)


@pytest.mark.parametrize("restarted", ["", "replace"])
def test_a_directory_without_its_topic_id_holds_the_log_that_it_held(world: Scene, restarted: str) -> None:
    world.play("3 look")
    kept = metadata(world.log()).read_bytes()
    metadata(world.log()).unlink()
    assert world.play(f"{restarted} look all 1 roll 1 hint") == "- | - | 3-4 4-5/4"
    metadata(world.log()).write_bytes(kept)
    assert world.result("2 look") == "5-7/4"
    assert appended(world) == 7


@pytest.mark.parametrize("seen_without", ["", "look"])
def test_files_under_another_topic_id_are_read_on(world: Scene, seen_without: str) -> None:
    world.play("3 look")
    metadata(world.log()).unlink()
    world.play(seen_without)
    metadata(world.log()).write_bytes(encode_partition_metadata(NEW))
    assert world.play("4 hint") == "gone(moved,d0) at3 3-7"
    assert (appended(world), world.station.fold_of("t").next_offset) == (7, 7)
    assert world.play("replace 1 look") == "7-8"


@pytest.mark.parametrize("replaced", [False, True])
def test_a_log_from_before_topics_had_ids_goes_on_when_it_gets_one(world: Scene, replaced: bool) -> None:
    world.play("new0 3 look")
    metadata(world.log()).write_bytes(encode_partition_metadata(NEW))
    if replaced:
        world.station.replace_watcher()
    world.play("4 look")
    assert appended(world) == 7
    assert [tail.cursor.log.topic_id for tail in world.station.watcher.tails()] == ["AAAAAAAAAAAAAAAAAAAATQ"]


def test_the_files_of_another_log_under_another_topic_id_are_another_log(world: Scene) -> None:
    """Also where they have the numbers of the old files."""
    assert world.result("3 look remove new77 3 look") == "at0 0-3 | gone(deleted,d0) at0 0-3"


def test_topic_counters_neither_fall_nor_double_when_a_topic_id_is_lost_and_comes_back(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(100))
    agent, shard = Agent(disk.path), Shard()
    reader = Reader(agent).begin()
    shard.fold(*reader.step())
    kept = metadata(log).read_bytes()
    for content in (None, encode_partition_metadata(NEW), kept):
        if content is None:
            metadata(log).unlink()
        else:
            metadata(log).write_bytes(content)
        agent.look()
        shard.fold(*reader.step())
    assert sum(state.share_records for state in shard.states.values()) == 100
    agent.close()
