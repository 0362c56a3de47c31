"""Logs that the cleaner is at: what it leaves between its renames, and files that it swaps between listing and reading."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.ladder.positions import CountedLog
from streaming.common.settings import Settings
from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinators import offset_commit_record
from streaming.simulator.log import PartitionLog
from streaming.terminal.offline import coordinator_logs, local_agent
from streaming.terminal.offline.group_reading import read_groups
from streaming.terminal.offline.local_agent import count_directory
from tests.builders import NOW, batch, log_dir, partition
from tests.group_answers import Groups, detailed
from tests.swaps import Swap, listing_passes

STEPS = 6
RIGHT = {"g": 6, "i": 1, "j": 9}
"""What is committed, whatever the cleaner does."""

CLEANED = {2, 3, 4}
"""The batches of the coordinator's log that a cleaning leaves, by their offsets; a later one leaves no tombstone, which is at 3."""


class Compacting:
    """A broker with a log of the coordinator and one of data, each of two closed segments and an active one."""

    def __init__(self, path: Path) -> None:
        self.disk = log_dir(path)
        self.coordinator = partition(self.disk, "__consumer_offsets", topic_id=7)
        self.orders = partition(self.disk, "orders", topic_id=8)
        for group, offset in (("g", 5), ("h", 7), (None, 0), ("g", 6), ("h", None), ("i", 1), (None, 0), ("j", 9)):
            if group is None:
                self.coordinator.roll()
            else:
                self.coordinator.append(committed(group, offset))
        for _ in range(2):
            self.orders.append(*(batch(10, timestamp=NOW - 1000) for _ in range(4)))
            self.orders.roll()
        self.orders.append(batch(18, timestamp=NOW - 1000))
        self.disk.write_high_watermarks()

    def read(self, progress: Callable[[int], None] = lambda _: None) -> Groups:
        settings = Settings(broker_config={"log.retention.ms": "604800000"})
        return detailed(read_groups(open_log_dirs([self.disk.path]), (), settings, NOW, progress=progress))


def committed(group: str, offset: int | None) -> Batch:
    record = offset_commit_record(group, "orders", 0, offset or 0, NOW - 1000)
    return Batch(records=(replace(record, value=None) if offset is None else record,))


def offsets(groups: Groups) -> dict[str, int]:
    """The offset of each group; everything is known but the cluster's metadata."""
    assert ["no metadata log" in doubt for doubt in groups.doubts] == [True], groups.doubts
    partitions = [(group.summary.group, of) for group in groups.groups for of in group.partitions]
    assert [of.unknown for _, of in partitions] == [""] * len(partitions)
    return {name: of.committed for name, of in partitions}


@pytest.fixture
def broker(tmp_path: Path) -> Compacting:
    return Compacting(tmp_path)


def coordinator_swap(broker: Compacting) -> Swap:
    return Swap(broker.coordinator, 2, CLEANED)


def data_swap(broker: Compacting) -> Swap:
    return Swap(broker.orders, 2, {30, 70})


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_in_each_moment_of_a_compaction_every_commit_is_there_once(broker: Compacting, steps: int) -> None:
    swap = coordinator_swap(broker)
    assert len(swap.steps) == STEPS
    swap.upto(steps)
    assert offsets(broker.read()) == RIGHT


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_in_each_moment_of_a_compaction_the_records_are_those_before_it_or_those_after(broker: Compacting, steps: int) -> None:
    data_swap(broker).upto(steps)
    left = {of.committed: of.lag_records_read_committed for group in broker.read().groups for of in group.partitions}
    before, after = {1: 97, 6: 92, 9: 89}, {1: 38, 6: 38, 9: 38}
    assert left in (before, after)
    assert offsets(broker.read()) == RIGHT


def after_listing(monkeypatch: pytest.MonkeyPatch, module: object, log: PartitionLog, act: Callable[[], None]) -> None:
    """Something happens to a log after it was listed for the first time."""
    acts = [act]

    def listed(directory: Path) -> tuple[Segment, ...]:
        segments = list_segments(directory)
        if directory == log.directory and acts:
            acts.pop()()
        return segments

    monkeypatch.setattr(module, "list_segments", listed)


@pytest.mark.parametrize("before", range(STEPS))
@pytest.mark.parametrize("after", range(1, STEPS + 1))
def test_files_that_are_swapped_between_listing_and_reading_lose_no_commit(
    broker: Compacting, monkeypatch: pytest.MonkeyPatch, before: int, after: int
) -> None:
    swap = coordinator_swap(broker)
    swap.upto(min(before, after))
    after_listing(monkeypatch, coordinator_logs, broker.coordinator, lambda: [step() for step in swap.steps[before:after]] and None)
    assert offsets(broker.read()) == RIGHT


