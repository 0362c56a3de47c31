"""Coordinators' logs that lack their newest commits: copies that were cut off, replicas that are behind, and damaged tails."""

import json
import os
from pathlib import Path
from uuid import UUID

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail
from streaming.common.settings import Settings
from streaming.kafka.formats.names import coordinator_partition
from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinators import SimulatedMember, classic_group_record, offset_commit_record
from streaming.simulator.log import PartitionLog
from streaming.simulator.metadata_writer import ReplicaSet, partition_record, topic_record
from streaming.terminal.offline.group_reading import read_groups
from tests.builders import NOW, batch, commit, log_dir, partition
from tests.commands import run_command
from tests.elections import MetadataCopy
from tests.file_times import written_at
from tests.frozen import unpack
from tests.group_answers import Groups, detailed

OFFSETS = "__consumer_offsets"
CUT = "below the high watermark of"
GROUPS = [next(name for name in map("c{}".format, range(100)) if coordinator_partition(name, 3) == number) for number in range(3)]
"""A group for each coordinator."""


class Cluster:
    """A broker with three partitions for coordinators and one of `orders`; all groups have read everything."""

    def __init__(self, path: Path) -> None:
        self.disk = log_dir(path)
        self.coordinators = [partition(self.disk, OFFSETS, number, topic_id=7) for number in range(3)]
        self.orders = partition(self.disk, "orders", topic_id=8)
        self.orders.append(*(batch(1, timestamp=NOW - 1000) for _ in range(10)))
        ids = {OFFSETS: UUID(int=7), "orders": UUID(int=8)}
        led = [
            ReplicaSet(partition=log.partition, topic_id=ids[log.topic], replicas=(1,), isr=(1,), leader=1) for log in self.disk.partitions
        ]
        MetadataCopy(self.disk.path).write([*map(topic_record, ids, ids.values()), *map(partition_record, led)])
        for log, group in zip(self.coordinators, GROUPS, strict=True):
            for offset in (2, 4, 10):
                commits(log, group, offset)
        self.disk.write_high_watermarks()

    def read(self, *names: str, now: int = NOW) -> Groups:
        settings = Settings(broker_config={"log.retention.ms": "604800000"})
        return detailed(read_groups(open_log_dirs([self.disk.path]), names, settings, now))


def commits(log: PartitionLog, group: str, offset: int, producer: int = -1) -> None:
    record = offset_commit_record(group, "orders", 0, offset, NOW - 2000)
    transaction = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "transactional": True} if producer >= 0 else {}
    log.append(Batch(records=(record,), **transaction))  # type: ignore[arg-type]


def file_of(log: PartitionLog) -> Path:
    return max(log.directory.glob("*.log"))


def cut_off(log: PartitionLog, share: float = 0.6) -> None:
    """Only a part of the bytes is left."""
    path = file_of(log)
    os.truncate(path, int(path.stat().st_size * share))


def verdicts_of(groups: Groups) -> dict[str, tuple[str, str]]:
    return {group.summary.group: (group.summary.verdict, one(group)) for group in groups.groups}


def one(group: GroupDetail) -> str:
    return ",".join(each.unknown for each in group.partitions)


def cut_doubts(groups: Groups) -> list[str]:
    return [doubt for doubt in groups.doubts if CUT in doubt]


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


FINE, NOT_KNOWN = ("fine", ""), ("unknown", "coordinator_behind")


def test_a_log_that_ends_below_its_own_high_watermark_is_not_current(cluster: Cluster) -> None:
    assert (verdicts_of(cluster.read()), cluster.read().doubts) == (dict.fromkeys(GROUPS, FINE), ())
    for log in cluster.coordinators[:2]:
        cut_off(log)
    groups = cluster.read()
    assert verdicts_of(groups) == dict(zip(GROUPS, (NOT_KNOWN, NOT_KNOWN, FINE), strict=True))
    (doubt,) = cut_doubts(groups)
    assert doubt.startswith(f"2 logs of coordinators end {CUT} their own checkpoint: {OFFSETS}-0, {OFFSETS}-1. ")
    assert [group.unread for group in groups.groups] == [2, 2, 2]
    assert {group.summary.use for group in groups.groups if group.summary.group != GROUPS[2]} == {"unknown"}


@pytest.mark.parametrize(("number", "unread"), [(0, 1), (2, 0)])
def test_of_a_group_that_is_named_only_its_own_coordinator_counts(cluster: Cluster, number: int, unread: int) -> None:
    cut_off(cluster.coordinators[0])
    cut_off(cluster.coordinators[1])
    groups = cluster.read(GROUPS[number])
    assert ([group.unread for group in groups.groups], len(cut_doubts(groups))) == ([unread], unread)


def test_the_command_says_so_and_its_status_is_not_known(cluster: Cluster) -> None:
    cut_off(cluster.coordinators[1])
    options = ("--log-dirs", str(cluster.disk.path), "--at", str(NOW))
    for command in (("groups",), ("groups", GROUPS[1]), ("why", "--filter", "c")):
        done = run_command(*command, *options)
        assert (done.returncode, done.stderr.count(CUT)) == (4, 1)
    page = json.loads(run_command("groups", "--json", *options).stdout)
    assert page["unread"] == 1
    assert CUT in " ".join(page["doubts"])


