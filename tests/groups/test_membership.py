"""Groups and their states, as the records about them say."""

import struct
from typing import Any

import pytest

from streaming.kafka.formats.consumer_groups import (
    AssignedPartitions,
    ConsumerGroup,
    ConsumerGroupKey,
    ConsumerGroupMember,
    ConsumerGroupMemberKey,
    ConsumerGroupRegexKey,
    CurrentMember,
    KeyType,
    RegexTopics,
    TargetAssignment,
    TargetPartitions,
)
from streaming.kafka.formats.consumer_offsets import GroupKey, OffsetsKey, OffsetsValue
from streaming.kafka.formats.group_metadata import GroupMember, GroupMetadata
from streaming.kafka.formats.share_groups import CurrentShareMember, ShareGroup, ShareGroupMember
from streaming.kafka.formats.streams_groups import CurrentStreamsMember, StreamsGroup, StreamsGroupMember, Subtopology, Topology
from streaming.kafka.groups.followed_groups import FollowedGroups, GroupLimit
from streaming.kafka.groups.group_rows import NOT_UNDERSTOOD as NOT_KNOWN
from streaming.kafka.groups.group_rows import REMOVED
from streaming.kafka.groups.membership import Membership
from streaming.kafka.groups.moved_offsets import MovedOffsets
from streaming.kafka.scan.group_records import NOT_UNDERSTOOD, GroupRecord, NotUnderstood

Value = OffsetsValue | NotUnderstood | None
WRITTEN = 1000
"""When the first record of a log was written; the others a millisecond later each."""

SUBSCRIPTION = bytes.fromhex("0001" + "00000002" + "0001" + "62" + "0001" + "61" + "ffffffff")

ASSIGNMENT = bytes.fromhex("0001" + "00000001" + "0001" + "61" + "00000003" + "00000001" + "00000000" + "00000007" + "ffffffff")
"""Partitions 1, 0 and 7 of the topic ``a``."""


class Log:
    """A membership with records one after the other."""

    def __init__(self, most: int = 10) -> None:
        self.limit = GroupLimit(most)
        self.members = Membership(FollowedGroups(self.limit))
        self.offset = -1

    def add(self, key: OffsetsKey, value: Value) -> "Log":
        self.offset += 1
        self.members.replay(GroupRecord(self.offset, key, value, WRITTEN + self.offset), self.offset + 1)
        return self

    def consumer(self, kind: str, value: Value, member: str = "") -> "Log":
        key_type = KeyType[f"CONSUMER_GROUP_{kind}"]
        return self.add(ConsumerGroupMemberKey(key_type, "g", member) if member else ConsumerGroupKey(key_type, "g"), value)

    def rows(self, after: int = 0) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.members.batch(after, 7, MovedOffsets()).to_pylist()
        return found

    def state(self) -> tuple[str, int]:
        (row,) = self.rows()
        return row["state"], row["members"]


def classic(*members: str, protocol_type: str = "consumer") -> GroupMetadata:
    return GroupMetadata(
        protocol_type=protocol_type,
        generation=4,
        protocol="range",
        leader=None,
        current_state_timestamp=99,
        members=tuple(
            GroupMember(
                member_id=name,
                client_id=f"c-{name}",
                client_host="/h",
                session_timeout_ms=1,
                subscription=SUBSCRIPTION,
                assignment=ASSIGNMENT,
            )
            for name in members
        ),
    )


def member(client: str, *topics: str) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        instance_id=None,
        rack_id=None,
        client_id=client,
        client_host="/h",
        topics=topics,
        topic_regex=None,
        rebalance_timeout_ms=1,
        server_assignor=None,
    )


def current(epoch: int, state: int = 0) -> CurrentMember:
    return CurrentMember(epoch, epoch - 1, state, (), ())


