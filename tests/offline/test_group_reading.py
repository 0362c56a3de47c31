"""What the disks show of consumer groups: simulated logs, each with one thing that matters to a group."""

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail
from streaming.cluster.consumers.group_uncommitted import DEFAULT_MS
from streaming.common.settings import Settings
from streaming.common.short_names import short_name
from streaming.pages.api.paging import PageRequest
from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinators import SimulatedMember, classic_group_record, offset_commit_record
from streaming.simulator.metadata_writer import ReplicaSet, partition_record, topic_record
from streaming.terminal.offline.everything import read_everything
from streaming.terminal.offline.group_reading import read_groups
from tests.builders import NOW, abort, batch, commit, partition
from tests.elections import MetadataCopy
from tests.file_times import written_at
from tests.frozen import unpack
from tests.group_answers import detailed, verdicts
from tests.offline.group_cluster import GROUP, HOUR, Cluster, old


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def kinds(group: GroupDetail, now: int = NOW) -> list[str]:
    return verdicts(group)


def test_records_are_counted_without_markers_and_aborted_ones(cluster: Cluster) -> None:
    cluster.append(old(4))
    cluster.append(old(3, producer=9, transactional=True), abort(9), old(2, producer=9, epoch=1, transactional=True), commit(9, epoch=2))
    cluster.commit(2)
    of = cluster.one()
    assert (of.log_start, of.high_watermark, of.last_stable_offset, of.committed, of.commit_ms) == (0, 11, 11, 2, NOW - HOUR)
    assert of.expiration_ms == NOW - HOUR + DEFAULT_MS
    assert (of.lag_offsets, of.lag_records_read_committed, of.lag_records_read_uncommitted) == (9, 4, 7)
    assert (of.next_offset, of.next_timestamp_ms, of.held) == (2, NOW - HOUR + 2, False)
    assert 0 < of.next_batch_bytes < of.lag_bytes == sum(path.stat().st_size for path in cluster.orders.directory.glob("*.log"))


def test_a_group_that_only_has_markers_left_has_nothing_to_do(cluster: Cluster) -> None:
    cluster.append(old(2, producer=9, transactional=True), commit(9))
    cluster.commit(2)
    (group,) = cluster.read().groups
    assert (group.partitions[0].lag_offsets, group.partitions[0].lag_records_read_committed) == (1, 0)
    assert kinds(group) == ["only_markers"]


def test_an_open_transaction_holds_a_group_up_and_is_named(cluster: Cluster) -> None:
    cluster.append(old(2), old(3, producer=9, transactional=True), old(4))
    cluster.commit(2)
    (group,) = cluster.read().groups
    (of,) = group.partitions
    assert (of.held, of.last_stable_offset, of.lag_records_read_committed, of.lag_records_read_uncommitted) == (True, 2, 0, 7)
    assert of.held_by is not None
    assert (of.held_by.producer_id, of.held_by.first_offset) == (9, 2)
    assert kinds(group) == ["held"]


def test_an_offset_behind_an_open_transaction_shows_that_the_group_reads_uncommitted(cluster: Cluster) -> None:
    """It is not held up, and gets records of aborted transactions, too."""
    cluster.append(old(2), old(3, producer=9, transactional=True), old(4, producer=8, transactional=True), abort(8), old(1))
    cluster.commit(6)
    cluster.commit(2, "other")
    group, other = cluster.read().groups
    (of,) = group.partitions
    assert (of.isolation, of.held, of.next_offset, of.lag, of.last_stable_offset) == ("read_uncommitted", False, 6, 4, 2)
    assert (of.lag_records_read_committed, of.lag_records_read_uncommitted) == (0, 4)
    assert kinds(group) == ["stopped"]
    assert [(each.isolation, each.held) for each in other.partitions] == [("", True)]


def test_what_was_deleted_unread_is_counted_where_it_is_on_disk_still(cluster: Cluster) -> None:
    cluster.append(old(10))
    cluster.orders.delete_records(6)
    cluster.commit(1)
    (group,) = cluster.read().groups
    (of,) = group.partitions
    assert (of.lost_offsets, of.lost_records, of.lag_records_read_committed, of.next_offset) == (5, 5, 4, 6)
    assert "lost" in kinds(group)


