"""What is left for consumer groups, held against really consuming it, on topics with all that makes that hard to count."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from streaming.broker.agent.group_answers import find_positions
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_messages import MOST_POSITIONS, POSITIONS_ASKED
from streaming.cluster.consumers import group_lag, group_uncommitted
from streaming.common.settings import Settings
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.terminal.offline.group_reading import read_groups
from tests.agents import Agent, Reader
from tests.broker import group_world
from tests.broker.dumped_logs import parsed
from tests.broker.group_comparing import (
    PAGE_FIELDS,
    Key,
    Reported,
    agree,
    agree_on_share_groups,
    page_at,
    reported_by_job,
    reported_by_page,
    reported_from_disk,
    sums,
    sums_by_page,
)
from tests.broker.group_consuming import COMMITTED, UNCOMMITTED, Left
from tests.broker.group_oracle import Arithmetic, reported_by_tool
from tests.broker.group_world import SHARED
from tests.broker.install import OLDER_VERSION
from tests.broker.lab import Commit, Consumed, Ends
from tests.group_answers import detailed
from tests.jobs import serving
from tests.recorded.recordings import WORLDS, Disk, replay
from tests.recorded.worlds.groups import GROUPS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OLD_OFFSETS = 60
_PLACES = {"first", "inside", "marker", "aborted", "held", "gap", "end"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedGroups:
    """A broker's disk, what its clients and Kafka's tools said, and what was consumed for each group and partition."""

    version: str
    disk: Disk
    left: Sequence[Left]
    commits: Sequence[Commit]
    arithmetic: Arithmetic
    described: str


@pytest.fixture(scope="module", params=WORLDS["groups"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RecordedGroups:
    """With all topics and groups of `group_world`."""
    replayed = replay("groups", request.param, tmp_path_factory.mktemp(f"groups-{request.param}"))
    left = [
        Left(commit=Commit(*commit), ends=Ends(*ends), committed=Consumed(*committed), uncommitted=Consumed(*uncommitted))
        for commit, ends, committed, uncommitted in replayed.json("left")
    ]
    return RecordedGroups(
        version=request.param,
        disk=replayed.disk(),
        left=left,
        commits=[Commit(*row) for row in replayed.json("commits")],
        arithmetic=Arithmetic(parsed(replayed.text("logs"))),
        described=replayed.text("groups"),
    )


@pytest.fixture(scope="module")
def reported(world: RecordedGroups) -> dict[Key, Reported]:
    """What `segtail groups` says."""
    return reported_from_disk(world.disk.log_dirs, world.disk.properties, "--at", str(world.disk.now_ms))


def test_groups_have_committed_at_every_kind_of_place(world: RecordedGroups) -> None:
    found = set()
    for left in world.left:
        batches = world.arithmetic.batches((left.commit.topic, left.commit.partition))
        found.add(group_world.places(batches, left.ends.last_stable).get(left.commit.offset, "beyond"))
    assert found == {*_PLACES, "beyond"}
    old = {left.commit.partition for left in world.left if left.commit.topic == "old" and 0 <= left.committed.first_offset < _OLD_OFFSETS}
    assert old == {0, 1, 2}, "messages of old formats were consumed"


def test_what_is_consumed_is_what_lies_in_the_log(world: RecordedGroups) -> None:
    """Two ways of counting agree, neither of which is segtail's."""
    assert len(world.left) > 400
    for left in world.left:
        assert left.committed == world.arithmetic.consumed(left, COMMITTED), left
        assert left.uncommitted == world.arithmetic.consumed(left, UNCOMMITTED), left


def test_on_a_plain_topic_the_records_that_are_left_are_the_offsets(world: RecordedGroups) -> None:
    plain = [left for left in world.left if left.commit.topic == "plain" and left.committed.records >= 0]
    assert len(plain) > GROUPS
    for left in plain:
        assert left.committed == left.uncommitted
        assert left.committed.records == left.ends.high_watermark - left.commit.offset


def test_offsets_that_transactions_commit_count_when_they_are_committed_and_in_the_order_of_their_records(world: RecordedGroups) -> None:
    groups = ("kept", "overtaken", "pending")
    offsets = {left.key: left.commit.offset for left in world.left if left.commit.group in groups}
    assert offsets == {
        ("kept", "ledger", 0): 7,
        ("kept", "ledger", 1): 8,
        ("overtaken", "ledger", 0): 12,
        ("overtaken", "ledger", 1): 41,
        ("pending", "ledger", 0): 3,
    }