def test_a_classic_group_is_reported_by_its_last_generation() -> None:
    log = Log().add(GroupKey("g"), classic("b", "a"))
    assert log.rows() == [
        {
            "group": "g",
            "coordinator": 7,
            "effective_offset": 0,
            "type": "Classic",
            "protocol": "consumer",
            "state": "Stable",
            "members": 2,
            "epoch": 4,
            "state_ms": 99,
            "clients": ["c-b", "c-a"],
            "hosts": ["/h", "/h"],
            "topics": ["a", "b"],
            "interval_ms": -1,
            "assigned": ["0-1,7:a"],
            "moves": [],
            "raised": 4,
            "raised_by_metadata": 0,
            "raised_unfinished": 0,
            "rebalance_ms": 99,
            "rebalance_minutes": [],
            "rebalances": struct.pack("<8q", 4, 99, 0, 1, 0, 2, -1, -1),
            "rebalance_clients": [],
            "rebalance_hosts": [],
        }
    ]
    assert log.add(GroupKey("g"), classic()).state() == ("Empty", 0)
    assert log.add(GroupKey("g"), None).state()[1] == REMOVED
    assert log.limit.used == 0


def test_the_subscriptions_of_other_protocols_are_not_opened() -> None:
    (row,) = Log().add(GroupKey("g"), classic("a", protocol_type="connect")).rows()
    assert (row["protocol"], row["topics"]) == ("connect", [])


def test_a_consumer_group_goes_through_its_states() -> None:
    log = Log().consumer("MEMBER_METADATA", member("c1", "t"), "m1")
    assert log.consumer("METADATA", ConsumerGroup(3)).state() == ("Assigning", 1)
    assert log.consumer("TARGET_ASSIGNMENT_METADATA", TargetAssignment(3, 55)).state() == ("Reconciling", 1)
    assert log.consumer("CURRENT_MEMBER_ASSIGNMENT", current(3, 1), "m1").state() == ("Reconciling", 1)
    assert log.consumer("CURRENT_MEMBER_ASSIGNMENT", current(3), "m1").state() == ("Stable", 1)
    (row,) = log.rows()
    assert (row["type"], row["protocol"], row["epoch"], row["state_ms"], row["topics"]) == ("Consumer", "consumer", 3, -1, ["t"])
    assert log.consumer("CURRENT_MEMBER_ASSIGNMENT", None, "m1").state() == ("Reconciling", 1)  # it has nothing any more
    assert log.consumer("CURRENT_MEMBER_ASSIGNMENT", current(3), "m1").state() == ("Stable", 1)
    assert log.consumer("METADATA", ConsumerGroup(4)).state() == ("Assigning", 1)
    log.consumer("CURRENT_MEMBER_ASSIGNMENT", None, "m1")
    assert log.consumer("MEMBER_METADATA", None, "m1").state() == ("Empty", 0)
    log.consumer("TARGET_ASSIGNMENT_METADATA", None)
    assert log.consumer("METADATA", None).state()[1] == REMOVED
    assert log.limit.used == 0


def state_ms(log: Log) -> int:
    (row,) = log.rows()
    since: int = row["state_ms"]
    return since


def left() -> Log:
    """A group that two members worked in for long; the last one has left with the record of offset 5."""
    log = Log().consumer("MEMBER_METADATA", member("c1", "t"), "m1").consumer("MEMBER_METADATA", member("c2", "t"), "m2")
    log.consumer("METADATA", ConsumerGroup(3)).consumer("TARGET_ASSIGNMENT_METADATA", TargetAssignment(3, 55))
    return log.consumer("MEMBER_METADATA", None, "m1").consumer("MEMBER_METADATA", None, "m2")


def test_a_newer_group_is_empty_since_its_last_member_left() -> None:
    log = left()
    assert (log.state(), state_ms(log)) == (("Empty", 0), WRITTEN + 5)
    log.consumer("METADATA", ConsumerGroup(4)).consumer("METADATA", ConsumerGroup(5))
    assert state_ms(log) == WRITTEN + 5
    log.consumer("MEMBER_METADATA", member("c3", "t"), "m3")
    assert state_ms(log) == -1, "it has a member, and since when it is in this state is not stored"
    assert state_ms(log.consumer("MEMBER_METADATA", None, "m3")) == WRITTEN + 9


