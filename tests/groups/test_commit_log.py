"""What a coordinator's log says of commits, replayed as the coordinator does it."""

from typing import Any

import pytest

from streaming.common.log_key import LogKey
from streaming.kafka.formats.consumer_offsets import OffsetCommit
from streaming.kafka.groups import followed_groups
from streaming.kafka.groups.commit_log import CommitLog
from streaming.kafka.groups.followed_groups import GroupLimit
from streaming.kafka.groups.group_rows import NOT_UNDERSTOOD as NOT_UNDERSTOOD_OFFSET
from streaming.kafka.groups.group_rows import REMOVED
from streaming.kafka.scan.group_records import NOT_UNDERSTOOD, Commit, EndMarker, GroupRecord, GroupRecords

LOG = LogKey(1, "__consumer_offsets", 3, "AAECAwQFBgcICQoLDA0ODw")

Row = dict[str, Any]


def new_log(most: int = 100) -> CommitLog:
    return CommitLog(LOG, "e1", GroupLimit(most))


def value(offset: int, topic_id: str | None = None, expire_ms: int = -1) -> OffsetCommit:
    return OffsetCommit(offset=offset, metadata="", commit_timestamp=1000 + offset, topic_id=topic_id, expire_timestamp=expire_ms)


def commit(record_offset: int, offset: int | None, *, producer: int = -1, group: str = "g", partition: int = 0) -> Commit:
    return Commit(record_offset, producer, group, "t", partition, None if offset is None else value(offset))


def replay(log: CommitLog, *records: Commit | EndMarker | GroupRecord) -> CommitLog:
    log.replay(GroupRecords(records, 0), records[-1].record_offset + 1)
    return log


def offsets(log: CommitLog, after: int = 0) -> dict[tuple[str, int], tuple[int, int]]:
    """By group and partition: the offset, and the record that made it count."""
    rows: list[Row] = log.changes(after).commits.to_pylist()
    return {(row["group"], row["partition"]): (row["offset"], row["effective_offset"]) for row in rows}


def pending(log: CommitLog) -> list[tuple[int, int]]:
    rows: list[Row] = log.changes(0).pending.to_pylist()
    return [(row["producer_id"], row["offset"]) for row in rows]


def test_the_newest_commit_of_each_partition_counts() -> None:
    log = replay(new_log(), commit(0, 10), commit(1, 5, partition=1), commit(2, 11), commit(4, 7, group="h"))
    assert offsets(log) == {("g", 0): (11, 2), ("g", 1): (5, 1), ("h", 0): (7, 4)}
    assert log.upto == 5
    (row,) = (row for row in log.changes(0).commits.to_pylist() if row["group"] == "h")
    assert row == {
        "group": "h",
        "topic": "t",
        "topic_id": "",
        "partition": 0,
        "coordinator": 3,
        "offset": 7,
        "commit_ms": 1007,
        "expire_ms": -1,
        "record_offset": 4,
        "effective_offset": 4,
        "share": False,
        "delivered": 0,
        "done": None,
    }


def test_a_commit_in_a_transaction_counts_from_its_marker_on() -> None:
    log = replay(new_log(), commit(0, 10), commit(1, 20, producer=7))
    assert (offsets(log), pending(log)) == ({("g", 0): (10, 0)}, [(7, 20)])
    replay(log, EndMarker(2, 8, True))
    assert pending(log) == [(7, 20)]
    replay(log, EndMarker(3, 7, True))
    assert (offsets(log), pending(log)) == ({("g", 0): (20, 3)}, [])


def test_an_aborted_commit_never_counts() -> None:
    log = replay(new_log(), commit(0, 20, producer=7), EndMarker(1, 7, False), EndMarker(2, 7, True))
    assert (offsets(log), pending(log)) == ({}, [])


def test_the_order_is_that_of_the_commits_and_not_of_the_markers() -> None:
    log = replay(new_log(), commit(0, 20, producer=7), commit(1, 30), EndMarker(2, 7, True))
    assert offsets(log) == {("g", 0): (30, 1)}


def test_after_a_tombstone_an_earlier_commit_counts_again_only_if_it_comes_later() -> None:
    log = replay(new_log(), commit(0, 20, producer=7), commit(1, 30), commit(2, None), EndMarker(3, 7, True))
    assert offsets(log) == {("g", 0): (REMOVED, 2)}
    replay(log, commit(4, 40, producer=7), EndMarker(5, 7, True))
    assert offsets(log) == {("g", 0): (40, 5)}


def test_a_tombstone_of_what_was_never_there_changes_nothing() -> None:
    log = replay(new_log(), commit(0, None))
    assert (log.version, offsets(log)) == (0, {})


def test_changes_are_those_since_a_version() -> None:
    log = replay(new_log(), commit(0, 10), commit(1, 5, partition=1))
    seen = log.version
    replay(log, commit(2, 11))
    assert offsets(log, seen) == {("g", 0): (11, 2)}
    assert not log.changes(seen).whole
    assert log.changes(0).whole
    assert offsets(log, log.version) == {}


