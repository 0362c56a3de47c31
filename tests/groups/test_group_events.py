"""The history of one group, record by record, from its coordinator's log."""

import pytest

from streaming.common.log_key import LogKey
from streaming.kafka.formats.consumer_groups import ConsumerGroup, ConsumerGroupKey, ConsumerGroupMemberKey, KeyType
from streaming.kafka.formats.consumer_offsets import GroupKey, OffsetCommit
from streaming.kafka.groups import group_events
from streaming.kafka.groups.group_events import GroupEvents
from streaming.kafka.groups.offset_moves import MoveKind
from streaming.kafka.scan.group_records import Commit, GroupRecord
from tests.groups.test_membership import member
from tests.groups.test_offset_moves import Log

LOG = LogKey(1, "__consumer_offsets", 3, "id")


class Watched(Log):
    """A log whose records a history takes, too."""

    def __init__(self) -> None:
        super().__init__()
        self.history = GroupEvents("g", LOG)
        self.replay.replay = lambda records, _: [self.history.take(each) for each in records.records]  # type: ignore[assignment,method-assign]

    @property
    def lines(self) -> list[tuple[str, int, int]]:
        return [(each.event, each.before, each.committed) for each in self.history.events]

    @property
    def moved(self) -> list[MoveKind | None]:
        return [each.moved for each in self.history.events if each.event == "commit"]


def log() -> Watched:
    return Watched()


def test_commits_and_generations_come_in_their_order_with_what_counted_before() -> None:
    found = log().generation(1, members=2).commit(60).commit(60).commit(100).generation(2, members=0).commit(700).commit(3)
    assert found.lines == [
        ("generation", -1, -1),
        ("commit", -1, 60),
        ("commit", 60, 60),
        ("commit", 60, 100),
        ("generation", -1, -1),
        ("commit", 100, 700),
        ("commit", 700, 3),
    ]
    assert found.moved == [None, None, None, MoveKind.ADMIN, MoveKind.ADMIN]
    first, empty = (each for each in found.history.events if each.event == "generation")
    assert (first.epoch, first.member_count, first.members, first.at_ms) == (1, 2, (("c", "/h"), ("c", "/h")), 0)
    assert (empty.epoch, empty.member_count, empty.members) == (2, 0, ())


def test_what_goes_on_is_no_hand() -> None:
    found = log().generation(1, members=1).commit(0).generation(2, members=0).commit(1).commit(2).commit(3).commit(4).commit(2)
    assert found.moved == [None, None, None, None, None, MoveKind.EXTERNAL]


def test_a_transaction_counts_at_its_marker_or_never() -> None:
    found = log().commit(50, producer=7).marker(producer=7, committed=True).commit(40, producer=7).marker(producer=7, committed=False)
    assert found.lines == [("pending", -1, 50), ("commit", -1, 50), ("pending", 50, 40)]
    assert [each.record_offset for each in found.history.events] == [0, 1, 2]


def test_what_is_deleted_ends_a_history() -> None:
    found = log().commit(50).commit(None).commit(None).commit(3).add(lambda at: GroupRecord(at, GroupKey("g"), None))
    assert found.lines == [("commit", -1, 50), ("deleted", 50, -1), ("commit", -1, 3), ("gone", -1, -1)]
    assert found.moved == [None, None]


def test_groups_of_the_newer_protocols_have_their_epochs_and_members() -> None:
    epoch = ConsumerGroupKey(KeyType.CONSUMER_GROUP_METADATA, "g")
    joined = ConsumerGroupMemberKey(KeyType.CONSUMER_GROUP_MEMBER_METADATA, "g", "m1")
    found = (
        log().add(lambda at: GroupRecord(at, joined, member("reader", "t"), 5)).add(lambda at: GroupRecord(at, epoch, ConsumerGroup(1), 6))
    )
    found.commit(9).add(lambda at: GroupRecord(at, joined, None, 7)).add(lambda at: GroupRecord(at, epoch, ConsumerGroup(2), 8)).commit(2)
    generations = [each for each in found.history.events if each.event == "generation"]
    assert [(each.epoch, each.member_count, each.members, each.at_ms) for each in generations] == [
        (1, 1, (("reader", "/h"),), 6),
        (2, 0, (), 8),
    ]
    assert found.moved == [None, MoveKind.ADMIN]


def test_the_newest_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_events, "MOST_EVENTS", 3)
    found = log()
    for offset in range(5):
        found.commit(offset)
    assert [line[2] for line in found.lines] == [2, 3, 4]
    assert found.history.omitted == 2


def test_others_are_left_out() -> None:
    other = GroupEvents("other", LOG)
    for record_offset, name in enumerate(("g", "other")):
        other.take(Commit(record_offset, -1, name, "t", 0, OffsetCommit(offset=record_offset, metadata="", commit_timestamp=1)))
    assert [(each.record_offset, each.committed) for each in other.events] == [(1, 1)]
