"""Groups are judged and summed once for a snapshot, however many pages show them."""

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from streaming.broker.protocol.group_json import BatchCheck, GroupPartition, GroupUse
from streaming.cluster.consumers.group_details import GroupDetails
from streaming.cluster.consumers.group_partitions import GroupPartitions
from streaming.cluster.consumers.group_snapshot import GroupBoard
from streaming.cluster.verdicts.circumstances import thresholds_of
from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.cluster.view.view import view
from streaming.common.settings import Settings
from streaming.errors import NotYetError
from streaming.pages.api import listed_groups
from streaming.pages.api.listed_groups import GroupResults, ListedGroups
from streaming.pages.api.state import State
from streaming.pages.site.judged_looks import JudgedLooks, Looks
from tests.builders import NOW
from tests.group_snapshots import Group, snapshot_of
from tests.view.rows import new_observer, new_table

PARTITION = GroupPartition(
    topic="orders", partition=0, committed=3, lag_offsets=9, lag_records_read_committed=9, next_batch_bytes=900, loss_ms=NOW + 90_000_000
)
SNAPSHOT = snapshot_of(*(Group(name=name, partitions=[PARTITION]) for name in ("a", "b", "c")), now_ms=NOW)
HOUR = 3_600_000


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often groups were judged, and summed, after the judgement of the snapshot itself."""
    made = Counter[str]()

    def counting(name: str) -> Callable[..., Any]:
        make = getattr(listed_groups, name)

        def count(*arguments: Any) -> Any:
            made[name] += 1
            return make(*arguments)

        return count

    for name in ("judge_groups", "group_totals"):
        monkeypatch.setattr(listed_groups, name, counting(name))
    return made


@pytest.fixture
def state() -> State:
    """A job's, which looks anew for every answer; the snapshot of the groups stays."""
    seconds = itertools.count(NOW // 1000, 5)
    table, board = new_table(), GroupBoard()
    board.publish(SNAPSHOT)
    looks = Looks(table, lambda: next(seconds))
    judged = JudgedLooks(table, new_observer(), looks, board, lambda _: None, thresholds_of(Settings()), redacted=False)
    return State(judged.look)


def test_what_is_judged_as_it_is_already_is_not_judged_again(calls: Counter[str], state: State) -> None:
    plain = state.groups()
    assert state.groups(f"at_ms={NOW}&fetch_bytes=1048576") == state.groups("fetch_bytes=1048576") == plain
    assert calls == {"group_totals": 1}


def test_pages_of_one_command_share_a_judgement_and_the_sums(calls: Counter[str], state: State) -> None:
    pages = [state.groups(f"at_ms={NOW + 2 * HOUR}&limit=1&offset={offset}") for offset in range(3)]
    named = state.group("b", f"at_ms={NOW + 2 * HOUR}")
    assert calls == {"judge_groups": 1, "group_totals": 1}
    assert {page.at_ms for page in pages} == {NOW + 2 * HOUR}
    assert [row.verdict for page in pages for row in page.rows] == ["will_lose"] * 3
    assert named is not None
    assert named.summary == pages[1].rows[0]


def test_that_there_are_no_groups_is_not_known_before_the_logs_of_coordinators_are_read() -> None:
    board, table = GroupBoard(), new_table()
    board.publish(replace(snapshot_of(now_ms=NOW), unread={"__consumer_offsets": 50}))
    judged = JudgedLooks(
        table, new_observer(), Looks(table, lambda: NOW / 1000), board, lambda _: None, thresholds_of(Settings()), redacted=False
    )
    with pytest.raises(NotYetError, match="nothing is known of consumer groups yet"):
        State(judged.look).groups()


def test_other_parameters_are_another_judgement(calls: Counter[str], state: State) -> None:
    small = state.groups("fetch_bytes=100").rows
    later = state.groups(f"at_ms={NOW + HOUR}&fetch_bytes=100").rows
    assert [row.verdict for row in small] == ["too_large"] * 3
    assert [row.verdict for row in state.groups().rows] == ["fine"] * 3
    assert calls == {"judge_groups": 2, "group_totals": 1}
    assert [replace(row, verdict="", severity="") for row in small] == [replace(row, verdict="", severity="") for row in later]


def test_the_oldest_of_a_group_is_that_of_its_partitions_and_the_list_is_sorted_by_it() -> None:
    seen, unseen = ({"next_offset": 3, "next_append_ms": appended, "next_timestamp_ms": NOW - 2 * HOUR} for appended in (NOW - HOUR, -1))
    both = [replace(PARTITION, topic="appended", **seen), replace(PARTITION, topic="stamped", **unseen)]
    groups = [Group(name="both", partitions=both), Group(name="new", partitions=both[:1])]
    snapshot = snapshot_of(*groups, Group(name="stamped", partitions=both[1:]), now_ms=NOW)
    board = GroupBoard()
    board.publish(snapshot)
    table = new_table()
    looks = Looks(table, lambda: NOW // 1000)
    judged = JudgedLooks(table, new_observer(), looks, board, lambda _: None, thresholds_of(Settings()), redacted=False)
    rows = State(judged.look).groups("sort=oldest_ms").rows
    assert [(row.group, row.oldest_ms) for row in rows] == [("both", NOW - 2 * HOUR), ("stamped", NOW - 2 * HOUR), ("new", NOW - HOUR)]


def test_what_is_made_of_table_and_groups_is_as_of_the_older_of_both(state: State) -> None:
    later = [state.status().at_ms for _ in range(3)]
    assert {*later, state.problems().at_ms} == {NOW}
    assert state.partitions().at_ms > NOW


def test_what_the_details_of_groups_look_up_is_indexed_once_for_all_of_them() -> None:
    made = []
    seen = new_table().snapshot(NOW / 1000)

    def messages() -> GroupPartitions:
        made.append(GroupPartitions(SNAPSHOT, view(seen), seen.topic_names))
        return made[-1]

    groups = ListedGroups(judged=judge_groups(SNAPSHOT, NOW), results=GroupResults(SNAPSHOT, lambda _: True), messages=messages)
    details = [groups.named(name) for name in "abca"]
    assert [each and each.summary.group for each in details] == [*"abca"]
    assert len(made) == 1


class Checked:
    """Details whose check of the next batch found it damaged."""

    def staked(self, partitions: list[GroupPartition]) -> list[GroupPartition]:
        return partitions

    def checked(self, partitions: list[GroupPartition]) -> list[GroupPartition]:
        return [replace(each, batch=BatchCheck(sound=False, error="CRC")) for each in partitions]


def test_what_only_the_details_find_is_a_judgement_with_its_own_time() -> None:
    stopped = replace(PARTITION, stopped_since_ms=NOW - HOUR)
    board, table = GroupBoard(), new_table()
    board.publish(snapshot_of(Group(name="a", partitions=[stopped]), now_ms=NOW))
    looks = Looks(table, lambda: NOW / 1000)
    checked = cast(GroupDetails, Checked())
    judged = JudgedLooks(table, new_observer(), looks, board, lambda _: checked, thresholds_of(Settings()), redacted=False)
    state = State(judged.look)
    (listed,), named = state.groups().rows, state.group("a", "")
    assert named is not None
    assert (listed.verdict, listed.since_ms) == ("stopped", NOW - HOUR)
    worst = named.partitions[0]
    assert (worst.verdict, worst.severity) == ("damaged", "warning")
    assert (named.summary.verdict, named.summary.severity, named.summary.since_ms) == (worst.verdict, worst.severity, worst.since_ms)


def test_groups_of_one_use_are_those_whose_rows_have_it(state: State) -> None:
    every = state.groups()
    assert every.rows
    for use in GroupUse:
        some = state.groups(f"use={use}")
        assert [row.group for row in some.rows] == [row.group for row in every.rows if row.use == use]
        assert (some.matched, some.total) == (len(some.rows), every.total)
