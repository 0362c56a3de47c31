"""The coordinator's steps on disk."""

from dataclasses import replace
from pathlib import Path
from uuid import UUID

from streaming.simulator.coordinators import Coordinator, IdState, StoredTransaction
from streaming.simulator.log import PartitionLog
from streaming.simulator.segment_writer import LogConfig
from tests.builders import NOW, batch
from tests.facts import facts_of


class Cluster:
    """One partition of ``__transaction_state`` and one of data."""

    def __init__(self, path: Path, segment_bytes: int = 1 << 20) -> None:
        config = LogConfig(compacted=True, segment_bytes=segment_bytes)
        self.state = PartitionLog(path / "__transaction_state-0", "__transaction_state", 0, UUID(int=1), config)
        self.data = PartitionLog(path / "t-0", "t", 0, UUID(int=2))
        self._ids = iter(range(4000, 5000))
        self.coordinator = Coordinator([self.state], {("t", 0): self.data}, lambda now: next(self._ids))

    def transaction(self, transaction: StoredTransaction, *, committed: bool = True) -> StoredTransaction:
        """One transaction with one batch."""
        transaction = self.coordinator.add(transaction, "t", 0, NOW)
        self.data.append(batch(producer=transaction.producer_id, epoch=transaction.epoch, transactional=True))
        return self.coordinator.end(transaction, committed=committed, now=NOW + 5)


def test_transaction_goes_through_its_states(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    begun = cluster.coordinator.init("tx", 60_000, NOW)
    ongoing = cluster.coordinator.add(begun, "t", 0, NOW + 1)
    ended = cluster.coordinator.end(ongoing, committed=False, now=NOW + 2)
    assert (begun.state, begun.epoch, begun.started) == (IdState.EMPTY, 0, -1)
    assert (ongoing.state, ongoing.epoch, ongoing.started, ongoing.partitions) == (IdState.ONGOING, 0, NOW + 1, (("t", 0),))
    assert (ended.state, ended.epoch, ended.partitions) == (IdState.COMPLETE_ABORT, 1, ())
    assert cluster.state.log_end_offset == 4  # Empty, Ongoing, PrepareAbort, CompleteAbort


def test_partition_is_added_once(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    ongoing = cluster.coordinator.add(cluster.coordinator.init("tx", 60_000, NOW), "t", 0, NOW)
    assert cluster.coordinator.add(ongoing, "t", 0, NOW + 9) == ongoing
    assert cluster.state.log_end_offset == 2


def test_marker_has_the_next_epoch(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    ended = cluster.transaction(cluster.coordinator.init("tx", 60_000, NOW))
    data, marker = cluster.data.active.entries
    assert (data.producer_epoch, marker.producer_epoch, ended.epoch) == (0, 1, 1)
    assert facts_of(cluster.data).committed == 1


def test_a_client_of_before_version_2_keeps_its_epoch(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    ended = cluster.transaction(cluster.coordinator.init("tx", 60_000, NOW, client_version=0))
    data, marker = cluster.data.active.entries
    assert (data.producer_epoch, marker.producer_epoch, ended.epoch) == (0, 0, 0)


def test_used_up_epochs_bring_a_new_producer_id(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    almost = replace(cluster.coordinator.init("tx", 60_000, NOW), epoch=32_764)
    last = cluster.transaction(almost)
    assert (last.producer_id, last.epoch) == (4000, 32_765)
    new = cluster.transaction(last)
    assert (new.producer_id, new.previous_producer_id, new.epoch) == (4001, 4000, 0)


def test_cleaner_keeps_the_latest_record_of_every_id(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, segment_bytes=2_000)
    transaction, idle = cluster.coordinator.init("busy", 60_000, NOW), cluster.coordinator.init("idle", 60_000, NOW)
    for _ in range(20):
        transaction = cluster.transaction(transaction)
    cluster.coordinator.compact(NOW)
    held = [entry.base_offset for segment in cluster.state.segments[:-1] for entry in segment.entries if entry.records]
    assert held == [1]
    assert (idle.state, transaction.state) == (IdState.EMPTY, IdState.COMPLETE_COMMIT)
    assert facts_of(cluster.state).held.bytes < facts_of(cluster.state).appended.bytes / 2