def test_what_compaction_has_left_of_a_group_shows_when_its_last_member_left() -> None:
    tombstone = Log().consumer("MEMBER_METADATA", None, "m2").consumer("METADATA", ConsumerGroup(4))
    assert state_ms(tombstone) == WRITTEN + 1, "its epoch was raised with the tombstone"
    alone = Log().consumer("TARGET_ASSIGNMENT_METADATA", TargetAssignment(3, 55)).consumer("METADATA", ConsumerGroup(4))
    assert state_ms(alone) == WRITTEN + 1
    assert state_ms(Log().consumer("TARGET_ASSIGNMENT_METADATA", TargetAssignment(3, 55))) == -1, "nothing shows it"
    unknown = Log().consumer("METADATA", ConsumerGroup(4)).consumer("MEMBER_METADATA", None, "m2")
    assert state_ms(unknown) == WRITTEN + 1, "what has left was there until then"


@pytest.mark.parametrize("kind", ["SHARE", "STREAMS"])
def test_share_and_streams_groups_are_empty_since_then_too(kind: str) -> None:
    log, key_type = Log(), KeyType[f"{kind}_GROUP_MEMBER_METADATA"]
    log.add(ConsumerGroupMemberKey(key_type, "g", "m"), NOT_UNDERSTOOD)
    assert state_ms(log) == -1
    assert state_ms(log.add(ConsumerGroupMemberKey(key_type, "g", "m"), None)) == WRITTEN + 1


def test_what_the_members_of_a_newer_group_are_assigned() -> None:
    log = Log().consumer("METADATA", ConsumerGroup(3))
    for name, partitions in (("m1", (0, 2)), ("m2", (1,))):
        log.consumer("MEMBER_METADATA", member(name, "t"), name)
        log.consumer("CURRENT_MEMBER_ASSIGNMENT", CurrentMember(3, 2, 0, (AssignedPartitions("id", partitions),), ()), name)
    assert log.rows()[0]["assigned"] == ["0-2#id"]
    assert log.consumer("CURRENT_MEMBER_ASSIGNMENT", None, "m1").rows()[0]["assigned"] == ["1#id"]
    assert log.consumer("MEMBER_METADATA", None, "m2").rows()[0]["assigned"] == []
    share = Log().add(
        ConsumerGroupMemberKey(KeyType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT, "g", "m"),
        CurrentShareMember(1, 0, 0, (TargetPartitions("id", (4, 5)),)),
    )
    assert share.rows()[0]["assigned"] == ["4-5#id"]


def test_compaction_may_leave_a_description_for_later() -> None:
    log = Log().consumer("CURRENT_MEMBER_ASSIGNMENT", current(3), "m1").consumer("TARGET_ASSIGNMENT_METADATA", TargetAssignment(3))
    assert log.consumer("METADATA", ConsumerGroup(3)).consumer("MEMBER_METADATA", member("c1"), "m1").state() == ("Stable", 1)


def test_topics_that_a_regular_expression_has_found() -> None:
    key = ConsumerGroupRegexKey(KeyType.CONSUMER_GROUP_REGULAR_EXPRESSION, "g", "a.*")
    log = Log().consumer("METADATA", ConsumerGroup(3)).add(key, RegexTopics(("ab", "aa"), 1, 1))
    assert log.rows()[0]["topics"] == ["aa", "ab"]
    assert log.add(key, NOT_UNDERSTOOD).rows()[0]["topics"] == []
    assert log.add(key, RegexTopics(("ac",), 2, 2)).rows()[0]["topics"] == ["ac"]
    assert log.add(key, None).rows()[0]["topics"] == []


def test_a_classic_group_that_goes_over_to_the_newer_protocol_and_back() -> None:
    log = Log().add(GroupKey("g"), classic("a")).add(GroupKey("g"), None).consumer("METADATA", ConsumerGroup(5))
    assert log.rows()[0]["type"] == "Consumer"
    log.add(GroupKey("g"), None)  # it may be read after what is left of the newer one
    assert log.rows()[0]["type"] == "Consumer"
    assert log.add(GroupKey("g"), classic("a")).rows()[0]["type"] == "Classic"
    assert log.limit.used == 1


def test_share_groups_are_empty_or_stable() -> None:
    log = Log().add(ConsumerGroupKey(KeyType.SHARE_GROUP_METADATA, "g"), ShareGroup(2, 9))
    assert log.state() == ("Empty", 0)
    log.add(ConsumerGroupMemberKey(KeyType.SHARE_GROUP_MEMBER_METADATA, "g", "m"), ShareGroupMember(None, "c", "/h", ("t",)))
    assert log.state() == ("Stable", 1)
    (row,) = log.rows()
    assert (row["type"], row["protocol"], row["clients"], row["topics"]) == ("Share", "share", ["c"], ["t"])


