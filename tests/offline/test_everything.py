"""Log dirs of real clusters, read once for all that a job serves: the same as the commands say that read them for one thing."""

from dataclasses import replace
from pathlib import Path

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.listing_json import PartitionDetail
from streaming.common.settings import Settings
from streaming.pages.api.state import State
from streaming.terminal.offline.everything import read_everything
from streaming.terminal.offline.group_reading import read_groups
from tests.frozen import NAMES, Frozen, unpack
from tests.group_answers import detailed
from tests.offline.lists import kept, opened

LATER_MS = 2_000_000
"""Every transaction has timed out by then."""


@pytest.fixture(params=NAMES)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Frozen:
    return unpack(request.param, tmp_path)


def read(of: Frozen) -> State:
    return read_everything(open_log_dirs(of.log_dirs), Settings(), of.frozen_ms + LATER_MS)


def test_one_reading_says_what_each_command_says(cluster: Frozen) -> None:
    found, now_ms = read(cluster), cluster.frozen_ms + LATER_MS
    transactions = found.transactions("limit=1000")
    without_groups = [replace(each, held_groups=None) for each in transactions.rows]  # who reads transactions alone reads no groups
    assert without_groups == opened(cluster.log_dirs, Settings(), now_ms).transactions
    retention = kept(cluster.log_dirs, Settings(), now_ms).rows
    unsought = {(each.topic, each.partition) for each in retention if "compact" not in each.cleanup_policy}
    assert all(each.last_stable_offset < 0 for each in retention if (each.topic, each.partition) in unsought)
    whole = found.retention("limit=1000&sort=topic").rows
    assert [replace(each, last_stable_offset=-1) if (each.topic, each.partition) in unsought else each for each in whole] == retention
    alone = detailed(read_groups(open_log_dirs(cluster.log_dirs), (), Settings(), now_ms))
    assert [found.group(each.summary.group) for each in alone.groups] == [*alone.groups]
    assert {each.group for each in found.groups("limit=1000").rows} == {each.summary.group for each in alone.groups}


def test_what_hangs_is_a_problem_with_the_command_that_aborts_it_and_what_is_overdue_one_with_a_question(cluster: Frozen) -> None:
    found = read(cluster)
    rows = found.transactions("limit=1000").rows
    problems = found.problems("limit=1000").rows
    hanging = {(row.topic, row.partition, row.command) for row in rows if row.verdict == "hanging"}
    assert {(each.topic, each.partition, each.command) for each in problems if each.kind == "transaction_hanging"} == hanging
    assert all(command for *_, command in hanging)
    overdue = {row.producer_id for row in rows if row.verdict == "overdue"}
    named = [each for each in problems if each.kind == "transaction_overdue" and each.topic]
    assert len(named) == len(overdue)
    assert all(" describe --transactional-id " in each.command for each in named)
    unfinished = [each for each in problems if each.kind in ("transaction_overdue", "retention_overdue")]
    assert all("is down, it goes on with that when it is started" in each.what for each in unfinished)  # nobody has written for a minute
    for row in rows:
        if row.verdict == "overdue":  # one problem for all partitions of a transaction names each of them
            assert any(f"{row.topic}-{row.partition}" in each.what for each in named)
    status = found.status()
    assert (status.critical, status.ready, status.partitions > 0) == (sum(each.severity == "critical" for each in problems), True, True)
    assert status.verdict.startswith("Nothing is wrong") == (not status.critical + status.warning)


def test_of_a_stuck_transaction_whose_coordinator_is_not_here_nothing_is_stated_of_its_coordinator(tmp_path: Path) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    reported = [
        each.what
        for some in cluster.log_dirs
        for each in read_everything(open_log_dirs([some]), Settings(), cluster.frozen_ms + LATER_MS).problems("limit=1000").rows
        if each.kind == "transaction_stuck" and each.no_command
    ]
    assert reported
    assert all("cannot be told here" in each and "still knows" not in each for each in reported)


def test_every_partition_has_all_that_its_rows_have(cluster: Frozen) -> None:
    state = read(cluster)
    page = state.partitions("limit=1000&sort=topic")
    assert page.total == page.matched == len(page.rows)
    retention = {(row.broker, row.topic, row.partition): row for row in state.retention("limit=1000").rows}
    for row in page.rows:
        detail = state.partition(row.topic, row.partition)
        assert detail is not None
        assert (detail.row, detail.retention) == (row, retention[row.broker, row.topic, row.partition])
        assert len(detail.transactions) == row.open_transactions
        assert sum(each.size_bytes for each in detail.segments) == row.size_bytes
        assert [each.active for each in detail.segments][-1:] == [True]
        assert sum(each.shown for each in detail.replicas) == 1
        assert PartitionDetail.decode(detail.encode()) == detail
    assert state.partition("nothing", 0) is None


def test_what_waits_is_at_least_so_much_where_others_may_have_gone_on_beyond_a_checkpoint(tmp_path: Path) -> None:
    cluster = unpack("replica_down", tmp_path)
    for nodes, more in (("n1", True), ("n1 n2", False)):  # these two were in sync
        some = [path for path in cluster.log_dirs if path.parent.name in nodes.split()]
        state = read_everything(open_log_dirs(some), Settings(), cluster.frozen_ms + LATER_MS)
        of_rep_tx = [row for row in state.partitions("limit=1000").rows if row.topic == "rep-tx"]
        assert {(row.unread_offsets > 0, row.unread_more) for row in of_rep_tx} == {(not more, more)}
        assert {row.holds_more for row in state.transactions("").rows} == {more}
        assert {row.topic: row.unread_more for row in state.topics("").rows}["rep-tx"] is more
        assert not any(row.unread_more for row in state.partitions("limit=1000").rows if row.topic == "__cluster_metadata")


def test_offsets_that_wait_are_those_behind_the_first_open_transaction(tmp_path: Path) -> None:
    state = read(unpack("transactions_v2", tmp_path))
    rows = {(row.topic, row.partition): row for row in state.partitions("limit=1000").rows}
    for row in state.transactions("limit=1000").rows:
        partition = rows[row.topic, row.partition]
        first = row.first_offset <= partition.last_stable_offset
        assert row.holds_offsets == (partition.high_watermark - partition.last_stable_offset if first else -1)


def test_a_log_dir_of_a_broker_that_is_not_read_is_not_known_rather_than_fine(tmp_path: Path) -> None:
    cluster = unpack("transactions_v2", tmp_path)

    def unwatched(log_dirs: tuple[Path, ...]) -> list[str]:
        rows = read_everything(open_log_dirs(log_dirs), Settings(), cluster.frozen_ms).problems("limit=1000").rows
        return [each.what for each in rows if each.kind == "log_dir_unwatched"]

    assert unwatched(cluster.log_dirs) == []
    (told,) = unwatched(cluster.log_dirs[:1])
    assert told.endswith(": 1 log dir of broker 1, which nobody named")
