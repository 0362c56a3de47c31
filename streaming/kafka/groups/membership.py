"""The groups of one coordinator's log, in versions: types, states and members by the records about them, and their rhythm."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from streaming.kafka.formats.consumer_offsets import GroupKey, OffsetCommitKey, OtherKey
from streaming.kafka.formats.stored_groups import GroupMetadata
from streaming.kafka.groups.group_rows import GROUPS, REMOVED, GroupColumns, GroupFacts, batch_of_rows
from streaming.kafka.groups.group_states import (
    APPLIED,
    DELETING,
    SIMPLE,
    UNREADABLE,
    GroupState,
    GroupType,
    NewerGroup,
    classic_summary,
)
from streaming.kafka.groups.log_replay import FollowedGroups
from streaming.kafka.groups.offset_moves import MovedOffsets
from streaming.kafka.groups.rebalance_log import RebalanceLog, packed_rebalances
from streaming.kafka.scan.group_records import GroupRecord

SHORT_MS = 60_000
"""What follows within a minute is not told apart: the shortest usual interval."""

COUNTS_TIMES = 10
"""An interval counts for so many times its own length."""

LONGEST_MS = 1 << 42
"""No interval is longer than 140 years, whatever a damaged clock has written."""

NO_RECORD, HAS_MEMBERS = -2, -1
"""Used instead of the epoch in which the last member of a group left: it has no record of its own; nothing shows that it has no members."""

_DELETED = GroupColumns(type=SIMPLE.type, protocol="", state=SIMPLE.state, members=REMOVED, epoch=-1)


class Membership:
    """The groups by their names."""

    def __init__(self, groups: FollowedGroups) -> None:
        self._followed = groups
        self._groups: dict[str, _StampedGroup] = {}
        self.deleted = 0  # how many were deleted since that was last forgotten

    def committed(self, group: str, record_offset: int, stamp: int) -> int:
        """A group commits an offset: if nothing else is known of it, it is one without members. Returns its `emptied`."""
        stamped = self._groups.get(group)
        if stamped is None or stamped.deleted:
            stamped = self._groups[group] = _StampedGroup(SIMPLE, record_offset, stamp)
        return stamped.emptied

    def moved(self, group: str, before_ms: int, at_ms: int, stamp: int) -> None:
        """A commit of a group counts, and the one of its partition before was at ``before_ms``, -1 for none."""
        stamped = self._groups.get(group)
        if stamped is not None and stamped.rhythm.committed(before_ms, at_ms):
            stamped.version = stamp

    def emptied(self, group: str) -> int:
        """The epoch in which the last member of a group left, `HAS_MEMBERS`, or `NO_RECORD`."""
        stamped = self._groups.get(group)
        return NO_RECORD if stamped is None else stamped.emptied

    def summary(self, group: str) -> GroupColumns | None:
        """A group as its records have made it by now, None if it has none."""
        stamped = self._groups.get(group)
        return stamped.summary() if stamped is not None and stamped.stored else None

    def touch(self, group: str, record_offset: int, stamp: int) -> None:
        """Something else about a group has changed, by this record."""
        stamped = self._groups.get(group)
        if stamped is not None and not stamped.deleted:
            stamped.record_offset, stamped.version = max(stamped.record_offset, record_offset), stamp

    def replay(self, record: GroupRecord, stamp: int) -> bool:
        """Apply a record; returns whether something changed."""
        key = record.key
        if isinstance(key, GroupKey):
            return self._classic(key.group, record, stamp)
        if isinstance(key, OffsetCommitKey | OtherKey) or key.key_type not in APPLIED:
            return False
        kind, apply = APPLIED[key.key_type]
        group = self._newer(key.group, kind, record, stamp)
        if group is None:
            return False
        if record.value is None and key.key_type in DELETING:
            return self._delete(key.group, record.record_offset, stamp)
        apply(group, key, record.value, record.at_ms)
        self._groups[key.group].see_who_is_there()
        self._rebalance(self._groups[key.group].rebalances, group, record, own=key.key_type in DELETING)
        return True

    def batch(self, after: int, coordinator: int, moves: MovedOffsets) -> pa.RecordBatch:
        """The groups that changed after a version, deleted ones among them, each with the moves of its offsets."""
        changed = [(name, stamped, stamped.summary()) for name, stamped in self._groups.items() if stamped.version > after]
        rows = [
            GroupFacts(
                group=name,
                coordinator=coordinator,
                effective_offset=stamped.record_offset,
                last_topics=stamped.last_topics,
                interval_ms=stamped.rhythm.usual_ms,
                moves=tuple(moves.of(name)),
                **{column: getattr(summary, column) for column in GroupColumns.__slots__},
                **_rebalance_columns(stamped.rebalances),
            )
            for name, stamped, summary in changed
        ]
        return batch_of_rows(GROUPS, rows)

    def forget_deleted(self) -> None:
        """Keep nothing of deleted groups, nor of those for which nothing is held any more."""
        self._groups = {name: stamped for name, stamped in self._groups.items() if not stamped.deleted and self._followed.find(name) >= 0}
        self.deleted = 0

    def _classic(self, name: str, record: GroupRecord, stamp: int) -> bool:
        value = record.value
        if value is None:
            self._followed.deleted(name)
            stamped = self._groups.get(name)
            # a group that goes over to a newer protocol is not deleted by what is left of the classic one
            deletes = stamped is not None and not isinstance(stamped.group, NewerGroup)
            return deletes and self._delete(name, record.record_offset, stamp)
        summary = classic_summary(value) if isinstance(value, GroupMetadata) else UNREADABLE
        if not self._put(name, summary, record.record_offset, stamp):
            return False
        stamped = self._groups[name]
        if isinstance(value, GroupMetadata):
            stamped.rebalances.generation(value, record.at_ms)
            stamped.see_generation(frozenset(each.group_instance_id or each.member_id for each in value.members), summary.topics)
        else:
            stamped.rebalances.not_understood()
            stamped.members, stamped.topics = frozenset(), ()
        return True

    def _rebalance(self, rebalances: RebalanceLog, group: NewerGroup, record: GroupRecord, *, own: bool) -> None:
        """Note what a record says of a newer group's rebalances; ``own``: it is the group's own, which has its epoch."""
        changes, count = group.changes, len(group.members)
        for name in changes.returned.values():
            rebalances.returned(name, record.at_ms, count)
        changes.returned.clear()
        if own and group.understood:
            # an epoch of a share group is also raised when new partitions are ready, which changes no hash
            metadata_hash = 0 if group.type is GroupType.SHARE else group.metadata_hash
            rebalances.epoch(group.epoch, metadata_hash, group.validated_epoch, record.at_ms, count, changes)
        elif own:
            changes.subscribed = True

    def _newer(self, name: str, kind: GroupType, record: GroupRecord, stamp: int) -> NewerGroup | None:
        """The group that a record is about, which is changed by it; None if it is not to be made by it, or left out."""
        stamped = self._groups.get(name)
        if stamped is not None and isinstance(stamped.group, NewerGroup) and stamped.group.type is kind:
            stamped.record_offset, stamped.version = record.record_offset, stamp
            return stamped.group
        if record.value is None:
            if isinstance(record.key, OtherKey | OffsetCommitKey | GroupKey) or record.key.key_type in DELETING:
                self._followed.deleted(name)
            return None
        group = NewerGroup(kind)
        return group if self._put(name, group, record.record_offset, stamp) else None

    def _put(self, name: str, group: GroupColumns | NewerGroup, record_offset: int, stamp: int) -> bool:
        number = self._followed.follow(name)
        if number < 0:
            return False
        stamped = self._groups.get(name)
        if stamped is None or not stamped.stored:
            self._followed.hold(number)
        before = _StampedGroup(SIMPLE, -1, -1) if stamped is None or stamped.deleted else stamped
        stamped = self._groups[name] = _StampedGroup(
            group, record_offset, stamp, before.rhythm, rebalances=before.rebalances, members=before.members, topics=before.topics
        )
        stamped.see_who_is_there()
        return True

    def _delete(self, name: str, record_offset: int, stamp: int) -> bool:
        stamped = self._groups.get(name)
        if stamped is None or stamped.deleted:
            return False
        if stamped.stored:
            self._followed.let_go(self._followed.find(name))
        self._groups[name] = _StampedGroup(_DELETED, record_offset, stamp)
        self.deleted += 1
        return True


class _Interval(NamedTuple):
    length_ms: int
    ended_ms: int

    def counts(self, at_ms: int) -> bool:
        return at_ms - self.ended_ms <= COUNTS_TIMES * self.length_ms


@dataclass(slots=True, eq=False)
class Rhythm:
    """The intervals of one group. ``usual_ms``: its usual interval, -1 while fewer than two are known.

    The rhythm of a group: how long it usually is from one commit to the next, told by the commits in its coordinator's log. A job
    that runs once an hour commits every few seconds while it runs, and then pauses: its pauses are its rhythm. So the usual interval
    is the second longest of those that count. What came once may be an outage, what came twice is a habit; and an interval counts for
    ten times its own length, so that a habit of long ago is forgotten. Compaction leaves the last commit of each partition. Two
    commits of one partition that are both there followed each other at any rate, and if the first of them was the last commit of the
    group, nothing of the group lies between.

    Of the intervals of about one length, from a power of two to the next, the last two are kept: more are never needed.
    """

    usual_ms: int = -1
    _last_ms: int = -1
    _short: int = 0
    _intervals: dict[int, tuple[_Interval, ...]] = field(default_factory=dict)

    def committed(self, before_ms: int, at_ms: int) -> bool:
        """A partition was committed, and ``before_ms`` the last time before, -1 for none; returns whether the usual interval changed."""
        length = min(at_ms - before_ms, LONGEST_MS)
        follows = 0 <= self._last_ms <= before_ms and length > 0
        self._last_ms = max(self._last_ms, at_ms)
        if not follows:
            return False
        if length > SHORT_MS:
            of = length.bit_length()
            self._intervals[of] = (*self._intervals.get(of, ())[-1:], _Interval(length, at_ms))
        elif self._short >= 2 and not self._intervals:
            return False
        else:
            self._short = min(self._short + 1, 2)
        usual = self._usual(at_ms)
        changed, self.usual_ms = usual != self.usual_ms, usual
        return changed

    def _usual(self, at_ms: int) -> int:
        """The second longest interval that counts."""
        counting = {of: some for of, each in self._intervals.items() if (some := tuple(one for one in each if one.counts(at_ms)))}
        self._intervals = counting
        lengths = sorted((one.length_ms for some in counting.values() for one in some), reverse=True)
        lengths += [SHORT_MS] * self._short
        return lengths[1] if len(lengths) > 1 else -1


@dataclass(slots=True)
class _StampedGroup:
    """A group, or that it is deleted; ``record_offset`` of the last record about it.

    ``emptied``: in which epoch its last member left, `HAS_MEMBERS`, or `NO_RECORD`. ``members``, ``topics``: of a classic group its last
    members, and what they subscribed to.
    """

    group: GroupColumns | NewerGroup
    record_offset: int
    version: int
    rhythm: Rhythm = field(default_factory=Rhythm)
    emptied: int = NO_RECORD
    rebalances: RebalanceLog = field(default_factory=RebalanceLog)
    members: frozenset[str] = frozenset()
    topics: tuple[str, ...] = ()

    @property
    def deleted(self) -> bool:
        return self.group is _DELETED

    @property
    def stored(self) -> bool:
        """Whether it has records of its own, and not commits alone."""
        return self.group is not SIMPLE and not self.deleted

    def see_who_is_there(self) -> None:
        """Note whether it had members and has none: each commit asks for it."""
        group = self.group
        if not self.stored:
            self.emptied = NO_RECORD
        elif isinstance(group, NewerGroup):
            self.emptied = HAS_MEMBERS if group.members or not group.understood or group.epoch <= 0 else group.epoch
        else:
            self.emptied = group.epoch if group.epoch > 0 and group.state is GroupState.EMPTY else HAS_MEMBERS

    def see_generation(self, members: frozenset[str], topics: tuple[str, ...]) -> None:
        """A generation of a classic group. Members that leave one after the other, without another in their place, end one and the same
        run: so what the first of them read, the group reads. One that joins begins another.
        """
        if members:
            only_left = members < self.members
            self.topics = tuple(sorted({*topics, *self.topics})) if only_left else topics
        self.members = members

    @property
    def last_topics(self) -> tuple[str, ...]:
        """What the last members of an empty group subscribed to, where that is known."""
        if isinstance(self.group, NewerGroup):
            return self.group.last_topics
        return self.topics if self.stored and self.group.state == GroupState.EMPTY else ()

    def summary(self) -> GroupColumns:
        return self.group.summary() if isinstance(self.group, NewerGroup) else self.group


def _rebalance_columns(log: RebalanceLog) -> dict[str, Any]:
    """The columns of `GroupFacts` about rebalances."""
    numbers, clients, hosts = packed_rebalances(log.recent or ())
    return {
        "raised": log.raised,
        "raised_by_metadata": log.metadata if log.raised >= 0 else -1,
        "raised_unfinished": log.unfinished if log.raised >= 0 else -1,
        "rebalance_ms": log.last_ms,
        "rebalance_minutes": log.flat_minutes,
        "rebalances": numbers,
        "rebalance_clients": clients,
        "rebalance_hosts": hosts,
    }
