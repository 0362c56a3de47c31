"""Which rebalances of a group its records show, and who joined and left."""

import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.formats.consumer_groups import (
    ConsumerGroup,
    ConsumerGroupKey,
    ConsumerGroupMember,
    ConsumerGroupMemberKey,
    ConsumerGroupRegexKey,
    KeyType,
    RegexTopics,
)
from streaming.kafka.formats.consumer_offsets import GroupKey
from streaming.kafka.formats.group_metadata import GroupMember, GroupMetadata
from streaming.kafka.formats.share_groups import ShareGroup, ShareGroupMember
from streaming.kafka.formats.streams_groups import StreamsGroup, Topology
from streaming.kafka.groups.group_rows import GROUPS, group_facts
from streaming.kafka.groups.moved_offsets import MovedOffsets
from streaming.kafka.groups.rebalance_log import MOST_COMPARED
from streaming.kafka.groups.rebalances import MOST_CHANGED, MOST_RECENT, Rebalance, packed_rebalances, unpacked_rebalances
from streaming.kafka.scan.group_records import NOT_UNDERSTOOD
from tests.groups.test_membership import Log

MINUTE = 60_000


def generation(number: int, *members: str, at_ms: int = -1, static: bool = False) -> GroupMetadata:
    """A classic group; a static member's name is its instance id and, after a slash, its member id."""
    return GroupMetadata(
        protocol_type="consumer",
        generation=number,
        protocol="range",
        leader=None,
        current_state_timestamp=at_ms,
        members=tuple(
            GroupMember(
                member_id=name,
                group_instance_id=name.partition("/")[0] if static else None,
                client_id=f"c-{name.partition('/')[0]}",
                client_host="/h",
                session_timeout_ms=1,
                subscription=b"",
                assignment=b"",
            )
            for name in members
        ),
    )


def member(name: str, *topics: str, instance: str | None = None, regex: str | None = None) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        instance_id=instance,
        rack_id=None,
        client_id=f"c-{name}",
        client_host="/h",
        topics=topics,
        topic_regex=regex,
        rebalance_timeout_ms=1,
        server_assignor=None,
    )


def classic(*generations: GroupMetadata | None) -> Log:
    log = Log()
    for each in generations:
        log.add(GroupKey("g"), each)
    return log


class Newer(Log):
    """A consumer group of the newer protocol."""

    def joins(self, name: str, *, instance: str | None = None, topics: tuple[str, ...] = ("t",)) -> "Newer":
        self.consumer("MEMBER_METADATA", member(name, *topics, instance=instance), name)
        return self

    def leaves(self, name: str) -> "Newer":
        self.consumer("CURRENT_MEMBER_ASSIGNMENT", None, name)
        self.consumer("MEMBER_METADATA", None, name)
        return self

    def epoch(self, epoch: int, metadata_hash: int = 0) -> "Newer":
        self.consumer("METADATA", ConsumerGroup(epoch, metadata_hash))
        return self


def counts(log: Log) -> tuple[int, int, int]:
    """How often the group has rebalanced, how often by metadata alone, and how often without an assignment."""
    (row,) = log.rows()
    return row["raised"], row["raised_by_metadata"], row["raised_unfinished"]


def recent(log: Log) -> tuple[Rebalance, ...]:
    (facts,) = group_facts(log.members.batch(0, 7, MovedOffsets()))
    return unpacked_rebalances(facts.rebalances, facts.rebalance_clients, facts.rebalance_hosts)


def changes(log: Log) -> list[tuple[str, int, list[str], list[str]]]:
    """Kind, to which generation, and who joined and left."""
    return [
        (each.kind, each.raised, [name.client for name in each.joined_names], [name.client for name in each.left_names])
        for each in recent(log)
    ]


