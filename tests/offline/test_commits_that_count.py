"""Which commits count from log dirs: the newest of each key below the high watermark, whatever is above it."""

from dataclasses import replace
from pathlib import Path

import pytest

from streaming.broker.disk.availability import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail
from streaming.common.settings import Settings
from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinators import SimulatedMember, classic_group_record, offset_commit_record
from streaming.terminal.offline import coordinator_logs
from streaming.terminal.offline.everything import read_everything
from streaming.terminal.offline.group_reading import read_groups
from tests.builders import NOW, abort, batch, commit, log_dir, partition
from tests.group_answers import Groups, detailed, verdicts

MINUTE = 60_000
PRODUCER = 9
WAITS = "commit_not_replicated"


class Coordinator:
    """A running broker that has written its high watermarks at some moment, and gone on since."""

    def __init__(self, path: Path) -> None:
        self.disk = log_dir(path)
        self.log = partition(self.disk, "__consumer_offsets", topic_id=7)
        self.orders = partition(self.disk, "orders", topic_id=8)
        self.orders.append(batch(1000, timestamp=NOW - 60 * MINUTE))

    def commit(self, offset: int | None, group: str = "g", *, at: int = NOW - 30 * MINUTE, producer: int = -1) -> None:
        record = offset_commit_record(group, "orders", 0, offset or 0, at)
        if offset is None:
            record = replace(record, value=None)
        in_transaction = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
        self.log.append(Batch(records=(record,), **(in_transaction if producer >= 0 else {})))

    def rebalance(self, group: str, members: int) -> None:
        every = [SimulatedMember(f"m{number}", f"c{number}", (number,)) for number in range(members)]
        self.log.append(Batch(records=(classic_group_record(group, members + 1, "orders", every, NOW - MINUTE),)))

    def checkpoint(self) -> None:
        self.disk.write_high_watermarks()

    def read(self, *names: str, assume_replicated: bool = False) -> Groups:
        settings = Settings(broker_config={"log.retention.ms": "604800000"}, assume_replicated=assume_replicated)
        return detailed(read_groups(open_log_dirs([self.disk.path]), names, settings, NOW))

    def one(self, name: str = "g") -> GroupDetail:
        (group,) = (each for each in self.read().groups if each.summary.group == name)
        assert self.read(name).groups == (group,)
        return group


@pytest.fixture
def coordinator(tmp_path: Path) -> Coordinator:
    return Coordinator(tmp_path)


def offsets(group: GroupDetail) -> list[tuple[int, str]]:
    return [(each.committed, each.unknown) for each in group.partitions]


def test_of_many_commits_the_newest_below_the_high_watermark_counts(coordinator: Coordinator) -> None:
    for offset in range(300):
        if offset == 201:
            coordinator.checkpoint()
        coordinator.commit(offset)
    (of,) = coordinator.one().partitions
    assert (of.committed, of.lag_records_read_committed, of.unknown) == (200, 800, "")
    assert not any("high watermark" in doubt for doubt in coordinator.read().doubts)


def test_a_partition_of_which_every_commit_waits_is_there_with_the_reason(coordinator: Coordinator) -> None:
    coordinator.commit(10, "before")
    coordinator.checkpoint()
    coordinator.commit(20)
    group = coordinator.one()
    assert (offsets(group), verdicts(group), group.summary.unknown) == ([(-1, WAITS)], ["unknown"], 1)
    assert (group.summary.state, group.summary.members) == ("Unknown", -1)
    assert offsets(coordinator.one("before")) == [(10, "")]


def test_a_tombstone_above_the_high_watermark_deletes_nothing(coordinator: Coordinator) -> None:
    coordinator.commit(10)
    coordinator.checkpoint()
    coordinator.commit(None)
    assert offsets(coordinator.one()) == [(10, "")]
    coordinator.checkpoint()
    assert coordinator.one().partitions == []