def test_what_is_not_understood_replaces_what_was_known() -> None:
    log = replay(new_log(), commit(0, 10), Commit(1, -1, "g", "t", 0, NOT_UNDERSTOOD))
    assert offsets(log) == {("g", 0): (NOT_UNDERSTOOD_OFFSET, 1)}


def test_topic_ids_and_the_time_of_expiry_are_kept() -> None:
    log = replay(new_log(), Commit(0, -1, "g", "t", 0, value(1, "id", 5000)), Commit(1, -1, "g", "t", 1, value(1)))
    found = [(row["topic_id"], row["expire_ms"]) for row in log.changes(0).commits.to_pylist()]
    assert found == [("id", 5000), ("", -1)]


def test_records_that_were_replayed_are_left_out() -> None:
    log = replay(new_log(), commit(0, 10), commit(1, 11))
    log.replay(GroupRecords((commit(0, 10),), 1), 1)
    assert (offsets(log), log.upto, log.unreadable) == ({("g", 0): (11, 1)}, 2, 1)


def test_groups_beyond_the_limit_are_counted() -> None:
    limit = GroupLimit(1)
    log, other = CommitLog(LOG, "e1", limit), CommitLog(LOG, "e2", limit)
    replay(log, commit(0, 1), commit(1, 2, group="h"), commit(2, 3, group="h"), commit(3, 4, group="i", producer=9))
    replay(other, commit(0, 1, group="x"))
    assert (log.omitted, other.omitted, limit.used) == (2, 1, 1)
    assert offsets(log) == {("g", 0): (1, 0)}
    replay(log, commit(4, None), commit(5, 9, group="h"), commit(6, 1, group="j"))
    assert offsets(log) == {("g", 0): (REMOVED, 4), ("j", 0): (1, 6)}  # of h it does not have all commits
    log.close()
    assert limit.used == 0


def test_deleted_rows_are_forgotten_and_whoever_has_not_seen_the_deletion_gets_everything() -> None:
    log = new_log()
    for number in range(100):
        replay(log, commit(2 * number, 1, partition=number), commit(2 * number + 1, 2, producer=5, partition=1000 + number))
    seen = log.version
    for number in range(100):
        replay(log, commit(200 + number, None, partition=number))
    assert log.changes(seen).whole
    assert len(log.changes(seen).commits) < 40
    assert len(pending(log)) == 100
    replay(log, EndMarker(300, 5, True))
    assert len([offset for offset, _ in offsets(log).values() if offset == 2]) == 100


def test_a_commit_of_a_group_that_is_left_out_changes_nothing() -> None:
    log = replay(new_log(1), commit(0, 1))
    seen = log.version
    replay(log, commit(1, 2, group="h"))
    assert (log.version, log.omitted, log.upto) == (seen, 1, 2)


def test_a_commit_in_the_first_record_of_a_log_takes_room_once() -> None:
    limit = GroupLimit(2)
    log = replay(CommitLog(LOG, "e1", limit), commit(0, 1), commit(1, 2), commit(2, 3, group="h"))
    assert limit.used == 2
    replay(log, commit(3, None))
    assert limit.used == 1


def test_a_commit_without_a_time_of_expiry_takes_the_earlier_one_away() -> None:
    log = replay(new_log(), Commit(0, -1, "g", "t", 0, value(1, None, 5000)), Commit(1, -1, "g", "t", 0, value(2)))
    assert [row["expire_ms"] for row in log.changes(0).commits.to_pylist()] == [-1]


def test_topics_of_a_group_are_distinguished() -> None:
    log = replay(new_log(), *(Commit(offset, -1, "g", topic, 0, value(7 + offset)) for offset, topic in enumerate(("t", "u", "t"))))
    assert {row["topic"]: row["offset"] for row in log.changes(0).commits.to_pylist()} == {"t": 9, "u": 8}


def test_a_log_that_is_closed_gives_back_the_room_of_each_group_once() -> None:
    limit = GroupLimit(3)
    log, other = CommitLog(LOG, "e1", limit), CommitLog(LOG, "e2", limit)
    replay(log, commit(0, 1), commit(1, 2, partition=1), commit(2, 3, group="h"), commit(3, None, group="h"))
    replay(other, commit(0, 1, group="x"))
    log.close()
    assert limit.used == 1


def test_a_group_that_comes_back_needs_room_again() -> None:
    limit = GroupLimit(1)
    log, other = CommitLog(LOG, "e1", limit), CommitLog(LOG, "e2", limit)
    replay(log, commit(0, 1), commit(1, None))
    replay(other, commit(0, 1, group="x"))
    replay(log, commit(2, 3))
    assert (limit.used, log.omitted, offsets(log)) == (1, 1, {("g", 0): (REMOVED, 1)})


def test_once_no_more_left_out_groups_can_be_distinguished_no_further_group_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_groups, "MOST_REMEMBERED", 2)
    limit = GroupLimit(1)
    log = replay(CommitLog(LOG, "e1", limit), commit(0, 1), commit(1, 1, group="a"), commit(2, 1, group="b"), commit(3, None))
    assert (limit.used, log.omitted) == (0, 2)
    replay(log, commit(4, 1, group="c"))
    assert (limit.used, log.omitted, offsets(log)) == (0, 2, {("g", 0): (REMOVED, 3)})
