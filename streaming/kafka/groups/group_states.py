"""The state of one group, by the rules of its kind (`ClassicGroup`, `ConsumerGroup`, `ShareGroup`, `StreamsGroup`).

The words are those of `kafka-groups.sh`. Of a classic group only whole generations are stored: that it is in a rebalance is not seen before
that has finished. Which ones have is in `rebalance_log`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from streaming.common.short_names import short_name
from streaming.errors import FormatError
from streaming.kafka.formats.consumer_offsets import OffsetsKey
from streaming.kafka.formats.stored_groups import ConsumerGroupMemberKey, ConsumerGroupRegexKey, GroupMetadata, KeyType
from streaming.kafka.formats.wire import PlainReader
from streaming.kafka.groups.group_rows import NOT_UNDERSTOOD, GroupColumns
from streaming.kafka.groups.number_ranges import Assigned, of_record, packed
from streaming.kafka.groups.rebalance_log import MemberChanges, MemberName
from streaming.kafka.scan.group_records import NotUnderstood

MOST_NAMED = 10
"""So many of a group's members are named."""

_SUBSCRIBES = ("topics", "topic_regex", "topology_epoch", "process_id", "client_tags", "user_endpoint")
"""What a member describes of itself, besides who it is."""

DELETING = {KeyType.CONSUMER_GROUP_METADATA, KeyType.SHARE_GROUP_METADATA, KeyType.STREAMS_GROUP_METADATA}
"""A tombstone with one of these keys deletes the group."""


class GroupState(StrEnum):
    """The states that can be seen in a coordinator's log; a group of which a record was not understood is `UNKNOWN`.

    A streaming query has planned its next micro-batch, or has committed the last one that it has planned.
    """

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    UNKNOWN = "Unknown"
    PLANNED = "Planned"
    COMMITTED = "Committed"


class GroupType(StrEnum):
    """The kind of a group."""

    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    SHARE = "Share"
    STREAMS = "Streams"
    SPARK = "Spark"
    """A streaming query, by its checkpoint: no coordinator knows it."""


SIMPLE = GroupColumns(type=GroupType.CLASSIC, protocol="", state=GroupState.EMPTY, members=0, epoch=0)
"""A group that commits offsets and has no members: its consumers assign partitions to themselves."""


UNREADABLE = GroupColumns(type=GroupType.CLASSIC, protocol="", state=GroupState.UNKNOWN, members=NOT_UNDERSTOOD, epoch=-1)
"""A classic group whose record was not understood."""


def classic_summary(group: GroupMetadata) -> GroupColumns:
    """A classic group by its last generation."""
    consumer = group.protocol_type == PROTOCOLS[GroupType.CONSUMER]
    return GroupColumns(
        type=GroupType.CLASSIC,
        protocol=short_name(group.protocol_type),
        state=GroupState.STABLE if group.members else GroupState.EMPTY,
        members=len(group.members),
        epoch=group.generation,
        state_ms=group.current_state_timestamp,
        clients=tuple(short_name(member.client_id) for member in group.members[:MOST_NAMED]),
        hosts=tuple(short_name(member.client_host) for member in group.members[:MOST_NAMED]),
        topics=_sorted(topic for member in group.members for topic in subscribed_topics(member.subscription)) if consumer else (),
        assigned=packed(of_record(group)),
    )


PROTOCOLS = {GroupType.CONSUMER: "consumer", GroupType.SHARE: "share", GroupType.STREAMS: "streams"}


def _sorted(topics: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(topics)))


def subscribed_topics(subscription: bytes) -> tuple[str, ...]:
    """The topics of a classic consumer's subscription (`ConsumerProtocolSubscription`, any version); none if it is something else."""
    reader = PlainReader(subscription)
    try:
        reader.int16()
        return tuple([short_name(reader.string()) for _ in range(max(reader.count(), 0))])
    except FormatError:
        return ()


_STABLE_MEMBER = {GroupType.CONSUMER: 0, GroupType.SHARE: 0, GroupType.STREAMS: 1}