def emptied(cluster: Cluster, *batches: Batch) -> Path:
    """Everything is deleted; the producer snapshot beside the first segment."""
    cluster.append(*batches)
    cluster.orders.roll()
    cluster.orders.delete_records(cluster.orders.log_end_offset)
    cluster.orders.delete_old_segments(NOW)
    (first,) = cluster.orders.directory.glob("*.log")
    return first.with_suffix(".snapshot")


def test_a_marker_that_was_deleted_is_no_loss_as_the_producer_snapshot_shows(cluster: Cluster) -> None:
    emptied(cluster, old(5, producer=9, transactional=True), commit(9, epoch=0))
    cluster.commit(5)
    cluster.commit(4, "behind")
    group, behind = cluster.read().groups[1], cluster.read().groups[0]
    assert [(of.lost_offsets, of.lost_records) for of in (*group.partitions, *behind.partitions)] == [(1, 0), (2, -1)]
    assert (kinds(group), kinds(behind)) == (["only_markers"], ["perhaps_lost"])  # nothing shows that it was committed


@pytest.mark.parametrize("end", [abort(9, epoch=0), commit(9, epoch=0)])
def test_what_a_transaction_wrote_is_perhaps_lost_however_it_ended(cluster: Cluster, end: Batch) -> None:
    """A group that reads committed gets nothing of one that is aborted, and no file shows of a deleted one whether it was."""
    emptied(cluster, old(5, producer=8), old(7, producer=9, transactional=True), end)
    cluster.commit(5)
    (group,) = cluster.read().groups
    assert (kinds(group), group.partitions[0].lost_offsets) == (["perhaps_lost"], 8)


def test_what_is_perhaps_lost_is_no_problem_and_not_nothing_either(cluster: Cluster) -> None:
    emptied(cluster, old(5, producer=8), old(7, producer=9, transactional=True), commit(9, epoch=0))
    cluster.commit(5)
    cluster.commit(11, "behind")  # two of them may have been markers
    cluster.commit(5, "console-consumer-17")
    cluster.read()
    status = read_everything(open_log_dirs([cluster.disk.path]), Settings(), NOW).status()
    assert "Offsets were deleted unread, and whether records were among them is not known, of 1 group: billing" in status.doubts


def test_what_a_producer_without_transactions_wrote_was_records(cluster: Cluster) -> None:
    emptied(cluster, old(5, producer=9, transactional=True), commit(9, epoch=0), old(5, producer=8))
    cluster.commit(5)
    assert kinds(cluster.read().groups[0]) == ["lost"]


def test_offsets_of_which_nothing_shows_that_they_were_records_are_perhaps_lost(cluster: Cluster) -> None:
    """As of a transactional topic that nothing was written to for longer than its retention: its producers have expired."""
    snapshot = emptied(cluster, old(5, producer=9, transactional=True), commit(9))
    snapshot.unlink()
    cluster.commit(5)
    cluster.commit(3, "behind")
    for group in cluster.read().groups:
        assert kinds(group) == ["perhaps_lost"]
        assert [of.lost_records for of in group.partitions] == [-1]
        assert group.summary.severity == ""
        few = group.summary.group == GROUP
        assert ("1 offset between" if few else "3 offsets between") in group.findings[0].text
        assert ("likely no record:" if few else "likely with records among them:") in group.findings[0].text
    cluster.append(old(1))
    assert [kinds(group) for group in cluster.read().groups] == [
        ["stopped", "lost"]
    ] * 2  # a topic without transactions, as what follows shows
    cluster.append(old(1, producer=9, epoch=1, transactional=True), commit(9, epoch=1))
    assert [kinds(group) for group in cluster.read().groups] == [["stopped", "perhaps_lost"]] * 2


def test_what_was_deleted_with_its_segments_is_counted_in_offsets(cluster: Cluster) -> None:
    cluster.append(old(10))
    cluster.orders.roll()
    cluster.append(old(3))
    cluster.orders.delete_records(11)
    cluster.orders.delete_old_segments(NOW)
    cluster.commit(1)
    of = cluster.one()
    assert (of.lost_offsets, of.lost_records, of.lag_records_read_committed, of.next_offset) == (10, -1, 2, 11)


