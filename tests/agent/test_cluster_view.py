"""What an agent knows of its cluster."""

import csv
from pathlib import Path
from uuid import UUID

import pytest

from streaming.broker.agent.cluster_view import LEADER_UNKNOWN, ClusterView
from streaming.broker.disk.logdirs import list_partitions, open_log_dirs
from streaming.broker.protocol.cluster_messages import MetadataChanges
from streaming.broker.watcher.cluster_knowledge import Leads
from streaming.broker.watcher.cursors import log_id
from streaming.common.log_key import LogKey
from streaming.kafka.formats.names import METADATA_TOPIC, DirState
from streaming.rules.config_values import ValueSource, read_configs
from streaming.simulator.log import LogDir
from tests.builders import CLUSTER_ID, log_dir
from tests.formats.real_clusters import DATA, SEGMENT, metadata_of
from tests.frozen import NAMES, unpack
from tests.record_batches import read_batches

CLUSTERS = ["kafka_3_9", "node_down", "three_nodes", "transactions", "unclean_election", "with_snapshots"]


def test_what_admins_did_before_the_newest_snapshot_is_read_little_by_little_and_sent_once(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    metadata_of(directory, "with_snapshots")
    log_dirs = open_log_dirs([directory.path])
    once, view = ClusterView(log_dirs), ClusterView(log_dirs, recalls=True)
    for each in (once, view, view):
        each.refresh()
    ((lately,), (status,)) = (once.statuses(), view.statuses())
    assert [each.offset for each in MetadataChanges.unpack(lately.changes).rows] == [104, 105, 106]
    whole = MetadataChanges.unpack(status.changes)
    assert (len(whole.rows), whole.from_offset, status.changes_name == lately.changes_name) == (26, 0, False)
    sent = status.with_packed(lambda name, packed: "" if name in status.packed else packed)
    assert (sent.counts, sent.changes) == ("", "")
    assert sent.with_packed(lambda name, packed: packed or status.packed[name]) == status


def view_of(*directories: LogDir) -> ClusterView:
    view = ClusterView(open_log_dirs(directory.path for directory in directories))
    view.refresh()
    return view


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_leaders_are_what_kafka_says_by_topic_id_and_by_name(cluster: str, tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    metadata_of(directory, cluster)
    view = view_of(directory)
    with (DATA / cluster / "expected.tsv").open(newline="") as file:
        expected = list(csv.DictReader(file, delimiter="\t"))
    for row in expected:
        for topic_id in (row["topic_id"], ""):
            log = LogKey(1, row["topic"], int(row["partition"]), topic_id)
            leader, epoch = int(row["leader"]), int(row["leader_epoch"])
            assert view.leader(log) == (leader, epoch)
            assert view.led(log, epoch) is (Leads.YES if leader == 1 else Leads.NO)
            assert (view.led(log, epoch + 1), view.led(log, -1)) == (Leads.BEHIND, Leads.UNKNOWN)
            assert view.has_topic(log) is True
    assert expected
    assert view.topic_ids() == {row["topic_id"] for row in expected}
    assert view.unreadable() == []


def test_a_topic_that_does_not_exist_any_more_has_no_leader_and_is_known_to_be_gone(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    metadata_of(directory, "kafka_3_9")
    view = view_of(directory)
    for log in (LogKey(1, "gone", 0, ""), LogKey(1, "gone", 0, "AAECAwQFBgcICQoLDA0ODw")):
        assert (view.leader(log), view.has_topic(log)) == (LEADER_UNKNOWN, False)


def test_the_metadata_log_itself_is_never_gone(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    metadata_of(directory, "kafka_3_9")
    assert view_of(directory).has_topic(LogKey(1, "__cluster_metadata", 0, "AAAAAAAAAAAAAAAAAAAAAQ")) is True


def test_it_is_found_in_whichever_log_dir_it_lies(tmp_path: Path) -> None:
    first, second = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    metadata_of(second, "kafka_3_9")
    assert view_of(first, second).unreadable() == []


def test_its_version_changes_with_partitions_and_configurations_alone(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    segment = metadata_of(directory, "with_snapshots") / SEGMENT
    view = view_of(directory)
    before = view.version()
    view.refresh()
    assert view.version() == before
    segment.unlink()
    view.refresh()
    assert view.version() != before


def test_configurations_of_a_topic_are_reported_with_those_of_its_broker_and_of_all(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    metadata_of(directory, "transactions")
    view = view_of(directory)
    reported = read_configs(view.configs(LogKey(1, "pay", 0, "")))
    assert [(setting.name, setting.value, setting.source) for setting in reported.settings] == [
        ("min.insync.replicas", "1", ValueSource.DYNAMIC),
        ("segment.bytes", "30000", ValueSource.TOPIC),
    ]
    assert (view.limits(LogKey(1, "pay", 0, "")).compacts, view.limits(LogKey(1, "__transaction_state", 0, "")).compacts) == (False, True)


def test_without_metadata_no_configuration_is_known(tmp_path: Path) -> None:
    view = view_of(log_dir(tmp_path))
    assert read_configs(view.configs(LogKey(1, "pay", 0, ""))).settings == ()
    assert not view.limits(LogKey(1, "pay", 0, "")).compacts


def test_a_broker_that_has_stopped_is_given_what_the_others_know(tmp_path: Path) -> None:
    blind = LogDir(tmp_path / "d1", 2, "AAECAwQFBgcICQoLDA0ODw", UUID(int=2))
    seeing = log_dir(tmp_path)
    metadata_of(seeing, "kafka_3_9")
    view = view_of(seeing, blind)
    assert view.unreadable() == [2]
    with (DATA / "kafka_3_9" / "expected.tsv").open(newline="") as file:
        row = next(csv.DictReader(file, delimiter="\t"))
    log = LogKey(2, row["topic"], int(row["partition"]), "")
    assert view.leader(log) == (int(row["leader"]), int(row["leader_epoch"]))
    assert view.topic_ids() is None
    assert view.has_topic(log) is None  # what it will find when it begins again is in its own log


def test_of_several_brokers_the_one_counts_that_has_come_furthest(tmp_path: Path) -> None:
    stopped, running = LogDir(tmp_path / "d0", 1, CLUSTER_ID, UUID(int=1)), LogDir(tmp_path / "d1", 2, CLUSTER_ID, UUID(int=2))
    segment = metadata_of(stopped, "node_down") / SEGMENT
    metadata_of(running, "node_down")
    whole = segment.read_bytes()
    view = view_of(stopped, running)
    with (DATA / "node_down" / "expected.tsv").open(newline="") as file:
        row = next(row for row in csv.DictReader(file, delimiter="\t") if int(row["leader_epoch"]) > 0)
    log = LogKey(1, row["topic"], int(row["partition"]), "")
    assert view.leader(log) == (int(row["leader"]), int(row["leader_epoch"]))
    batches, _ = read_batches(memoryview(whole))
    segment.write_bytes(whole[: len(whole) - sum(batch.size for batch in batches[-len(batches) // 2 :])])
    alone = view_of(stopped)
    assert alone.leader(log) != view.leader(log)
    assert view_of(stopped, running).leader(log) == view.leader(log)


def test_what_cannot_be_understood_is_reported_once_and_read_again_when_it_is_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = log_dir(tmp_path)
    segment = metadata_of(directory, "kafka_3_9") / SEGMENT
    whole = segment.read_bytes()
    segment.write_bytes(whole[:200] + b"\xff" * 200 + whole[400:])
    view = view_of(directory)
    for _ in range(3):
        view.refresh()
    assert view.unreadable() == [1]
    assert len([record for record in caplog.records if "metadata log cannot be read" in record.message]) == 1
    segment.write_bytes(whole)
    view.refresh()
    assert view.unreadable() == []


@pytest.mark.parametrize("name", NAMES)
def test_every_log_of_a_real_cluster_is_where_the_copy_that_has_come_furthest_has_it(name: str, tmp_path: Path) -> None:
    log_dirs = open_log_dirs(unpack(name, tmp_path).log_dirs)
    view = ClusterView(log_dirs)
    view.refresh()
    assert (view.known, view.unreadable()) == (True, [])
    partitions = [each for log_dir in log_dirs for each in list_partitions(log_dir) if each.state is DirState.LIVE]
    for partition in partitions:
        state = view.partition(log_id(partition))
        assert (state is None) == (partition.topic == METADATA_TOPIC)
        assert state is None or partition.log_dir.broker in state.replicas