@dataclass(slots=True)
class Member:
    """A member of a newer group; its ``state`` is None where it was not understood. A streams group has tasks, and nothing ``assigned``.

    ``described``: its own record was there. ``subscribed``: what of that raises an epoch of its group when it changes.
    """

    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    epoch: int = 0
    state: int | None = 0
    instance_id: str = ""
    described: bool = False
    subscribed: Hashable = None
    assigned: tuple[Assigned, ...] = ()

    @property
    def name(self) -> MemberName:
        """Who it is."""
        return MemberName(self.client_id, self.client_host)


@dataclass(slots=True)
class NewerGroup:
    """A group of one of the newer protocols, as its records have made it; ``understood``: its own last record was.

    ``empty_ms``: since when it has no members, Unix milliseconds, -1 if it has some or that is not on disk any more.
    """

    type: GroupType
    epoch: int = 0
    understood: bool = True
    target_epoch: int = 0
    empty_ms: int = -1
    members: dict[str, Member] = field(default_factory=dict)
    found_topics: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by regular expression, or "" for those of a topology
    topology_epoch: int = -1
    validated_epoch: int = -1
    metadata_hash: int = 0
    changes: MemberChanges = field(default_factory=MemberChanges)
    left_topics: set[str] | None = None  # those of members that have left since the last one joined; None if that is not known

    def joined(self, member_id: str) -> Member:
        """A member, which is there from now on if it was not before."""
        self.empty_ms = -1
        if member_id not in self.members:
            self.left_topics = set()
        return self.members.setdefault(member_id, Member())

    @property
    def last_topics(self) -> tuple[str, ...]:
        """What its last members subscribed to, where that is known of an empty one."""
        return () if self.members or self.left_topics is None else _sorted(self.left_topics)

    def summary(self) -> GroupColumns:
        """The group as its coordinator sees it. Since when is known of an empty one alone: what stable members had before is not stored."""
        first = [self.members[name] for name in sorted(self.members)[:MOST_NAMED]]
        topics = [topic for member in self.members.values() for topic in member.topics]
        return GroupColumns(
            type=self.type,
            protocol=PROTOCOLS[self.type],
            state=self._state(),
            members=len(self.members),
            epoch=self.epoch,
            state_ms=self.empty_ms,
            clients=tuple(member.client_id for member in first),
            hosts=tuple(member.client_host for member in first),
            assigned=packed(part for member in self.members.values() for part in member.assigned),
            topics=_sorted([*topics, *(topic for found in self.found_topics.values() for topic in found)]),
        )

    def _state(self) -> GroupState:
        if not self.understood or any(member.state is None for member in self.members.values()):
            return GroupState.UNKNOWN
        if not self.members:
            return GroupState.EMPTY
        if self.type is GroupType.SHARE:
            return GroupState.STABLE
        if self.type is GroupType.STREAMS and (self.topology_epoch < 0 or self.topology_epoch != self.validated_epoch):
            return GroupState.NOT_READY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        stable = _STABLE_MEMBER[self.type]
        reconciled = all(member.state == stable and member.epoch == self.target_epoch for member in self.members.values())
        return GroupState.STABLE if reconciled else GroupState.RECONCILING


_Apply = Callable[[NewerGroup, Any, Any, int], None]
"""Applies a value by its key to a group; the last argument is when it was written, Unix milliseconds."""


def _group(group: NewerGroup, _key: OffsetsKey, value: Any, at_ms: int) -> None:
    if not group.members and group.empty_ms < 0:  # its epoch is raised with the last member's leaving, whose tombstone may be gone
        group.empty_ms = at_ms
    group.understood = not isinstance(value, NotUnderstood)
    if group.understood:
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        group.validated_epoch = getattr(value, "validated_topology_epoch", -1)


