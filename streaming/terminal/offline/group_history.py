"""The history of consumer groups from log dirs: what their coordinators' logs still have of them, and since when that is all."""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from streaming import __version__
from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.logdirs import Partition, load_offset_checkpoint
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.protocol.group_json import RebalancedMember
from streaming.broker.protocol.history_json import GroupHistory, GroupHistoryPage, HistoryEvent
from streaming.broker.watcher.cursors import log_id
from streaming.common.formatting import format_word
from streaming.common.settings import Settings
from streaming.common.short_names import is_short_form, possible_names
from streaming.errors import FormatError
from streaming.kafka.formats.names import CLEANER_CHECKPOINT, OFFSETS_TOPIC, coordinator_partition
from streaming.kafka.groups.group_events import GroupEvent, GroupEvents
from streaming.kafka.scan.group_records import group_records
from streaming.terminal.offline.cluster_logs import unseen_dirs
from streaming.terminal.offline.coordinator_logs import coordinators_logs, whole_batches
from streaming.terminal.offline.group_reading import replay_groups


@dataclass(slots=True, eq=False)
class _Read:
    """What one replica of a coordinator's log has of groups. ``upto``: its end."""

    partition: Partition
    events: dict[str, GroupEvents]
    upto: int
    whole_from: int
    whole_from_ms: int


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
        events=[*_messages(events.events)],
    )


def _messages(events: Sequence[GroupEvent]) -> Iterator[HistoryEvent]:
    for each in events:
        yield HistoryEvent(
            event=each.event,
            record_offset=each.record_offset,
            at_ms=each.at_ms,
            topic=each.topic,
            partition=each.partition,
            committed=each.committed,
            before=each.before,
            moved=each.moved or "",
            epoch=each.epoch,
            members=each.member_count,
            first_members=[RebalancedMember(client=client, host=host) for client, host in each.members],
        )


def group_names(log_dirs: LogDirs, settings: Settings) -> set[str]:
    """Of those that have commits, and of those that have members."""
    replayed = replay_groups(log_dirs, (), settings, time.time, time.sleep, lambda _: None).logs.replayed
    changes = [each.replay.changes(0) for each in replayed]
    return {name for each in changes for rows in (each.commits, each.groups) for name in rows["group"].to_pylist()}
