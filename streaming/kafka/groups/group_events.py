"""What a coordinator's log has of one group, record by record: commits, generations and what moved its offsets, the newest of them."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from streaming.common.log_key import LogKey
from streaming.common.short_names import short_name
from streaming.kafka.formats.consumer_offsets import GroupKey, OffsetCommit, OffsetCommitKey, OtherKey
from streaming.kafka.formats.stored_groups import GroupMetadata
from streaming.kafka.groups.commit_log import CommitLog
from streaming.kafka.groups.group_rows import REMOVED
from streaming.kafka.groups.group_states import DELETING, MOST_NAMED
from streaming.kafka.groups.log_replay import GroupLimit
from streaming.kafka.groups.offset_moves import MoveKind, NotedMove, counts, kind_of
from streaming.kafka.scan.group_records import Commit, EndMarker, GroupRecord, GroupRecords, NotUnderstood

MOST_EVENTS = 1_000
"""So many are kept."""

COMMITTED, PENDING, DELETED, GENERATION, GONE = "commit", "pending", "deleted", "generation", "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEvent:
    """A record of a group, or the end of a transaction with its commits. Columns as `HistoryEvent` of `group_history_json`.

    ``members``: client ids and hosts of the first ones; ``move``: what the commit has moved, None for a reader's.
    """

    event: str
    record_offset: int
    at_ms: int
    topic: str = ""
    partition: int = -1
    committed: int = -1
    before: int = -1
    epoch: int = -1
    member_count: int = -1
    members: tuple[tuple[str, str], ...] = ()
    move: NotedMove | None = None

    @property
    def moved(self) -> MoveKind | None:
        """By whom, as far as the log shows by now. What was beyond the end of another log at that time it does not."""
        if self.move is None:
            return None
        move = self.move.now
        kind = kind_of(move, from_beyond=False)
        return kind if counts(move, kind) else None


class GroupEvents:
    """The events of one group, from the records of its coordinator's log in their order. ``omitted``: those before the newest ones."""

    def __init__(self, group: str, log: LogKey) -> None:
        self.omitted = 0
        self._group = group
        self._replay = CommitLog(log, "", GroupLimit(1))
        self._events: deque[GroupEvent] = deque(maxlen=MOST_EVENTS)
        self._pending: dict[int, dict[tuple[str, int], Commit]] = {}

    def take(self, record: Commit | GroupRecord | EndMarker) -> None:
        """The next record."""
        name = getattr(record.key, "group", "") if isinstance(record, GroupRecord) else getattr(record, "group", self._group)
        if name != self._group:
            return
        before = self._replay.moves.newest(self._group)
        events = list(self._of(record))
        self._replay.replay(GroupRecords((record,), 0), record.record_offset + 1)
        move = self._replay.moves.newest(self._group)
        for each in events:
            if each.event == GENERATION:
                each = self._with_members(each, record)
            elif each.event == COMMITTED and move is not None and move is not before and _is_of(move, each):
                each = replace(each, move=move)
            self.omitted += len(self._events) == MOST_EVENTS
            self._events.append(each)

    @property
    def events(self) -> tuple[GroupEvent, ...]:
        """The newest ones, the oldest first."""
        return tuple(self._events)

    def _of(self, record: Commit | GroupRecord | EndMarker) -> Iterator[GroupEvent]:
        if isinstance(record, Commit):
            yield from self._commit(record)
        elif isinstance(record, EndMarker):
            for commit in self._pending.pop(record.producer_id, {}).values():
                if record.committed:
                    yield replace(self._event(COMMITTED, commit), record_offset=record.record_offset, at_ms=record.at_ms)
        elif isinstance(record.key, GroupKey) or (
            not isinstance(record.key, OffsetCommitKey | OtherKey) and record.key.key_type in DELETING
        ):
            event = GONE if record.value is None else GENERATION
            yield GroupEvent(event=event, record_offset=record.record_offset, at_ms=record.at_ms)

    def _commit(self, record: Commit) -> Iterator[GroupEvent]:
        if record.value is None:
            for commits in self._pending.values():
                commits.pop((record.topic, record.partition), None)
            if self._replay.committed(record.group, record.topic, record.partition) != REMOVED:
                yield self._event(DELETED, record)
        elif record.producer_id < 0:
            yield self._event(COMMITTED, record)
        else:
            self._pending.setdefault(record.producer_id, {})[record.topic, record.partition] = record
            yield self._event(PENDING, record)

    def _event(self, event: str, record: Commit) -> GroupEvent:
        value = record.value if isinstance(record.value, OffsetCommit) else None
        return GroupEvent(
            event=event,
            record_offset=record.record_offset,
            at_ms=record.at_ms if value is None else value.commit_timestamp,
            topic=record.topic,
            partition=record.partition,
            committed=-1 if value is None else value.offset,
            before=max(self._replay.committed(record.group, record.topic, record.partition), -1),
        )

    def _with_members(self, event: GroupEvent, record: Commit | GroupRecord | EndMarker) -> GroupEvent:
        """A generation with who is in it; a classic one has its own time."""
        value = record.value if isinstance(record, GroupRecord) else None
        if isinstance(value, GroupMetadata):
            members = tuple((short_name(each.client_id), short_name(each.client_host)) for each in value.members[:MOST_NAMED])
            at_ms = value.current_state_timestamp if value.current_state_timestamp >= 0 else event.at_ms
            return replace(event, at_ms=at_ms, epoch=value.generation, member_count=len(value.members), members=members)
        summary = self._replay.members.summary(self._group)
        if summary is None or isinstance(value, NotUnderstood):
            return event
        return replace(
            event, epoch=summary.epoch, member_count=summary.members, members=tuple(zip(summary.clients, summary.hosts, strict=True))
        )


def _is_of(move: NotedMove, event: GroupEvent) -> bool:
    return (move.move.topic, move.move.partition, move.move.offset) == (event.topic, event.partition, event.committed)