def test_a_streams_group_is_not_ready_until_its_topology_is_valid() -> None:
    described = StreamsGroupMember(
        instance_id=None,
        rack_id=None,
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=1,
        topology_epoch=1,
        process_id="p",
        user_endpoint=None,
        client_tags=(),
    )
    log = Log().add(ConsumerGroupMemberKey(KeyType.STREAMS_GROUP_MEMBER_METADATA, "g", "m"), described)
    assert log.add(ConsumerGroupKey(KeyType.STREAMS_GROUP_METADATA, "g"), StreamsGroup(1, 0)).state() == ("NotReady", 1)
    topology = Topology(1, (Subtopology("0", ("in",), (), (), (), (), ()),))
    assert log.add(ConsumerGroupKey(KeyType.STREAMS_GROUP_TOPOLOGY, "g"), topology).state() == ("NotReady", 1)
    assert log.add(ConsumerGroupKey(KeyType.STREAMS_GROUP_METADATA, "g"), StreamsGroup(1, 0, 1)).state() == ("Assigning", 1)
    log.add(ConsumerGroupKey(KeyType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, "g"), TargetAssignment(1))
    for state, expected in ((2, "Reconciling"), (1, "Stable")):
        one = CurrentStreamsMember(1, 0, state, (), (), (), (), (), ())
        log.add(ConsumerGroupMemberKey(KeyType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, "g", "m"), one)
        assert log.state() == (expected, 1)
    (row,) = log.rows()
    assert (row["type"], row["protocol"], row["topics"]) == ("Streams", "streams", ["in"])


@pytest.mark.parametrize("kind", ["METADATA", "CURRENT_MEMBER_ASSIGNMENT"])
def test_of_a_group_with_a_record_that_is_not_understood_the_state_is_not_known(kind: str) -> None:
    log = Log().consumer("METADATA", ConsumerGroup(3)).consumer("MEMBER_METADATA", member("c1"), "m1")
    log.consumer(kind, NOT_UNDERSTOOD, "m1" if kind != "METADATA" else "")
    assert log.state() == ("Unknown", 1)
    log.consumer(kind, ConsumerGroup(4) if kind == "METADATA" else current(3), "m1" if kind != "METADATA" else "")
    assert log.state() == ("Assigning", 1)
    assert Log().add(GroupKey("g"), NOT_UNDERSTOOD).state() == ("Unknown", NOT_KNOWN)


def test_a_group_that_commits_without_members_is_a_classic_one_until_it_is_deleted() -> None:
    log = Log()
    log.members.committed("g", 0, 1)
    (row,) = log.rows()
    assert (row["type"], row["protocol"], row["state"], row["members"]) == ("Classic", "", "Empty", 0)
    assert log.add(GroupKey("g"), None).state()[1] == REMOVED
    assert log.rows(log.offset + 1) == []


def test_tombstones_of_what_is_not_known_and_other_records_make_no_group() -> None:
    log = Log().consumer("METADATA", None).consumer("MEMBER_METADATA", None, "m").add(GroupKey("g"), None)
    log.add(ConsumerGroupMemberKey(KeyType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, "g", "m"), NOT_UNDERSTOOD)
    assert log.rows() == []


def test_no_more_groups_than_the_limit() -> None:
    log = Log(most=1).add(GroupKey("g"), classic("a")).add(GroupKey("h"), classic("a"))
    assert [row["group"] for row in log.rows()] == ["g"]
    assert log.limit.used == 1


def test_changes_are_those_since_a_version() -> None:
    log = Log().add(GroupKey("g"), classic("a")).add(GroupKey("h"), classic("a"))
    assert [row["group"] for row in log.rows(1)] == ["h"]


def test_a_group_counts_from_the_last_record_about_it_on() -> None:
    log = Log().consumer("METADATA", ConsumerGroup(3))
    assert log.rows()[0]["effective_offset"] == 0
    log.consumer("MEMBER_METADATA", member("c1", "t"), "m1").consumer("TARGET_ASSIGNMENT_METADATA", TargetAssignment(3, 55))
    assert log.rows()[0]["effective_offset"] == 2