@pytest.mark.parametrize("before", range(STEPS))
@pytest.mark.parametrize("after", range(1, STEPS + 1))
def test_files_that_are_swapped_between_listing_and_counting_lose_no_record(
    broker: Compacting, monkeypatch: pytest.MonkeyPatch, before: int, after: int
) -> None:
    swap = data_swap(broker)
    swap.upto(min(before, after))
    after_listing(monkeypatch, local_agent, broker.orders, lambda: [step() for step in swap.steps[before:after]] and None)
    groups = broker.read()
    assert offsets(groups) == RIGHT
    assert {of.lag_records_read_committed for group in groups.groups for of in group.partitions} in ({97, 92, 89}, {38})


@pytest.mark.parametrize("log", ["coordinator", "orders"])
def test_a_segment_that_gets_its_name_back_while_its_directory_is_listed_is_not_missing(
    broker: Compacting, monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    swap = coordinator_swap(broker) if log == "coordinator" else data_swap(broker)
    swap.upto(STEPS - 1)
    with listing_passes(monkeypatch, swap.steps[-1]):
        listed = list_segments(getattr(broker, log).directory)
    assert [segment.base_offset for segment in listed] == [0, getattr(broker, log).segments[-1].base_offset]


def test_what_was_deleted_does_not_come_back_when_its_tombstone_is_cleaned_away(broker: Compacting) -> None:
    """The first segment is read as it was before the first of two cleanings, the second one as it is after the other."""
    swaps = [Swap(broker.coordinator, 1, set()), Swap(broker.coordinator, 1, {2, 4}, first=1)]  # without the tombstone at 3
    windows = [0]

    def clean(_: int) -> None:
        windows[0] += 1
        if windows[0] == 1:
            for swap in swaps:
                swap.upto(len(swap.steps))

    assert offsets(broker.read(clean)) == RIGHT
    assert windows[0] > 1


def after_counting(monkeypatch: pytest.MonkeyPatch, log: PartitionLog, *acts: Callable[[], None]) -> list[Callable[[], None]]:
    """Things happen to a log, one after each time that it was counted; returns those that have not happened."""
    left = [*acts]

    def counted(directory: Path, *rest: Any) -> CountedLog:
        done = count_directory(directory, *rest)
        if directory == log.directory and left:
            left.pop(0)()
        return done

    monkeypatch.setattr(local_agent, "count_directory", counted)
    return left


def retention(log: PartitionLog, base_offset: int) -> Callable[[], None]:
    """Delete a segment, as the broker does."""

    def delete() -> None:
        for path in log.directory.glob(f"{base_offset:020}.*"):
            path.rename(f"{path}.deleted")

    return delete


def lags(groups: Groups) -> dict[str, tuple[str, int, int]]:
    """Why the lag of each group is not known, its log start, and the records that are left."""
    partitions = [(group.summary.group, of) for group in groups.groups for of in group.partitions]
    return {name: (of.unknown, of.log_start, of.lag_records_read_committed) for name, of in partitions}


@pytest.mark.parametrize("steps", range(1, STEPS + 1))
def test_files_that_are_swapped_after_they_were_counted_are_counted_again(
    broker: Compacting, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    left = after_counting(monkeypatch, broker.orders, lambda: data_swap(broker).upto(steps))
    assert {(unknown, start) for unknown, start, _ in lags(broker.read()).values()} == {("", 0)}
    assert not left


def test_what_is_deleted_after_the_log_start_was_read_is_lost_and_the_rest_is_counted(
    broker: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_agent, "list_segments", lambda directory: [retention(broker.orders, 0)()] and list_segments(directory))
    groups = broker.read()
    assert lags(groups) == dict.fromkeys(RIGHT, ("", 40, 58))
    assert {group.summary.verdict for group in groups.groups if group.partitions} == {"lost"}


def test_what_is_deleted_again_and_again_is_looked_at_again(broker: Compacting, monkeypatch: pytest.MonkeyPatch) -> None:
    left = after_counting(monkeypatch, broker.orders, retention(broker.orders, 0), retention(broker.orders, 40))
    assert (lags(broker.read()), left) == (dict.fromkeys(RIGHT, ("", 80, 18)), [])


def test_a_log_that_changes_each_time_is_not_looked_at_for_ever(broker: Compacting, monkeypatch: pytest.MonkeyPatch) -> None:
    first, copy = broker.orders.segments[0].path("log"), broker.orders.directory.parent / "copy"

    def exchange() -> None:
        copy.write_bytes(first.read_bytes())
        copy.replace(first)

    left = after_counting(monkeypatch, broker.orders, *[exchange] * 9)
    groups = broker.read()
    assert lags(groups) == dict.fromkeys(RIGHT, ("filling", 0, -1))
    assert len(left) == 9 - 3
    assert {each.text for group in groups.groups for each in group.findings if each.topic} == {
        "not known: segments of the partition were deleted while they were read here; ask again, or ask a job"
    }
