"""The board of snapshots of consumer groups."""

from threading import Thread

from streaming.cluster.consumers.group_snapshot import OLD_MS, GroupBoard, GroupSnapshot
from tests.consumers.group_world import world
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


def test_an_old_snapshot_is_not_shown() -> None:
    (first,) = snapshots(1)
    board = GroupBoard()
    board.publish(first)
    assert board.latest(first.at_ms + OLD_MS) is first
    assert board.latest(first.at_ms + OLD_MS + 1) is None