def test_each_generation_says_who_joined_and_left() -> None:
    log = classic(generation(0), generation(1, "a"), generation(2, "a", "b"), generation(3, "b"), generation(4, "b"), generation(5))
    assert counts(log) == (5, 0, 0)
    assert changes(log) == [
        ("members", 1, ["c-a"], []),
        ("members", 2, ["c-b"], []),
        ("members", 3, [], ["c-a"]),
        ("members", 4, [], []),
        ("members", 5, [], ["c-b"]),
    ]
    assert [each.members for each in recent(log)] == [1, 2, 1, 1, 0]


def test_a_generation_is_as_old_as_its_state_and_else_as_its_record() -> None:
    assert classic(generation(1, "a", at_ms=77)).rows()[0]["rebalance_ms"] == 77
    assert classic(generation(1, "a")).rows()[0]["rebalance_ms"] == 1000
    assert classic(generation(0)).rows()[0]["rebalance_ms"] == -1, "it has not rebalanced"


def test_generations_that_were_never_assigned_are_unfinished() -> None:
    log = classic(generation(1, "a"), generation(4, "a", "b"))
    assert counts(log) == (4, 0, 2)
    assert recent(log)[-1].generations == 3


def test_what_was_before_the_first_record_that_is_left_is_of_no_other_kind() -> None:
    log = classic(generation(41, "a", "b"))
    assert counts(log) == (41, 0, 0)
    (only,) = recent(log)
    assert (only.joined, only.left, only.generations) == (-1, -1, 1)
    assert counts(classic(generation(5, "a"), NOT_UNDERSTOOD, generation(8, "a"))) == (8, 0, 0), "a record that says nothing was between"


def test_a_static_member_that_comes_back_makes_no_generation() -> None:
    log = classic(generation(1, "a/1", "b/1", static=True), generation(1, "a/1", "b/2", static=True), generation(2, "b/2", static=True))
    assert counts(log) == (2, 0, 0)
    assert changes(log)[1:] == [("rejoined", 1, ["c-b"], []), ("members", 2, [], ["c-a"])]
    (row,) = log.rows()
    assert row["rebalance_minutes"] == [0, 1, 2]


def test_a_group_that_was_made_anew_counts_anew() -> None:
    log = classic(generation(1, "a"), generation(3, "a"), None, generation(0), generation(1, "b"))
    assert counts(log) == (1, 0, 0)
    assert changes(log) == [("members", 1, ["c-b"], [])]
    assert counts(classic(generation(1, "a"), generation(3, "a"), generation(1, "b"))) == (1, 0, 0), "its tombstone was compacted"


def test_a_generation_that_wraps_goes_on() -> None:
    log = classic(generation(2**31 - 1, "a"), generation(-(2**31), "a"), generation(-(2**31) + 1, "a"))
    assert counts(log) == (2**31 + 1, 0, 0)
    assert [each.generations for each in recent(log)] == [1, 1, 1]
    assert counts(classic(generation(-1, "a"), generation(0, "a"), generation(1, "a"))) == (1, 0, 0)


def test_epochs_of_a_newer_group_that_only_metadata_raised_are_apart() -> None:
    log = Newer().joins("a").epoch(2, 7).joins("b").epoch(3, 7).epoch(4, 8).leaves("a").epoch(5, 9)
    assert counts(log) == (5, 1, 0)
    assert changes(log) == [
        ("members", 2, ["c-a"], []),
        ("members", 3, ["c-b"], []),
        ("metadata", 4, [], []),
        ("members", 5, [], ["c-a"]),
    ]
    assert log.rows()[0]["rebalance_minutes"] == [0, 2, 2], "metadata is no restlessness"


def test_before_kafka_4_1_no_hash_shows_that_metadata_has_changed() -> None:
    assert counts(Newer().joins("a").epoch(1).epoch(2)) == (2, 1, 0)


def test_a_member_that_subscribes_to_other_topics_raises_the_epoch_itself() -> None:
    log = Newer().joins("a").epoch(1, 7).joins("a", topics=("t", "u")).epoch(2, 8).epoch(3, 9)
    assert counts(log) == (3, 1, 0)