def test_kafkas_own_tool_counts_offsets(world: RecordedGroups) -> None:
    """With markers, with what was aborted and with what is compacted away; and negative ones beyond the end."""
    reported = reported_by_tool(world.described)
    assert reported == {
        left.key: (left.commit.offset, left.ends.high_watermark, left.ends.high_watermark - left.commit.offset) for left in world.left
    }
    wrong = [left for left in world.left if reported[left.key][2] != left.uncommitted.records]
    assert {"ledger", "compacted", "cut"} <= {left.commit.topic for left in wrong}


def test_nothing_is_missing_in_the_log_dirs(world: RecordedGroups) -> None:
    answer = detailed(read_groups(open_log_dirs(world.disk.log_dirs), (), Settings(), world.disk.now_ms))
    assert (answer.missing, answer.doubts) == ((), ())


def test_the_log_dirs_show_what_is_consumed(world: RecordedGroups, reported: dict[Key, Reported]) -> None:
    agree("segtail groups", world.left, world.arithmetic, lambda: reported, seconds=0)


def test_share_groups_have_as_much_left_as_their_coordinator_says(world: RecordedGroups, reported: dict[Key, Reported]) -> None:
    """There are none before 4.0."""
    assert {each.group for each in world.commits if each.lag >= 0} == (set() if world.version == OLDER_VERSION else set(SHARED))
    agree_on_share_groups("segtail groups", world.commits, lambda: reported, seconds=0)


@pytest.mark.spark
def test_a_job_says_what_is_consumed(world: RecordedGroups, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for waiting, name in ((group_uncommitted, "LOG_START_MS"), (group_lag, "READ_AFTER_MS")):
        monkeypatch.setattr(waiting, name, 0)  # for what a broker may still write: this one has stopped
    left, arithmetic = world.left, world.arithmetic
    options = {"server_properties": ",".join(map(str, world.disk.properties)), "from": "active", "export.group_granularity": "partition"}
    with serving(spark, tmp_path / "checkpoint", *world.disk.log_dirs, **options) as url:
        agree("the page", left, arithmetic, lambda: reported_by_page(page_at(url)), PAGE_FIELDS)
        assert sums_by_page(page_at(url)) == sums(left, arithmetic)
        agree("the answer of the job", left, arithmetic, lambda: reported_by_job(url))
        agree_on_share_groups("the answer of the job", world.commits, lambda: reported_by_job(url))


@pytest.fixture(scope="module")
def agent(world: RecordedGroups, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """One that has read everything."""
    made = Agent(*world.disk.log_dirs)
    Reader(made, start_from="active").begin()
    made.follow_groups()
    made.count()
    yield made
    made.close()


def test_an_agent_shows_the_commits_that_kafkas_own_tool_lists(world: RecordedGroups, agent: Agent) -> None:
    found = {
        (row["group"], row["topic"], row["partition"]): row["offset"]
        for changes in agent.following.changes(())
        if isinstance(changes, GroupChanges)
        for row in changes.commits.to_pylist()
        if row["offset"] >= 0 and not row["share"]
    }
    assert found == {key: committed for key, (committed, _, _) in reported_by_tool(world.described).items()}


def test_an_agent_knows_where_offsets_lie_so_that_their_differences_are_what_is_consumed(world: RecordedGroups, agent: Agent) -> None:
    of = {tail.cursor.log[1:3]: tail.cursor.log for tail in agent.watcher.tails()}
    known = [left for left in world.left if left.commit.offset <= left.ends.high_watermark]
    places = [
        (of[left.key[1:]], offset, left.ends.high_watermark)
        for left in known
        for offset in (max(left.commit.offset, left.ends.log_start), left.ends.last_stable, left.ends.high_watermark)
    ]
    rows = [(*log, offset, upto, 0) for log, offset, upto in places]
    names = ("broker", "topic", "partition", "topic_id", "offset", "upto", "reads_uncommitted")
    asked = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], POSITIONS_ASKED)
    answers = [
        row
        for part in range(0, len(rows), MOST_POSITIONS)
        for row in find_positions(agent.ladders, agent.calls, asked.slice(part)).to_pylist()
    ]
    assert {row["state"] for row in answers} == {"known"}
    for left, first, stable, end in zip(known, answers[::3], answers[1::3], answers[2::3], strict=True):
        committed = stable["data"] - stable["aborted"] - first["data"] + first["aborted"]
        assert max(0, committed) == max(0, left.committed.records), left
        assert end["data"] - first["data"] == left.uncommitted.records, left
        assert end["bytes"] - first["bytes"] == world.arithmetic.bytes(left), left
        if left.committed.records > 0:
            assert (first["next_offset"], first["next_timestamp_ms"]) == left.committed[1:], left
    assert len(known) > 300