def test_retention_is_about_to_delete_the_next_record(cluster: Cluster) -> None:
    cluster.append(old(10))
    cluster.orders.roll()
    cluster.append(batch(3))
    cluster.commit(4)
    (group,) = cluster.read(limits=str(2 * HOUR)).groups
    (of,) = group.partitions
    assert (of.loss_ms, of.loss_records, of.retention_ms) == (NOW + HOUR + 10, 6, 2 * HOUR)
    assert of.loss_bytes > 0
    assert kinds(group) == ["stopped", "will_lose"]


def test_limits_are_assumed_where_no_metadata_log_shows_those_of_the_topic(cluster: Cluster) -> None:
    cluster.append(old(10))
    cluster.commit(4)
    (group,) = cluster.read().groups
    (of,) = group.partitions
    assert (of.limits_assumed, group.summary.limits_assumed, of.loss_by_size) == (True, True, False)
    cluster.commit(10)
    (group,) = cluster.read().groups
    assert (group.partitions[0].limits_assumed, group.summary.limits_assumed) == (False, False)


def test_an_offset_beyond_the_end_is_distinguished(cluster: Cluster) -> None:
    cluster.append(old(10))
    cluster.commit(12)
    (group,) = cluster.read().groups
    assert (group.partitions[0].unknown, group.partitions[0].lag_offsets, group.summary.beyond_end) == ("beyond_end", -1, 1)
    assert kinds(group) == ["beyond_end"]


def test_a_group_has_stopped_since_its_offset_was_first_committed_or_the_record_came(cluster: Cluster) -> None:
    cluster.append(old(10))
    for minutes in (50, 40, 30, 0):  # auto-commit repeats it
        cluster.commit(4, at=NOW - minutes * 60_000)
    (group,) = cluster.read().groups
    assert group.partitions[0].stopped_since_ms == NOW - 50 * 60_000
    assert kinds(group) == ["stopped"]
    cluster.commit(5, at=NOW - 60_000)
    assert cluster.one().stopped_since_ms == -1


def test_after_a_loss_it_has_stopped_since_its_offset_was_committed_whatever_retention_has_left(cluster: Cluster) -> None:
    """The next record that is left gets younger with each deletion, and the group stands all the time."""
    for minutes in (50, 40, 20, 5):
        cluster.append(batch(10, timestamp=NOW - minutes * 60_000))
        cluster.orders.roll()
    cluster.commit(4, at=NOW - 45 * 60_000)
    since = []
    for deleted in (10, 20, 30):
        cluster.orders.delete_records(deleted)
        (group,) = cluster.read().groups
        since.append(group.partitions[0].stopped_since_ms)
        assert kinds(group) == ["stopped", "lost"]
    assert since == [NOW - 45 * 60_000] * 3


@pytest.mark.parametrize("gap", [0, 17])
def test_where_compaction_has_removed_what_was_next_it_stands_at_least_since_what_is_next_now(cluster: Cluster, gap: int) -> None:
    cluster.append(old(3))
    cluster.orders.append(old(5), base_offset=3 + gap)
    cluster.commit(3, at=NOW - 2 * HOUR)
    of = cluster.one()
    assert (of.next_offset, of.stopped_since_ms, of.stopped_earlier) == (3 + gap, NOW - HOUR, gap > 0)


@pytest.mark.parametrize(("gap", "verdict"), [(0, "fine"), (17, "unknown")])
def test_where_compaction_leaves_young_records_alone_it_is_not_known_whether_a_group_has_stopped(
    cluster: Cluster, gap: int, verdict: str
) -> None:
    cluster.append(batch(3, timestamp=NOW - 60_000))
    cluster.orders.append(batch(5, timestamp=NOW - 60_000), base_offset=3 + gap)
    written_at(cluster.orders, NOW - 60_000)
    cluster.commit(3, at=NOW - 2 * HOUR)
    (group,) = cluster.read().groups
    assert (kinds(group), group.partitions[0].stopped_since_ms) == ([verdict], -1)
    assert group.findings[0].text.startswith(
        "not known whether it has stopped: compaction has removed the record at 3, and" if gap else "fine: 5 records left"
    )


