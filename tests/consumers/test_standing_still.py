"""A group that stands still near a loss: a job that watches and log dirs that are read once say the same of it, minute by minute."""

from datetime import timedelta
from pathlib import Path

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.view.family import EVERYTHING
from streaming.common.settings import Settings
from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinators import SimulatedMember, classic_group_record, offset_commit_record
from streaming.terminal.offline.group_reading import read_groups
from tests.builders import NOW, batch, log_dir, partition
from tests.file_times import written_at
from tests.group_answers import detailed
from tests.worlds.group_job import STOPPED_AFTER_MS, reported_by_job

MINUTE = 60_000
KEPT = 60 * MINUTE
READS = 30
"""Minutes in which it reads all."""


def test_a_group_that_stands_is_about_to_lose_records_from_log_dirs_and_from_a_job(tmp_path: Path) -> None:
    disk = log_dir(tmp_path / "disk")
    orders, coordinator = partition(disk, "orders", topic_id=8), partition(disk, "__consumer_offsets", topic_id=7)
    members = [SimulatedMember("m", "client", (0,))]
    begun = NOW - READS * MINUTE
    coordinator.append(Batch(records=(classic_group_record("g", 4, "orders", members, begun),)))
    for minute in range(READS + 1):
        at = begun + minute * MINUTE
        orders.append(batch(1, timestamp=at))
        written_at(orders, at)
        coordinator.append(Batch(records=(offset_commit_record("g", "orders", 0, minute + 1, at),)))
        orders.roll()
    tracker = GroupTracker(EVERYTHING, STOPPED_AFTER_MS)
    settings = Settings(broker_config={"log.retention.ms": str(KEPT)}, group_stopped_after=timedelta(days=10_000))
    found = []
    for minute in range(10):
        now_ms = NOW + minute * MINUTE
        if minute:  # the next record comes a minute after the last commit, and others after it
            orders.append(batch(1, timestamp=now_ms))
            written_at(orders, now_ms)
            orders.roll()
        disk.write_high_watermarks()
        disk.write_log_starts()
        watched = reported_by_job(disk.path, tmp_path / f"journal {minute}", now_ms, tracker, settings)["g"].partitions[0]
        alone = detailed(read_groups(open_log_dirs([disk.path]), (), settings, now_ms)).groups[0].partitions[0]
        assert watched.loss_ms == alone.loss_ms, minute
        found.append((alone.verdict, watched.verdict, alone.severity, watched.severity))
    fine, loses = ("fine", "fine", "", ""), ("will_lose", "will_lose", "info", "info")
    assert found == [fine] * 7 + [loses] * 3