def test_an_epoch_without_a_reason_on_disk_is_none_of_metadata() -> None:
    assert counts(Newer().joins("a").epoch(1, 7).epoch(2, 7)) == (2, 0, 0)


def test_a_static_member_of_a_newer_group_that_comes_back_raises_no_epoch() -> None:
    log = Newer().joins("a", instance="i").epoch(1, 7).leaves("a").joins("a2", instance="i")
    assert counts(log) == (1, 0, 0)
    assert changes(log)[1:] == [("rejoined", 1, ["c-a2"], [])]
    assert counts(log.epoch(2, 8)) == (2, 1, 0), "the next epoch has a reason of its own"  # type: ignore[attr-defined]


def test_topics_that_a_new_expression_finds_are_its_members_doing_and_later_ones_are_not() -> None:
    key = ConsumerGroupRegexKey(KeyType.CONSUMER_GROUP_REGULAR_EXPRESSION, "g", "a.*")
    log = Newer().joins("a").epoch(1, 7)
    log.add(key, RegexTopics(("aa",), 1, 1))
    log.epoch(2, 8)
    log.add(key, RegexTopics(("aa", "ab"), 2, 2))
    assert counts(log.epoch(3, 9)) == (3, 1, 0)


def test_what_compaction_has_left_of_a_newer_group_does_not_say_who_joined() -> None:
    log = Newer().joins("a").joins("b").epoch(40, 7)
    assert counts(log) == (40, 0, 0)
    assert recent(log)[0].joined == -1
    assert counts(log.leaves("c").epoch(41, 8)) == (41, 0, 0), "one left whose description is gone"


def test_partitions_that_are_ready_for_a_share_group_are_metadata_whose_hash_stays() -> None:
    log = Log().add(ConsumerGroupMemberKey(KeyType.SHARE_GROUP_MEMBER_METADATA, "g", "m"), ShareGroupMember(None, "c", "/h", ("t",)))
    for epoch in (2, 3):
        log.add(ConsumerGroupKey(KeyType.SHARE_GROUP_METADATA, "g"), ShareGroup(epoch, 7))
    assert counts(log) == (3, 1, 0)


def test_a_topology_is_no_metadata() -> None:
    log = Log()
    for epoch, topology, hash_ in ((1, -1, 7), (2, 1, 8), (3, 1, 9)):
        if epoch == 2:
            log.add(ConsumerGroupKey(KeyType.STREAMS_GROUP_TOPOLOGY, "g"), Topology(1, ()))
        log.add(ConsumerGroupKey(KeyType.STREAMS_GROUP_METADATA, "g"), StreamsGroup(epoch, hash_, topology))
    assert counts(log) == (3, 1, 0)


def test_a_group_without_records_of_its_own_has_no_rebalances() -> None:
    log = Log()
    log.members.committed("g", 0, 1)
    (row,) = log.rows()
    assert (row["raised"], row["raised_by_metadata"], row["rebalance_ms"], row["rebalances"]) == (-1, -1, -1, b"")