def test_a_replica_that_lacks_its_newest_segment_is_not_current(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    log = cluster.coordinators[1]
    log.roll()
    commits(log, GROUPS[1], 10)
    cluster.disk.write_high_watermarks()
    assert verdicts_of(cluster.read())[GROUPS[1]] == FINE
    file_of(log).unlink()
    groups = cluster.read()
    assert (verdicts_of(groups)[GROUPS[1]], len(cut_doubts(groups))) == (NOT_KNOWN, 1)


def test_a_log_of_which_all_was_removed_has_not_lost_its_end(cluster: Cluster) -> None:
    log = cluster.coordinators[1]
    log.roll()
    log.delete_records(log.log_end_offset)
    log.delete_old_segments(NOW)
    cluster.disk.write_high_watermarks()
    cluster.disk.write_log_starts()
    groups = cluster.read()
    assert (set(verdicts_of(groups)), cut_doubts(groups), [group.unread for group in groups.groups]) == ({GROUPS[0], GROUPS[2]}, [], [0, 0])


def checkpointed(cluster: Cluster, offset: int | None) -> None:
    """The checkpoint has an offset of the second log, or nothing of it."""
    entries = [(log.topic, log.partition, log.log_end_offset) for log in cluster.disk.partitions if log is not cluster.coordinators[1]]
    cluster.disk.write_checkpoint("replication-offset-checkpoint", entries if offset is None else [*entries, (OFFSETS, 1, offset)])


@pytest.mark.parametrize("offset", [None, 0, 2])
def test_a_high_watermark_below_the_end_is_no_doubt_where_all_replicas_in_sync_are_read(cluster: Cluster, offset: int | None) -> None:
    checkpointed(cluster, offset)
    groups = cluster.read()
    assert (verdicts_of(groups)[GROUPS[1]], groups.doubts) == (FINE, ())


def test_a_checkpoint_that_cannot_be_read_is_a_doubt(cluster: Cluster) -> None:
    (cluster.disk.path / "replication-offset-checkpoint").write_text("what?")
    groups = cluster.read()
    assert any("the offsets in it are not known" in doubt for doubt in groups.doubts)


def test_what_waits_and_what_was_never_committed_is_not_known_of_a_cut_log(cluster: Cluster) -> None:
    """The marker of a transaction, and the first commit of a member, may be in what is missing."""
    log = cluster.coordinators[1]
    member = SimulatedMember("m", "client", (0,))
    log.append(Batch(records=(classic_group_record("begins", 1, "orders", [member], NOW - 5000),)))
    commits(log, "waits", 3, producer=5)
    size = file_of(log).stat().st_size
    log.append(commit(5))
    commits(log, "begins", 10)
    cluster.disk.write_high_watermarks()
    assert {name: verdicts_of(cluster.read())[name] for name in ("waits", "begins")} == {"waits": FINE, "begins": FINE}
    os.truncate(file_of(log), size)
    groups = verdicts_of(cluster.read(now=NOW + 3_600_000))
    assert (groups["begins"], groups["waits"]) == (NOT_KNOWN, NOT_KNOWN)


def test_the_groups_of_a_real_broker_whose_logs_were_cut_off_are_not_current(tmp_path: Path) -> None:
    frozen = unpack("transactions_v2", tmp_path)
    for path in (path for disk in frozen.log_dirs for path in Path(disk).glob(f"{OFFSETS}-*/*.log")):
        os.truncate(path, int(path.stat().st_size * 0.6))
    groups = detailed(read_groups(open_log_dirs(frozen.log_dirs), (), Settings(), frozen.frozen_ms))
    assert {each.unknown for group in groups.groups for each in group.partitions} == {"coordinator_behind"}
    assert {group.summary.verdict for group in groups.groups} == {"unknown"}
    assert len(cut_doubts(groups)) == 1


def test_zeros_where_commits_were_are_a_lost_end(cluster: Cluster) -> None:
    """So a file system may leave a file after a power failure."""
    path = file_of(cluster.coordinators[1])
    whole = path.read_bytes()
    path.write_bytes(whole[: 2 * len(whole) // 3] + bytes(len(whole) // 3))
    groups = cluster.read()
    assert (verdicts_of(groups)[GROUPS[1]], len(cut_doubts(groups))) == (NOT_KNOWN, 1)


@pytest.mark.parametrize("tail", ["zeros", "half", "other"])
def test_what_is_no_batch_at_the_end_of_a_quiet_log_is_named_and_answers_before_it_stay(cluster: Cluster, tail: str) -> None:
    """A preallocated file ends with zeros: they say nothing."""
    log = cluster.coordinators[1]
    path = file_of(log)
    whole = path.read_bytes()
    path.write_bytes(whole + {"zeros": bytes(4096), "half": whole[: len(whole) // 6], "other": b"\1" * 4096}[tail])
    written_at(log, NOW - 3_600_000)
    groups = cluster.read()
    assert verdicts_of(groups)[GROUPS[1]] == FINE
    named = [doubt for doubt in groups.doubts if str(log.directory) in doubt]
    assert [("from offset 3 on" in doubt) for doubt in named] == [] if tail == "zeros" else [True], groups.doubts
