"""The board of snapshots of consumer groups."""

from threading import Thread

from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol.group_json import GroupPartition
from streaming.cluster.consumers.group_snapshot import OLD_MS, GroupBoard, GroupSnapshot
from tests.builders import NOW
from tests.consumers.group_world import world
from tests.group_snapshots import Group, snapshot_of
from tests.limits import SECONDS


def snapshots(count: int) -> list[GroupSnapshot]:
    job = world()
    return [job.round(1) for _ in range(count)]


def test_who_looks_waits_for_a_snapshot_that_is_announced() -> None:
    first, second = snapshots(2)
    board = GroupBoard()
    board.publish(first)
    board.announce()
    number = board.begin()
    assert board.latest(first.at_ms) is first
    thread = Thread(target=board.publish, args=(second, number))
    thread.start()
    assert board.latest(first.at_ms, SECONDS) is second
    thread.join()


def test_a_round_that_began_before_an_announcement_does_not_fulfil_it() -> None:
    first, second = snapshots(2)
    board = GroupBoard()
    number = board.begin()
    board.announce()
    board.publish(first, number)
    later = board.begin()
    thread = Thread(target=board.publish, args=(second, later))
    thread.start()
    assert board.latest(first.at_ms, SECONDS) is second
    thread.join()


def test_a_round_that_fails_keeps_nobody_waiting() -> None:
    (first,) = snapshots(1)
    board = GroupBoard()
    board.publish(first)
    board.announce()
    board.end(board.begin())
    assert board.latest(first.at_ms, SECONDS) is first


def test_it_is_empty_once_a_round_has_found_no_group() -> None:
    board = GroupBoard()
    assert not board.is_empty
    board.publish(snapshot_of(now_ms=NOW))
    assert board.is_empty
    board.publish(snapshot_of(Group(), now_ms=NOW))
    assert not board.is_empty


def test_an_old_snapshot_is_not_shown() -> None:
    (first,) = snapshots(1)
    board = GroupBoard()
    board.publish(first)
    assert board.latest(first.at_ms + OLD_MS) is first
    assert board.latest(first.at_ms + OLD_MS + 1) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), unique=True))
def test_the_commits_of_a_group_are_found_by_its_name(commits: list[tuple[int, int]]) -> None:
    """Those of a group are no neighbours: commits are sorted by pairs of group and topic."""
    every = [GroupPartition(topic="orders" if partition % 2 else "audit", partition=partition) for _, partition in commits]
    names = [f"g{3 - number}" for number in range(4)]
    groups = [
        Group(name=name, partitions=[of for (group, _), of in zip(commits, every, strict=True) if group == number])
        for number, name in enumerate(names)
    ]
    snapshot = snapshot_of(*groups, now_ms=NOW)
    rows = snapshot.rows
    for name in (*names, "another"):
        assert snapshot.rows_of(name) == [row for row in range(len(rows)) if rows.group_names[rows.group[row]] == name]
    assert sum(len(snapshot.rows_of(name)) for name in names) == len(commits)