def test_a_rebalance_above_the_high_watermark_leaves_the_group_as_it_was(coordinator: Coordinator) -> None:
    coordinator.rebalance("g", 2)
    coordinator.checkpoint()
    coordinator.rebalance("g", 3)
    coordinator.rebalance("new", 1)
    (group, new) = coordinator.read().groups
    assert (group.summary.state, group.summary.members, group.summary.epoch) == ("Stable", 2, 3)
    assert (new.summary.state, new.summary.members, new.summary.verdict) == ("Unknown", -1, "unknown")
    assert "above the high watermark" in new.findings[0].text
    coordinator.checkpoint()
    assert coordinator.one("new").summary.members == 1


@pytest.mark.parametrize("ending", [commit, abort])
def test_a_commit_whose_marker_is_above_the_high_watermark_is_pending(coordinator: Coordinator, ending: type) -> None:
    coordinator.commit(10)
    coordinator.commit(20, producer=PRODUCER)
    coordinator.checkpoint()
    coordinator.log.append(ending(PRODUCER))
    (of,) = coordinator.one().partitions
    assert (of.committed, [each.offset for each in of.pending]) == (10, [20])
    coordinator.checkpoint()
    (of,) = coordinator.one().partitions
    assert (of.committed, of.pending) == (20 if ending is commit else 10, [])


def test_since_when_an_offset_has_not_moved_is_of_the_commit_that_counts(coordinator: Coordinator) -> None:
    for minutes in (50, 40, 20):
        coordinator.commit(10, at=NOW - minutes * MINUTE)
    coordinator.checkpoint()
    coordinator.commit(11, at=NOW - 2000)
    coordinator.commit(10, at=NOW - 1000)
    (of,) = coordinator.one().partitions
    assert (of.committed, of.stopped_since_ms) == (10, NOW - 50 * MINUTE)


def test_more_than_is_kept_apart_makes_a_doubt_and_no_other_answer(coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator_logs, "MOST_KEPT", 5)
    coordinator.commit(10)
    coordinator.commit(20, "quiet")
    coordinator.checkpoint()
    for offset in range(11, 30):
        coordinator.commit(offset)
    assert offsets(coordinator.one()) == [(-1, WAITS)]
    assert offsets(coordinator.one("quiet")) == [(20, "")]


def test_deletions_above_the_high_watermark_that_are_forgotten_delete_nothing(coordinator: Coordinator) -> None:
    coordinator.commit(10)
    coordinator.checkpoint()
    coordinator.commit(None)
    for number in range(200):
        coordinator.commit(1, f"console-{number}")
        coordinator.commit(None, f"console-{number}")
    assert offsets(coordinator.one()) == [(10, "")]


def test_everything_that_top_shows_of_log_dirs_is_as_of_the_high_watermark_too(coordinator: Coordinator) -> None:
    coordinator.commit(10)
    coordinator.checkpoint()
    coordinator.commit(20)
    coordinator.commit(5, "new")
    state = read_everything(open_log_dirs([coordinator.disk.path]), Settings(), NOW)
    found = {name: group for name in ("g", "new") if (group := state.group(name)) is not None}
    assert {name: offsets(group) for name, group in found.items()} == {"g": [(10, "")], "new": [(-1, WAITS)]}


def test_of_a_log_without_a_high_watermark_the_groups_are_there_and_not_known(coordinator: Coordinator) -> None:
    """Not 0: a broker has those logs alone in its checkpoint that its last run was told of."""
    coordinator.commit(10)
    coordinator.disk.write_checkpoint("replication-offset-checkpoint", [("other", 0, 5)])
    assert offsets(coordinator.one()) == [(-1, "coordinator_not_observed")]
    assert any(doubt.startswith("no high watermark of __consumer_offsets-0 was written") for doubt in coordinator.read().doubts)
    assert [offsets(group) for group in coordinator.read(assume_replicated=True).groups] == [[(10, "")]]
