"""Which series of consumer groups are on a page."""

import re
from pathlib import Path

import pytest

from streaming.cluster.consumers.group_snapshot import GroupBoard, PartitionListing
from streaming.cluster.view.family import Export
from streaming.common.definitions.group_metrics import PENDING_COMMITS
from streaming.pages.exposition.group_families import shown_groups
from tests.consumers.group_agents import GROUP, WAITING, Records
from tests.consumers.group_world import GroupJob, world
from tests.exposition.reading import page, samples
from tests.view.rows import new_observer, new_table

LATE_MS = 300_000


@pytest.fixture(scope="module")
def job() -> GroupJob:
    """Partition n of the topic has a next record that is n minutes old."""
    found = world()
    agent = found.agents["a1"]
    agent.groups_ = [GROUP]
    now_ms = round(found.now * 1000)
    for partition in range(10):
        agent.logs["orders", partition] = Records(["data"] * 10, times={3: now_ms - 60_000 * partition})
        agent.commit(3, partition=partition)
        found.put("orders", partition, end=10)
    found.round()
    return found


def listed(job: GroupJob, listing: PartitionListing) -> tuple[list[int], int]:
    """The partitions that are listed, and how many late ones are not."""
    board = GroupBoard(listing)
    snapshot = job.board.latest(round(job.now * 1000))
    assert snapshot is not None
    board.publish(snapshot)
    found = samples(page(new_table(), new_observer(), now=job.now, groups=board))
    names = [dict(labels)["partition"] for name, labels in found if name == "segtail_group_partition_lag_offsets"]
    (omitted,) = (value for (name, _), value in found.items() if name == "segtail_group_late_partitions_omitted")
    return sorted(map(int, names)), int(omitted)


def test_late_partitions_are_listed_the_latest_first(job: GroupJob) -> None:
    assert listed(job, PartitionListing(late_after_ms=LATE_MS)) == ([6, 7, 8, 9], 0)
    assert listed(job, PartitionListing(late_after_ms=LATE_MS, late_limit=2)) == ([8, 9], 2)
    assert listed(job, PartitionListing(late_after_ms=LATE_MS, late_limit=0)) == ([], 4)


def test_all_partitions_are_listed_for_who_wants_them(job: GroupJob) -> None:
    assert listed(job, PartitionListing(partitions=True, late_limit=0)) == (list(range(10)), 0)


def test_a_group_or_topic_that_is_not_wanted_has_no_series(job: GroupJob) -> None:
    snapshot = job.board.latest(round(job.now * 1000))
    assert snapshot is not None
    wanted = Export(exclude_consumers=re.compile("g"))
    families = shown_groups(snapshot, PartitionListing(), wanted, round(job.now * 1000)).families
    assert not [family for family in families if family.metric.labels == ("group",) and family.series]


def test_partitions_of_groups_are_left_out_before_those_of_topics(job: GroupJob) -> None:
    whole = samples(page(job.table, new_observer(), now=job.now, groups=job.board))
    of_groups = sum(name.startswith("segtail_group_partition") for name, _ in whole)
    job.table.series_limit = sum(
        name.startswith(("segtail_partition", "segtail_topic", "segtail_group", "segtail_log_dir")) for name, _ in whole
    )
    job.table.series_limit -= of_groups
    cut = samples(page(job.table, new_observer(), now=job.now, groups=job.board))
    job.table.series_limit = 1_000_000
    assert not [name for name, _ in cut if name.startswith("segtail_group_partition")]
    assert [name for name, labels in cut if name == "segtail_partition_log_end_offset" and "partition" in dict(labels)]
    assert [name for name, _ in cut if name == "segtail_group_lag_offsets"]


def test_what_alerts_need_of_groups_is_on_the_page_whatever_is_left_out(job: GroupJob) -> None:
    job.table.series_limit = 1
    cut = {name for name, _ in samples(page(job.table, new_observer(), now=job.now, groups=job.board))}
    job.table.series_limit = 1_000_000
    alerts = (Path(__file__).parents[2] / "conf" / "alerts").glob("Group*.yaml")
    needed = {name for path in alerts for name in re.findall(r"segtail_group_[a-z_]+", path.read_text())}
    assert {"segtail_group_lag_bytes", "segtail_group_last_commit_timestamp_seconds"} & cut == set()
    assert needed - cut == {  # nothing is deleted, lost or skipped here, and nothing is held or expires
        "segtail_group_buffered_records",
        "segtail_group_offset_expiration_timestamp_seconds",
        "segtail_group_endangered_timestamp_seconds",
        "segtail_group_held_since_timestamp_seconds",
        "segtail_group_last_loss_timestamp_seconds",
        "segtail_group_deleted_topic_records",
        "segtail_group_lag_unknown_partitions",  # all lags are known
        "segtail_group_last_skip_timestamp_seconds",
        "segtail_group_skipped_offsets_total",
        "segtail_group_skipped_records_total",
        "segtail_group_last_rebalance_timestamp_seconds",  # its agent says nothing of that
        "segtail_group_rebalance_ratio",
        "segtail_group_standing_offset",  # nothing stands
    }


def test_commits_that_wait_have_no_series_for_a_group_or_topic_that_is_not_wanted() -> None:
    found = world()
    found.agents["a1"].pending = [WAITING]
    found.round()
    snapshot = found.board.latest(round(found.now * 1000))

    def series(export: Export) -> int:
        families = shown_groups(snapshot, PartitionListing(), export, round(found.now * 1000)).families
        return sum(len(family.labels) for family in families if family.metric is PENDING_COMMITS)

    assert series(Export()) == 1
    assert series(Export(exclude_consumers=re.compile("g"))) == 0
    assert series(Export(exclude=re.compile("orders"))) == 0
