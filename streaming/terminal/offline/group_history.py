"""The history of consumer groups from log dirs: what their coordinators' logs have of them, record by record, and since when."""

import time
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from streaming import __version__
from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.logdirs import Partition, load_offset_checkpoint
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.protocol.group_json import RebalancedMember
from streaming.broker.protocol.history_json import GroupHistory, GroupHistoryPage, HistoryEvent
from streaming.broker.watcher.cursors import log_id
from streaming.common.log_key import LogKey
from streaming.common.settings import Settings
from streaming.common.short_names import is_short_form, possible_names, short_name
from streaming.common.units import format_word
from streaming.errors import FormatError
from streaming.kafka.formats.consumer_offsets import GroupKey, OffsetCommit, OffsetCommitKey, OtherKey
from streaming.kafka.formats.names import CLEANER_CHECKPOINT, OFFSETS_TOPIC, coordinator_partition
from streaming.kafka.formats.stored_groups import GroupMetadata
from streaming.kafka.groups.commit_log import CommitLog
from streaming.kafka.groups.group_rows import REMOVED
from streaming.kafka.groups.group_states import DELETING, MOST_NAMED
from streaming.kafka.groups.log_replay import GroupLimit
from streaming.kafka.groups.offset_moves import NotedMove, counts, kind_of
from streaming.kafka.scan.group_records import Commit, EndMarker, GroupRecord, GroupRecords, NotUnderstood, group_records
from streaming.terminal.offline.cluster_logs import unseen_dirs
from streaming.terminal.offline.coordinator_logs import coordinators_logs, whole_batches
from streaming.terminal.offline.group_reading import replay_groups

MOST_EVENTS = 1_000
"""So many are kept."""

COMMITTED, PENDING, ABORTED, DELETED, GENERATION, GONE = "commit", "pending", "aborted", "deleted", "generation", "gone"


