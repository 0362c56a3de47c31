"""Applies the records of the newer protocols to a group: consumer (KIP-848), share and streams groups have the same kinds of records."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streaming.common.short_names import short_name
from streaming.kafka.formats.consumer_groups import ConsumerGroupMemberKey, ConsumerGroupRegexKey, KeyType
from streaming.kafka.formats.consumer_offsets import OffsetsKey
from streaming.kafka.groups.assignments import of_record
from streaming.kafka.groups.group_states import GroupType, Member, NewerGroup
from streaming.kafka.scan.group_records import NotUnderstood

_SUBSCRIBES = ("topics", "topic_regex", "topology_epoch", "process_id", "client_tags", "user_endpoint")
"""What a member describes of itself, besides who it is."""

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
        group.changes.subscribed = True  # nothing shows who it was
    else:
        group.changes.leave(member.instance_id or member_id, member.name)


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

DELETING = {KeyType.CONSUMER_GROUP_METADATA, KeyType.SHARE_GROUP_METADATA, KeyType.STREAMS_GROUP_METADATA}
"""A tombstone with one of these keys deletes the group."""