def test_a_marker_that_was_deleted_stops_nobody(cluster: Cluster) -> None:
    """It had read everything until a record came."""
    emptied(cluster, old(5, producer=9, transactional=True), commit(9))
    cluster.commit(5)
    cluster.append(batch(1, timestamp=NOW - 60_000, producer=9, transactional=True), commit(9, epoch=1))
    written_at(cluster.orders, NOW - 60_000)
    assert (cluster.one().lost_offsets, cluster.one().stopped_since_ms, cluster.one().verdict) == (1, -1, "perhaps_lost")


def test_commits_that_are_aborted_or_wait_do_not_move_a_group(cluster: Cluster) -> None:
    cluster.append(old(10))
    cluster.commit(4, producer=5)
    cluster.append(commit(5, timestamp=NOW - HOUR), to=cluster.coordinator)
    for epoch in (1, 2):  # it crashes after each batch, and begins anew
        cluster.commit(7, at=NOW - 5 * 60_000, producer=5)
        if epoch == 1:
            cluster.append(abort(5, epoch=epoch), to=cluster.coordinator)
    (group,) = cluster.read().groups
    assert (group.partitions[0].committed, group.partitions[0].stopped_since_ms) == (4, NOW - HOUR + 4)
    assert "stopped" in kinds(group)
    cluster.append(commit(5, epoch=2), to=cluster.coordinator)
    assert (cluster.one().committed, cluster.one().stopped_since_ms) == (7, -1)


@pytest.mark.parametrize("dated", [NOW + 8 * HOUR, -1])
def test_a_record_of_the_future_or_without_a_time_does_not_postpone_since_when_a_group_has_stopped(cluster: Cluster, dated: int) -> None:
    cluster.append(batch(1, timestamp=dated))
    written_at(cluster.orders, NOW - 2 * HOUR)
    cluster.commit(0)
    (group,) = cluster.read().groups
    assert (group.partitions[0].stopped_since_ms, kinds(group)[-1]) == (NOW - HOUR, "stopped")


def test_a_commit_in_a_transaction_moves_a_group_when_the_transaction_is_committed(cluster: Cluster) -> None:
    cluster.append(old(10))
    cluster.commit(4, producer=5)
    cluster.append(commit(5, timestamp=NOW - 60_000), to=cluster.coordinator)
    assert (cluster.one().committed, cluster.one().stopped_since_ms) == (4, -1)
    (group,) = cluster.read(now=NOW + HOUR).groups
    assert (group.partitions[0].stopped_since_ms, kinds(group)) == (NOW - 60_000, ["stopped"])


def test_commits_of_an_open_transaction_wait_and_do_not_count(cluster: Cluster) -> None:
    cluster.append(old(10))
    cluster.commit(4)
    cluster.commit(6, producer=5)
    cluster.commit(7, group="new", producer=5)
    by_name = {group.summary.group: group for group in cluster.read().groups}
    of = by_name[GROUP].partitions[0]
    assert (of.committed, of.pending[0].producer_id, of.pending[0].offset, of.pending[0].first_offset) == (4, 5, 6, 1)
    assert by_name["new"].partitions[0].unknown == "not_committed"
    assert "pending" in kinds(by_name["new"])


def test_a_log_that_is_not_here_leaves_the_lag_unknown(cluster: Cluster) -> None:
    cluster.commit(4, topic="elsewhere")
    (group,) = cluster.read().groups
    assert (group.partitions[0].unknown, group.summary.unknown, group.summary.lag_offsets) == ("leader_not_observed", 1, -1)
    assert kinds(group) == ["unknown"]


def test_a_topic_that_the_metadata_log_does_not_have_is_gone_and_one_that_it_has_is_elsewhere(cluster: Cluster) -> None:
    ids = {"__consumer_offsets": UUID(int=7), "orders": UUID(int=8), "elsewhere": UUID(int=9)}
    there = [topic_record(name, topic_id) for name, topic_id in ids.items()]
    led = [ReplicaSet(partition=0, topic_id=each, replicas=(1,), isr=(1,), leader=1) for each in ids.values()]
    MetadataCopy(cluster.disk.path).write([*there, *map(partition_record, led)], NOW - 2 * HOUR)
    cluster.append(old(10))
    for topic in ("orders", "elsewhere", "gone"):
        cluster.commit(4, topic=topic)
    (group,) = cluster.read().groups
    unknown = {of.topic: of.unknown for of in group.partitions}
    assert unknown == {"orders": "", "elsewhere": "leader_not_observed", "gone": "topic_gone"}