def _member(group: NewerGroup, key: ConsumerGroupMemberKey, value: Any, at_ms: int) -> None:
    """Applies the records of the newer protocols to a group: consumer (KIP-848), share and streams groups have the same kinds of
    records.
    """
    if value is None:
        _left(group, key.member_id, group.members.pop(key.member_id, None))
        group.empty_ms = -1 if group.members else at_ms
        return
    member = group.joined(key.member_id)
    if isinstance(value, NotUnderstood):
        group.changes.subscribed = True
        return
    subscribed, joins = tuple(getattr(value, name, None) for name in _SUBSCRIBES), not member.described
    group.changes.subscribed |= not joins and member.subscribed != subscribed
    member.client_id, member.client_host = short_name(value.client_id), short_name(value.client_host)
    member.topics, member.subscribed, member.described = _short(getattr(value, "topics", ())), subscribed, True
    if joins:
        member.instance_id = short_name(getattr(value, "instance_id", None) or "")
        group.changes.join(member.instance_id or key.member_id, member.name)


def _left(group: NewerGroup, member_id: str, member: Member | None) -> None:
    if member is None or not member.described:
        group.changes.subscribed, group.left_topics = True, None  # nothing shows who it was
        return
    group.changes.leave(member.instance_id or member_id, member.name)
    if group.left_topics is not None:
        group.left_topics.update(member.topics, *group.found_topics.values())


def _current(group: NewerGroup, key: ConsumerGroupMemberKey, value: Any, _at_ms: int) -> None:
    if value is None:  # it leaves, or it has nothing any more
        if key.member_id in group.members:
            group.members[key.member_id].epoch, group.members[key.member_id].assigned = -1, ()
        return
    member = group.joined(key.member_id)  # compaction may leave its description for later
    if isinstance(value, NotUnderstood):
        member.state, member.assigned = None, ()
    else:
        member.epoch, member.state = value.epoch, value.state
        member.assigned = of_record(value)


def _target(group: NewerGroup, _key: OffsetsKey, value: Any, _at_ms: int) -> None:
    if value is None:
        group.target_epoch = -1
    elif not isinstance(value, NotUnderstood):
        group.target_epoch = value.epoch


def _regex(group: NewerGroup, key: ConsumerGroupRegexKey, value: Any, _at_ms: int) -> None:
    before = group.found_topics.pop(key.regular_expression, None)
    if value is None and before is not None and group.left_topics is not None:
        group.left_topics.update(before)  # it goes with the last member that has it, before or after that
    group.changes.subscribed |= value is None or before is None  # else it is resolved again, by newer metadata
    if value is not None and not isinstance(value, NotUnderstood):
        group.found_topics[key.regular_expression] = _short(value.topics)


def _topology(group: NewerGroup, _key: OffsetsKey, value: Any, _at_ms: int) -> None:
    group.found_topics.pop("", None)
    group.topology_epoch, group.changes.subscribed = -1, True
    if value is not None and not isinstance(value, NotUnderstood):
        group.topology_epoch = value.epoch
        group.found_topics[""] = _short(topic for part in value.subtopologies for topic in part.source_topics)


def _short(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(short_name, names))


APPLIED: Mapping[KeyType, tuple[GroupType, _Apply]] = {
    KeyType.CONSUMER_GROUP_METADATA: (GroupType.CONSUMER, _group),
    KeyType.CONSUMER_GROUP_MEMBER_METADATA: (GroupType.CONSUMER, _member),
    KeyType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: (GroupType.CONSUMER, _target),
    KeyType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: (GroupType.CONSUMER, _current),
    KeyType.CONSUMER_GROUP_REGULAR_EXPRESSION: (GroupType.CONSUMER, _regex),
    KeyType.SHARE_GROUP_METADATA: (GroupType.SHARE, _group),
    KeyType.SHARE_GROUP_MEMBER_METADATA: (GroupType.SHARE, _member),
    KeyType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: (GroupType.SHARE, _target),
    KeyType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: (GroupType.SHARE, _current),
    KeyType.STREAMS_GROUP_METADATA: (GroupType.STREAMS, _group),
    KeyType.STREAMS_GROUP_MEMBER_METADATA: (GroupType.STREAMS, _member),
    KeyType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: (GroupType.STREAMS, _target),
    KeyType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: (GroupType.STREAMS, _current),
    KeyType.STREAMS_GROUP_TOPOLOGY: (GroupType.STREAMS, _topology),
}
"""By the type of a key: the kind of its group, and what applies the value. Nothing of the other types is shown."""
