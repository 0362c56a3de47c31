"""What a watcher says is decided of its logs: by metadata, configurations and checkpoints, and only what changed."""

from typing import Any
from unittest.mock import create_autospec

import numpy as np
import pytest

from streaming.broker.watcher import found_events, offset_checkpoints
from streaming.broker.watcher.cluster_knowledge import Cluster
from streaming.broker.watcher.found_events import CHECK_MS, partitions_of
from streaming.common.catalog import EPOCHS, MOST_EPOCHS, UNREADABLE, Version, packed_epochs
from streaming.common.log_key import LogKey
from streaming.kafka.formats.metadata_partitions import PartitionState
from streaming.kafka.formats.names import LEADER_EPOCH_CHECKPOINT
from streaming.simulator.log import LogDir, PartitionLog
from streaming.simulator.segment_writer import encode_leader_epochs, replace_file
from tests.builders import batch, partition
from tests.watcher.station import Station

TOPIC, PARTITION, LOG = range(3)


class Asker:
    """Asks for what changed since it asked last."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._known: list[Version] = []
        self.whole = False

    def changes(self, table: int) -> list[dict[str, Any]]:
        self._station.clock.now += CHECK_MS
        self._station.turn(self._station.everything())
        reported = self._station.watcher.decided(self._known)
        assert reported is not None
        self._known, self.whole = [reported.version], reported.whole
        return reported.tables[table].to_pylist()


@pytest.fixture
def log(disk: LogDir) -> PartitionLog:
    made = partition(disk, "t")
    made.append(batch(2))
    return made


@pytest.fixture
def asker(station: Station, log: PartitionLog) -> Asker:
    station.look()
    return Asker(station)


def test_without_metadata_nobody_is_stated_to_lead(asker: Asker) -> None:
    (row,) = asker.changes(PARTITION)
    assert (row["leader"], row["leader_epoch"], row["isr"], row["replicas"]) == (-2, -1, None, None)


def test_a_change_of_leader_or_in_sync_replicas_is_reported(asker: Asker, station: Station) -> None:
    asker.changes(PARTITION)
    (tail,) = station.watcher.tails()
    station.cluster.leaders[tail.cursor.log], station.cluster.changes = (2, 5), 1
    (row,) = asker.changes(PARTITION)
    assert (row["leader"], row["leader_epoch"], row["isr"], row["replicas"]) == (2, 5, [2], [2])
    station.cluster.replicas[tail.cursor.log], station.cluster.changes = (2, 3), 2
    (row,) = asker.changes(PARTITION)
    assert (row["leader"], row["isr"]) == (2, [2, 3])
    station.cluster.metadata_versions[2], station.cluster.changes = 20, 3
    (row,) = asker.changes(PARTITION)
    assert row["leader_metadata_version"] == 20
    station.cluster.changes = 4
    assert asker.changes(PARTITION) == []
    station.cluster.metadata_versions[0], station.cluster.leaders[tail.cursor.log], station.cluster.changes = 21, (0, 6), 5
    (row,) = asker.changes(PARTITION)
    assert (row["leader"], row["leader_metadata_version"]) == (0, 21)
    station.cluster.leaders[tail.cursor.log], station.cluster.metadata_versions[-1], station.cluster.changes = (-1, 7), 22, 6
    (row,) = asker.changes(PARTITION)
    assert (row["leader"], row["leader_metadata_version"]) == (-1, -1)


@pytest.mark.parametrize(("isr", "eligible"), [((), [1, 2]), ((3,), [1, 2])])
def test_who_is_eligible_to_lead_is_reported_whether_one_is_in_sync_or_not(isr: tuple[int, ...], eligible: list[int]) -> None:
    state = PartitionState(replicas=(1, 2, 3), isr=isr, leader=-1, leader_epoch=4, partition_epoch=9, eligible_leader_replicas=(1, 2))
    cluster = create_autospec(Cluster)
    cluster.partition.return_value = state
    (row,) = partitions_of([LogKey(1, "t", 0, "id")], cluster).to_pylist()
    assert (row["isr"], row["eligible"]) == ([*isr], eligible)


def test_a_topic_is_reported_once_with_what_is_configured(asker: Asker, station: Station, disk: LogDir) -> None:
    partition(disk, "t", 1)
    station.look()
    (row,) = asker.changes(TOPIC)
    assert (row["broker"], row["topic"], row["configs"]) == (1, "t", "")
    station.cluster.set_for["t"], station.cluster.changes = '{"topic":{"retention.ms":"5"}}', 1
    (row,) = asker.changes(TOPIC)
    assert row["configs"] == '{"topic":{"retention.ms":"5"}}'
    assert not asker.whole


def test_checkpoints_are_reported_for_each_log_as_they_are_replaced(asker: Asker, disk: LogDir) -> None:
    (row,) = asker.changes(LOG)
    assert (row["high_watermark"], row["cleaner_checkpoint"], row["log_start_checkpoint"]) == (-1, -1, -1)
    disk.write_checkpoint("replication-offset-checkpoint", [("t", 0, 2)])
    disk.write_checkpoint("log-start-offset-checkpoint", [("t", 0, 1)])
    disk.write_checkpoint("cleaner-offset-checkpoint", [("t", 0, 1)])
    (row,) = asker.changes(LOG)
    assert (row["high_watermark"], row["cleaner_checkpoint"], row["log_start_checkpoint"]) == (2, 1, 1)
    disk.write_checkpoint("replication-offset-checkpoint", [("t", 0, 2)])
    assert asker.changes(LOG) == []


def test_another_process_shows_all_there_is(asker: Asker, station: Station) -> None:
    asker.changes(LOG)
    station.replace_watcher()
    station.look()
    assert len(asker.changes(LOG)) == 1
    assert asker.whole


def test_positions_of_recovery_points_are_looked_up_in_turn_though_no_broker_writes(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offset_checkpoints, "MOST_LOOKUPS", 1)
    for number in range(3):
        made = partition(disk, "t", number, index_interval_bytes=0)
        made.append(batch(2))
        made.append(batch(2))
        made.append(batch(2))
    disk.write_checkpoint("recovery-point-offset-checkpoint", [("t", number, 4) for number in range(3)])
    station.look()
    asker = Asker(station)
    found = {}
    for looks in range(1, 5):
        found |= {row["partition"]: row["recovery_position"] for row in asker.changes(LOG)}
        assert sum(position > 0 for position in found.values()) >= min(looks, 3)
    assert len(set(found.values())) == 1
    assert asker.changes(LOG) == []
    disk.write_checkpoint("recovery-point-offset-checkpoint", [("t", 0, 4), ("t", 1, 6), ("t", 2, 4)])
    assert [(row["partition"], row["recovery_point"]) for row in asker.changes(LOG)] == [(1, 6)]


def test_only_what_stands_for_another_log_is_read_again(asker: Asker, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    partition(disk, "u", topic_id=2).append(batch(1))
    disk.write_high_watermarks()
    assert len(asker.changes(LOG)) == 2
    monkeypatch.setattr(found_events.LogRows, "__init__", None)
    disk.write_checkpoint("replication-offset-checkpoint", [("t", 0, 1), ("u", 0, 1)])
    (row,) = asker.changes(LOG)
    assert (row["topic"], row["high_watermark"]) == ("t", 1)
    (disk.path / "replication-offset-checkpoint").write_text("damaged")
    assert [row["high_watermark"] for row in asker.changes(LOG)] == [UNREADABLE] * 2


def test_a_copy_in_another_log_dir_is_reported_while_it_is_there(asker: Asker, disk: LogDir) -> None:
    asker.changes(LOG)
    copy = partition(disk, "t", name=f"t-0.{1:032x}-future")
    assert [row["moving"] for row in asker.changes(LOG)] == [1]
    assert asker.changes(LOG) == []
    copy.rename(f"t-0.{1:032x}-delete")
    assert [row["moving"] for row in asker.changes(LOG)] == [0]


def test_leader_epochs_are_reported_with_when_they_began(asker: Asker, station: Station, log: PartitionLog) -> None:
    def epochs() -> list[tuple[int, int, int]]:
        found = asker.changes(LOG)
        return np.frombuffer(found[0]["epochs"], EPOCHS).tolist() if found else []

    assert epochs() == [(0, 0, -1)]
    (tail,) = station.watcher.tails()
    station.cluster.begun[tail.cursor.log], station.cluster.changes = ((0, 500), (1, 900)), 1
    assert epochs() == [(0, 0, 500)]
    log.append(batch(3), leader_epoch=1)
    station.look()
    station.cluster.changes = 2
    assert epochs() == [(0, 0, 500), (1, 2, 900)]
    assert epochs() == []


def test_a_leader_epoch_without_records_is_reported_as_its_checkpoint_has_it(asker: Asker, station: Station, log: PartitionLog) -> None:
    """By it a replica is judged that its leader refuses."""
    asker.changes(LOG)
    replace_file(log.directory / LEADER_EPOCH_CHECKPOINT, encode_leader_epochs([(0, 0), (5, log.log_end_offset)]))
    station.look()
    (row,) = asker.changes(LOG)
    assert np.frombuffer(row["epochs"], EPOCHS)["epoch"].tolist() == [0, 5]


def test_of_many_leader_epochs_the_latest_are_reported_and_when_the_partition_was_created() -> None:
    packed = packed_epochs({epoch: 10 * epoch for epoch in range(3, 40)}, {0: 500, 39: 900})
    rows = np.frombuffer(packed, EPOCHS).tolist()
    assert rows[0] == (0, -1, 500)
    assert [rows[1], rows[-1]] == [(24, 240, -1), (39, 390, 900)]
    assert len(rows) == 1 + MOST_EPOCHS