def test_only_groups_that_are_named_are_read_and_those_that_are_not_there_are_reported(cluster: Cluster) -> None:
    cluster.append(old(10))
    for group in ("a", "b\x1b[2J", "c" * 10_240):
        cluster.commit(4, group)
    assert [group.summary.group for group in cluster.read().groups] == ["a", "b\x1b[2J", short_name("c" * 10_240)]
    answer = cluster.read("b\x1b[2J", "z")
    assert [group.summary.group for group in answer.groups] == ["b\x1b[2J"]
    assert answer.missing == ("z",)


def test_a_batch_that_is_damaged_is_named_with_its_file_and_place(cluster: Cluster) -> None:
    cluster.append(old(4), old(3), old(2))
    cluster.commit(5)
    (group,) = cluster.read(GROUP).groups
    sound = group.partitions[0].batch
    assert sound is not None
    assert (sound.sound, sound.records, sound.last_offset, sound.segment) == (True, 3, 6, 0)
    path = next(cluster.orders.directory.glob("*.log"))
    damaged = bytearray(path.read_bytes())
    damaged[sound.position + sound.size - 1] ^= 1  # the last byte of the last record
    path.write_bytes(damaged)
    (group,) = cluster.read(GROUP).groups
    batch_of = group.partitions[0].batch
    assert batch_of is not None
    assert (batch_of.sound, batch_of.error, batch_of.position, batch_of.file) == (False, "bad CRC", sound.position, str(path))
    verdict = group.findings[0]
    assert verdict.verdict == "damaged"
    assert verdict.command == f"segtail dump --verify {path.parent}"  # another replica may have whole what a reset would skip
    (reported,) = (doubt for doubt in cluster.read().doubts if str(path) in doubt)
    assert f"{path}: bad CRC: offsets 4 to 6 at position {sound.position}. Consumers get no further" in reported
    rows = cluster.read().reading.answers.page(PageRequest(sort="verdict", order="asc")).rows
    assert [each.verdict for each in rows] == ["unknown"]  # a list of all groups does not say what their next batches are


def test_what_is_left_after_a_damaged_batch_is_known_and_before_it_is_not(cluster: Cluster) -> None:
    cluster.append(old(4), old(3), old(2))
    for group, offset in (("before", 2), ("inside", 5), ("over it", 7)):
        cluster.commit(offset, group)
    path = next(cluster.orders.directory.glob("*.log"))
    damaged = bytearray(path.read_bytes())
    damaged[cluster.orders.active.positions[1] + 70] ^= 1
    path.write_bytes(damaged)
    found = {group.summary.group: group.partitions[0] for group in cluster.read().groups}
    assert {name: (of.unknown, of.lag_records_read_committed) for name, of in found.items()} == {
        "before": ("damaged", -1),
        "inside": ("damaged", -1),
        "over it": ("", 2),
    }
    assert not any("damaged" in doubt for doubt in cluster.read("over it").doubts)


def test_groups_of_a_real_broker_have_committed_what_kafkas_own_decoder_printed(tmp_path: Path) -> None:
    frozen = unpack("transactions_v2", tmp_path)
    answer = detailed(read_groups(open_log_dirs(frozen.log_dirs), (), Settings(), frozen.frozen_ms))
    assert answer.doubts == ()
    every = [(group.summary.group, of) for group in answer.groups for of in group.partitions]
    assert [(group, of.topic, of.partition) for group, of in every if of.unknown == "not_committed"] == [("grp-A", "in", 1)]
    found = {(group, of.topic, of.partition): of for group, of in every if of.unknown != "not_committed"}
    assert {key: of.committed for key, of in found.items()} == {
        (group, topic, int(partition)): int(offset) for group, topic, partition, offset in frozen.of("committed")
    }
    ends = {(topic, int(partition)): int(high_watermark) for topic, partition, high_watermark, _ in frozen.of("offsets")}
    for (_, topic, number), of in found.items():
        assert of.lag_offsets == ends[topic, number] - of.committed
        assert of.lag_records_read_committed == of.lag_offsets  # a topic without transactions and compaction
    assert sum(of.lag_offsets for of in found.values()) == 13