def read_histories(log_dirs: LogDirs, names: Collection[str], now_ms: int | None) -> GroupHistoryPage:
    """The histories of these groups; of each from the replica that goes furthest, if several are here."""
    cluster = ClusterView(log_dirs)
    cluster.refresh()
    count = cluster.partition_count(OFFSETS_TOPIC)
    wanted = frozenset(possible for name in names for possible in possible_names(name))
    known = count and not any(map(is_short_form, names))  # else nothing shows to which coordinator the group belongs
    coordinators = frozenset(coordinator_partition(name, count) for name in names) if known and count else None
    doubts, best = [*unseen_dirs(log_dirs, cluster)], dict[str, tuple[int, _Read]]()
    for partition in coordinators_logs(log_dirs, coordinators):
        if partition.topic != OFFSETS_TOPIC:
            continue
        try:
            read = _read(partition, wanted)
        except (FormatError, OSError) as error:
            doubts.append(f"{format_word(str(partition.path))} cannot be read: {error}")
            continue
        for name, events in read.events.items():
            if events.events and read.upto > best.get(name, (-1, read))[0]:
                best[name] = read.upto, read
    rows = [_history(name, read) for name, (_, read) in sorted(best.items())]
    return GroupHistoryPage(at_ms=now_ms or time.time_ns() // 1_000_000, version=__version__, doubts=doubts, rows=rows)


def _moved(noted: NotedMove | None) -> str:
    """By whom, as far as the log shows by now; "" for a reader. What was beyond the end of another log at that time it does not."""
    if noted is None:
        return ""
    kind = kind_of(noted.now, from_beyond=False)
    return kind if counts(noted.now, kind) else ""


class GroupEvents:
    """The events of one group, from the records of its coordinator's log in their order. ``omitted``: those before the newest ones.

    What a coordinator's log has of one group, record by record: commits, generations and what moved its offsets, the newest of them.
    """

    def __init__(self, group: str, log: LogKey) -> None:
        self.omitted = 0
        self._group = group
        self._replay = CommitLog(log, "", GroupLimit(1))
        self._events: deque[tuple[HistoryEvent, NotedMove | None]] = deque(maxlen=MOST_EVENTS)  # with what a commit has moved
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
            moved = each.event == COMMITTED and move is not None and move is not before and _is_of(move, each)
            self.omitted += len(self._events) == MOST_EVENTS
            self._events.append((self._with_members(each, record) if each.event == GENERATION else each, move if moved else None))

    @property
    def events(self) -> list[HistoryEvent]:
        """The newest ones, the oldest first."""
        return [replace(event, moved=_moved(move)) for event, move in self._events]

    def _of(self, record: Commit | GroupRecord | EndMarker) -> Iterator[HistoryEvent]:
        if isinstance(record, Commit):
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
        elif isinstance(record, EndMarker):
            ended = COMMITTED if record.committed else ABORTED
            for commit in self._pending.pop(record.producer_id, {}).values():
                yield replace(self._event(ended, commit), record_offset=record.record_offset, at_ms=record.at_ms)
        elif isinstance(record.key, GroupKey) or (
            not isinstance(record.key, OffsetCommitKey | OtherKey) and record.key.key_type in DELETING
        ):
            event = GONE if record.value is None else GENERATION
            yield HistoryEvent(event=event, record_offset=record.record_offset, at_ms=record.at_ms)

    def _event(self, event: str, record: Commit) -> HistoryEvent:
        value = record.value if isinstance(record.value, OffsetCommit) else None
        return HistoryEvent(
            event=event,
            record_offset=record.record_offset,
            at_ms=record.at_ms if value is None else value.commit_timestamp,
            topic=record.topic,
            partition=record.partition,
            committed=-1 if value is None else value.offset,
            before=max(self._replay.committed(record.group, record.topic, record.partition), -1),
        )

    def _with_members(self, event: HistoryEvent, record: Commit | GroupRecord | EndMarker) -> HistoryEvent:
        """A generation with who is in it; a classic one has its own time."""
        value = record.value if isinstance(record, GroupRecord) else None
        if isinstance(value, GroupMetadata):
            members = [
                RebalancedMember(client=short_name(each.client_id), host=short_name(each.client_host))
                for each in value.members[:MOST_NAMED]
            ]
            at_ms = value.current_state_timestamp if value.current_state_timestamp >= 0 else event.at_ms
            return replace(event, at_ms=at_ms, epoch=value.generation, members=len(value.members), first_members=members)
        summary = self._replay.members.summary(self._group)
        if summary is None or isinstance(value, NotUnderstood):
            return event
        members = [RebalancedMember(client=client, host=host) for client, host in zip(summary.clients, summary.hosts, strict=True)]
        return replace(event, epoch=summary.epoch, members=summary.members, first_members=members)


def _is_of(move: NotedMove, event: HistoryEvent) -> bool:
    return (move.move.topic, move.move.partition, move.move.offset) == (event.topic, event.partition, event.committed)


@dataclass(slots=True, eq=False)
class _Read:
    """What one replica of a coordinator's log has of groups. ``upto``: its end."""

    partition: Partition
    events: dict[str, GroupEvents]
    upto: int
    whole_from: int
    whole_from_ms: int


def _read(partition: Partition, wanted: Collection[str]) -> _Read:
    segments = list_segments(partition.path)
    first = segments[0].base_offset if segments else 0
    whole_from = max(load_offset_checkpoint(partition.log_dir, CLEANER_CHECKPOINT).of(partition), first)
    events = {name: GroupEvents(name, log_id(partition)) for name in wanted}
    read = _Read(partition, events, first, whole_from, -1)
    for batches, buffer in whole_batches(segments, first):
        for record in group_records(batches, buffer).records:
            for each in events.values():
                each.take(record)
        read.upto = int(batches.last_offset[-1]) + 1
        if read.whole_from_ms < 0 and read.upto > whole_from:
            times = batches.max_timestamp[(batches.last_offset >= whole_from) & (batches.max_timestamp >= 0)]
            read.whole_from_ms = int(times[0]) if len(times) else -1
    return read


def _history(name: str, read: _Read) -> GroupHistory:
    events = read.events[name]
    return GroupHistory(
        group=name,
        log=str(read.partition.path),
        whole_from=read.whole_from,
        whole_from_ms=read.whole_from_ms,
        omitted=events.omitted,
        events=events.events,
    )


def group_names(log_dirs: LogDirs, settings: Settings) -> set[str]:
    """The names of the groups that have commits, and of those that have members."""
    replayed = replay_groups(log_dirs, (), settings, time.time, time.sleep, lambda _: None).logs.replayed
    changes = [each.replay.changes(0) for each in replayed]
    return {name for each in changes for rows in (each.commits, each.groups) for name in rows["group"].to_pylist()}