def test_half_an_hour_is_kept_by_the_minute() -> None:
    log = Log()
    for number in range(1, 100):
        log.add(GroupKey("g"), generation(number, *(["a", "b"] if number % 2 else ["a"]), at_ms=number * MINUTE // 2))
    (row,) = log.rows()
    minutes = list(zip(row["rebalance_minutes"][0::3], row["rebalance_minutes"][1::3], row["rebalance_minutes"][2::3], strict=True))
    assert minutes == [(minute, 2, 2) for minute in range(20, 50)]
    assert len(recent(log)) == MOST_RECENT


def test_a_group_had_as_many_members_as_there_were_before_one_left() -> None:
    log = classic(generation(1, "a", "b", at_ms=0), generation(2, "a", at_ms=5 * MINUTE), generation(3, at_ms=6 * MINUTE))
    assert log.rows()[0]["rebalance_minutes"] == [5, 1, 2], "nobody was interrupted by the first and the last one"


def test_a_group_that_is_started_after_a_pause_interrupts_nobody() -> None:
    runs = [
        (number, *there, at) for number, there, at in zip(range(1, 7), (["a"], [], ["a"], [], ["a"], []), range(0, 60, 10), strict=True)
    ]
    log = classic(*(generation(number, *there, at_ms=at * MINUTE) for number, *there, at in runs))
    assert log.rows()[0]["rebalance_minutes"] == [], "a job that runs every twenty minutes"
    crashes = [(number, *(["a"] if number % 2 else []), number * MINUTE // 2) for number in range(1, 7)]
    log = classic(*(generation(number, *there, at_ms=at) for number, *there, at in crashes))
    assert log.rows()[0]["rebalance_minutes"] == [1, 2, 1, 2, 2, 1], "one that is back within a minute has crashed; it may stay away now"


def test_what_was_a_day_before_the_last_one_is_forgotten() -> None:
    day = 24 * 60 * MINUTE
    log = classic(*(generation(number, "a", at_ms=at) for number, at in ((1, 0), (2, MINUTE), (3, day + MINUTE))))
    assert [each.raised for each in recent(log)] == [2, 3]


def test_a_clock_that_was_set_back_loses_nothing() -> None:
    log = classic(*(generation(number, "a", at_ms=at) for number, at in ((1, 0), (2, 9 * MINUTE), (3, 2 * MINUTE), (4, 9 * MINUTE + 1))))
    assert log.rows()[0]["rebalance_minutes"] == [9, 3, 1]


def test_a_clock_that_was_far_ahead_hides_nothing_that_follows() -> None:
    log = classic(*(generation(number, "a", at_ms=at) for number, at in ((1, 5 * MINUTE), (2, 2**60), (3, 6 * MINUTE), (4, 6 * MINUTE))))
    assert log.rows()[0]["rebalance_minutes"] == [6, 2, 1]


def test_names_and_members_are_bounded() -> None:
    many = [f"{number:05}" for number in range(MOST_COMPARED)]
    log = classic(generation(1, *many), generation(2, *many, "one more"), generation(3), generation(4, "x" * 5000))
    first, more, gone, last = recent(log)
    assert (first.joined, len(first.joined_names), more.joined, gone.left) == (MOST_COMPARED, MOST_CHANGED, -1, -1)
    assert (len(last.joined_names[0].client), len(last.joined_names[0].host)) == (100, 2)


def test_redacted_names_come_back_in_their_places() -> None:
    log = classic(generation(1, "a", "b"), generation(2, "c"))
    packed = packed_rebalances(recent(log))
    assert unpacked_rebalances(*packed) == recent(log)
    assert packed[1] == ["c-a", "c-b", "c-c", "c-a", "c-b"]
    assert unpacked_rebalances(packed[0] + b"more", packed[1], packed[2]) == recent(log), "what is cut off is left out"
    assert unpacked_rebalances(struct.pack("<8q", 1, 2, 99, *[0] * 5), [], []) == (), "nor is a kind of a later version one of these"


def test_an_agent_of_an_earlier_version_says_nothing() -> None:
    assert all(column.metadata for column in GROUPS if column.name.startswith(("raised", "rebalance")))


RECORDS = st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 3), st.sets(st.sampled_from("abcd"), max_size=4))), max_size=20)


@given(RECORDS)
def test_all_kinds_together_are_the_generation(records: list[tuple[int, set[str]] | None]) -> None:
    log, number, exists = Log(), 0, False
    for each in records:
        if each is None:
            log.add(GroupKey("g"), None)
            number, exists = 0, False
            continue
        number, exists = number + each[0], True
        log.add(GroupKey("g"), generation(number, *sorted(each[1])))
    rows: list[Any] = [row for row in log.rows() if row["members"] >= 0]
    assert [row["raised"] for row in rows] == ([number] if exists else [])
    for row in rows:
        assert 0 <= row["raised_unfinished"] <= row["raised"]