def doubts(of: Collection[str]) -> str:
    return "\n".join(of)


def test_a_coordinators_log_that_is_damaged_is_reported(cluster: Cluster) -> None:
    cluster.append(old(10))
    cluster.commit(4)
    path = next(cluster.coordinator.directory.glob("*.log"))
    damaged = bytearray(path.read_bytes())
    damaged[16] = 9  # the magic byte
    path.write_bytes(damaged)
    answer = cluster.read()
    assert answer.groups == ()
    assert "__consumer_offsets-0 are not known" in doubts(answer.doubts)


def test_what_is_damaged_at_the_end_of_a_quiet_log_is_no_end(cluster: Cluster) -> None:
    cluster.append(old(4), old(3), old(2))
    for group, offset in (("before", 3), ("at", 7), ("beyond", 9)):
        cluster.commit(offset, group)
    assert kinds(cluster.read("beyond").groups[0]) == ["fine"]
    path = next(cluster.orders.directory.glob("*.log"))
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    os.utime(path, (time.time() + 3600,) * 2)
    assert not any("are no whole batch" in doubt for doubt in cluster.read().doubts)  # of what was written just now it may be a part
    os.utime(path, (0, 0))
    answer = cluster.read()
    rows = {each.group: each.verdict for each in answer.reading.answers.page(PageRequest(sort="group", order="asc")).rows}
    assert (rows["at"], rows["beyond"]) == ("unknown", "unknown")  # a list does not look what is there
    assert {group.summary.group: group.summary.verdict for group in answer.groups if group.summary.group != "before"} == {
        "at": "damaged",
        "beyond": "damaged",
    }
    assert [group.partitions[0].unknown for group in answer.groups] == ["damaged", "", "damaged"]
    (reported,) = (doubt for doubt in answer.doubts if "dump --verify" in doubt)
    assert f"{path}: bad CRC: offsets 7 to 8 at position" in reported


def test_a_commit_with_another_topic_id_is_of_an_earlier_topic_of_that_name(cluster: Cluster) -> None:
    cluster.append(old(10))
    ids = {"none": None, "this": UUID(int=8), "other": UUID(int=9)}
    for group, topic_id in ids.items():
        cluster.append(Batch(records=(offset_commit_record(group, "orders", 0, 4, NOW - HOUR, topic_id=topic_id),)), to=cluster.coordinator)
    found = {group.summary.group: group.partitions[0] for group in cluster.read().groups}
    assert {name: of.unknown for name, of in found.items()} == {"none": "", "this": "", "other": "topic_made_anew"}
    (this, other) = (found[name].topic_id for name in ("this", "other"))
    assert (found["none"].topic_id, found["none"].broker) == (this, 1)  # of the log, where the commit has none
    assert this != other
    assert other


def test_the_sums_of_a_group_are_those_of_its_partitions(cluster: Cluster) -> None:
    clicks = partition(cluster.disk, "clicks", topic_id=9)
    cluster.append(old(10))
    cluster.append(old(10), to=clicks)
    clicks.delete_records(3)
    cluster.commit(4, at=NOW - HOUR)
    cluster.commit(2, topic="clicks", at=NOW - HOUR // 2)
    cluster.commit(2, topic="elsewhere", at=NOW - 2 * HOUR)
    cluster.commit(5, producer=5)
    cluster.commit(3, topic="clicks", producer=5)
    (group,) = cluster.read().groups
    of = group.summary
    assert [each.topic for each in group.partitions] == ["clicks", "orders", "elsewhere"]  # by what is left
    assert (of.partitions, of.unknown, of.below_start, of.stopped, of.held, of.beyond_end) == (3, 1, 1, 2, 0, 0)
    assert (of.pending, of.oldest_pending_ms) == (2, NOW - HOUR)
    assert (of.lag_offsets, of.lag_records_read_committed, of.lag_records_read_uncommitted) == (8 + 6, 7 + 6, 7 + 6)
    assert of.lag_bytes == sum(each.lag_bytes for each in group.partitions[:2]) > 0
    assert of.oldest_timestamp_ms == NOW - HOUR + 3
    assert of.last_commit_ms == NOW - HOUR // 2
    assert of.expiration_ms == NOW - 2 * HOUR + DEFAULT_MS
    assert of.loss_ms == min(each.loss_ms for each in group.partitions[:2])
    assert ([each.limits_assumed for each in group.partitions], of.limits_assumed) == ([True, True, False], True)


def test_a_group_has_stopped_if_it_stands_still_for_as_long_as_was_set(cluster: Cluster) -> None:
    cluster.append(old(10))
    cluster.commit(4)
    since = cluster.one().stopped_since_ms
    after = Settings().group_stopped_after // timedelta(milliseconds=1)
    for waited, stopped_since in ((after - 1, -1), (after, since)):
        (group,) = cluster.read(now=since + waited).groups
        assert group.partitions[0].stopped_since_ms == stopped_since


def test_commits_that_wait_are_counted_one_by_one_with_the_topic_that_they_are_of(cluster: Cluster) -> None:
    cluster.append(old(10))
    cluster.commit(4)
    ids = {"producer_epoch": 0, "base_sequence": 0, "transactional": True}
    for producer in (5, 6):
        record = offset_commit_record("new", "orders", 0, producer, NOW - HOUR, topic_id=UUID(int=8))
        cluster.append(Batch(records=(record,), producer_id=producer, **ids), to=cluster.coordinator)
    by_name = {group.summary.group: group for group in cluster.read().groups}
    (of,) = by_name["new"].partitions
    assert (by_name["new"].summary.pending, [each.producer_id for each in of.pending]) == (2, [5, 6])
    assert of.topic_id == by_name[GROUP].partitions[0].topic_id != ""


def test_the_next_batch_has_its_producer_and_of_a_log_that_is_damaged_the_damage_is_checked(cluster: Cluster) -> None:
    cluster.append(old(4), old(3, producer=9), old(2))
    cluster.commit(5)
    batch_of = cluster.one(GROUP).batch
    assert batch_of is not None
    assert (batch_of.sound, batch_of.producer_id) == (True, 9)
    path = next(cluster.orders.directory.glob("*.log"))
    damaged = bytearray(path.read_bytes())
    damaged[batch_of.position + 16] = 9  # the magic byte
    path.write_bytes(damaged)
    os.utime(path, (0, 0))
    of = cluster.one(GROUP)
    assert of.unknown == "damaged"
    assert of.batch is not None
    assert (of.batch.sound, of.batch.position) == (False, batch_of.position)


def test_what_the_coordinator_knows_of_a_group_is_in_its_summary(cluster: Cluster) -> None:
    cluster.append(old(10))
    members = [SimulatedMember("m1", "client-1", (0,)), SimulatedMember("m2", "client-2", ())]
    cluster.append(Batch(records=(classic_group_record(GROUP, 4, "orders", members, NOW - 5000),)), to=cluster.coordinator)
    cluster.commit(4)
    (group,) = cluster.read().groups
    of = group.summary
    assert (of.type, of.protocol, of.state, of.members, of.epoch, of.state_ms) == ("Classic", "consumer", "Stable", 2, 4, NOW - 5000)
    assert (sorted(group.clients), group.hosts) == (["client-1", "client-2"], ["/127.0.0.1"] * 2)


@pytest.mark.parametrize("names", [(), (GROUP,)])
def test_between_its_runs_the_records_of_a_partition_are_counted_that_a_group_never_committed(
    cluster: Cluster, names: Sequence[str]
) -> None:
    cluster.append(old(10))
    cluster.append(old(7), to=partition(cluster.disk, "orders", 1, topic_id=8))
    member = SimulatedMember("m1", "client-1", (0, 1))
    for generation, members in ((4, [member]), (5, [])):
        record = classic_group_record(GROUP, generation, "orders", members, NOW - HOUR)
        cluster.append(Batch(records=(record,)), to=cluster.coordinator)
    cluster.commit(10)
    (group,) = cluster.read(*names).groups
    assert [(of.partition, of.unknown, of.uncommitted_records) for of in group.partitions] == [(1, "not_committed", 7), (0, "", -1)]


@pytest.mark.parametrize(("generation", "use"), [(4, "unattended"), (None, "in_use")])
def test_an_offset_that_is_set_by_hand_makes_no_empty_group_used(cluster: Cluster, generation: int | None, use: str) -> None:
    """As by `kafka-consumer-groups --reset-offsets`; consumers that assign partitions to themselves commit without members, too."""
    cluster.append(old(10))
    for minutes in range(40, 30, -1):
        cluster.commit(4, at=NOW - minutes * 60_000)
    if generation is not None:
        left = classic_group_record(GROUP, generation, "orders", [], NOW - 30 * 60_000)
        cluster.append(Batch(records=(left,)), to=cluster.coordinator)
    cluster.commit(2, at=NOW - 30_000)
    (group,) = cluster.read().groups
    assert (group.summary.members, group.summary.use) == (0, use)


def test_groups_that_are_left_out_are_a_doubt(cluster: Cluster) -> None:
    cluster.append(old(10))
    for name in ("a", "b", "c"):
        cluster.commit(4, name)
    cluster.disk.write_high_watermarks()
    answers = {limit: detailed(read_groups(open_log_dirs([cluster.disk.path]), (), Settings(groups_limit=limit), NOW)) for limit in (1, 3)}
    assert {limit: len(answer.groups) for limit, answer in answers.items()} == {1: 1, 3: 3}
    left_out = "2 groups of __consumer_offsets-0 are left out: groups_limit is lower"
    assert {limit: left_out in answer.doubts for limit, answer in answers.items()} == {1: True, 3: False}


@pytest.fixture
def refused(tmp_path: Path) -> Iterator[Callable[[Path], None]]:
    """Files that whoever reads may see, and not open: those of another umask than the broker's others."""
    as_root = os.geteuid() == 0
    if as_root:
        for directory in (tmp_path, *tmp_path.parents):
            if directory.stat().st_uid == 0 and directory.stat().st_mode & 0o055 != 0o055:
                directory.chmod(0o755)

    def refuse(path: Path) -> None:
        path.chmod(0)
        if as_root:
            os.seteuid(_NOBODY)

    yield refuse
    if as_root:
        os.seteuid(0)


_NOBODY = 65534


@pytest.mark.parametrize("led", [False, True])
def test_a_log_that_may_not_be_read_is_not_known_whatever_was_committed_there(
    cluster: Cluster, refused: Callable[[Path], None], led: bool
) -> None:
    if led:
        there = {"__consumer_offsets": UUID(int=7), "orders": UUID(int=8)}
        leads = [ReplicaSet(partition=0, topic_id=each, replicas=(1,), isr=(1,), leader=1) for each in there.values()]
        there_is = [*(topic_record(name, each) for name, each in there.items()), *map(partition_record, leads)]
        MetadataCopy(cluster.disk.path).write(there_is, NOW - 2 * HOUR)
    cluster.append(old(10))
    for group, offset in ((GROUP, 10), ("slow", 3), ("new", 0)):
        cluster.commit(offset, group)
    cluster.disk.write_high_watermarks()
    cluster.disk.write_log_starts()
    refused(cluster.orders.active.path("log"))
    read = cluster.read_again()
    assert [[(each.unknown, each.verdict, each.lag_offsets) for each in group.partitions] for group in read.groups] == [
        [("log_unreadable", "unknown", -1)]
    ] * 3
    assert any("cannot be read" in doubt for doubt in read.doubts)


def test_a_log_whose_newest_segment_may_not_be_read_is_not_damaged(cluster: Cluster, refused: Callable[[Path], None]) -> None:
    cluster.append(old(10))
    cluster.orders.roll()
    cluster.append(old(10))
    for group, offset in ((GROUP, 20), ("slow", 3)):
        cluster.commit(offset, group)
    cluster.disk.write_high_watermarks()
    cluster.disk.write_log_starts()
    refused(cluster.orders.active.path("log"))
    assert {(each.unknown, each.verdict) for group in cluster.read_again().groups for each in group.partitions} == {
        ("log_unreadable", "unknown")
    }
