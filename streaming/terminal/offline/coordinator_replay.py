"""Replays the logs of group coordinators from their first byte, once: commits, groups, and since when commits do not move."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streaming.broker.disk.logdirs import LogDir, Partition, list_partitions
from streaming.broker.disk.replay import batches_between
from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.watcher.cursors import log_id
from streaming.common.formatting import format_word
from streaming.errors import FormatError
from streaming.kafka.formats.names import OFFSETS_TOPIC, DirState
from streaming.kafka.groups.followed_groups import GroupLimit
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.kafka.groups.replays import COORDINATED_TOPICS, new_replay
from streaming.kafka.groups.share_log import ShareLog
from streaming.kafka.scan.group_records import Commit, EndMarker, GroupRecord, GroupRecords, group_records
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.share_records import ShareRecords, share_records
from streaming.kafka.scan.walk import Bytes
from streaming.terminal.offline.unmoved_offsets import CommitKey, UnmovedOffsets

log = logging.getLogger(__name__)

LARGEST_BATCH_BYTES = 256 << 20
_END = 2**63 - 1
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One replica of a coordinators' log.

    ``since``: see `UnmovedOffsets.since`; none of share groups.
    """

    partition: Partition
    changes: GroupChanges
    since: dict[CommitKey, tuple[int, int]]


def replay_coordinators(
    log_dirs: Iterable[LogDir],
    coordinators: Collection[int] | None,
    wanted: Callable[[str], bool],
    groups_limit: int,
    paced: Callable[[int], None],
) -> tuple[list[Replayed], list[str]]:
    """Replay every replica of the coordinators' logs; returns also what could not be read, in sentences.

    Args:
        coordinators: which partitions of `__consumer_offsets`; None for all.
        wanted: which groups.
        groups_limit: the most groups of each replica.
        paced: called with the number of bytes after each window that was read; it may wait.
    """
    found, doubts = [], []
    for partition in _logs(log_dirs, coordinators):
        for left in reversed(range(_TRIES)):
            try:
                found.append(_replay(partition, wanted, GroupLimit(groups_limit), paced))
                break
            except (FormatError, OSError) as error:  # compaction may have replaced a segment meanwhile: the next try lists it anew
                if not left:
                    log.warning("a group coordinator's log cannot be read", extra={"path": str(partition.path), "error": str(error)})
                    doubts.append(f"groups of {format_word(str(partition.path))} are not known: {error}")
    return found, doubts


def _logs(log_dirs: Iterable[LogDir], coordinators: Collection[int] | None) -> Iterator[Partition]:
    for log_dir in log_dirs:
        try:
            partitions = list_partitions(log_dir)
        except OSError as error:  # the reading of the log dirs reports it
            log.warning("log dir cannot be read", extra={"path": str(log_dir.path), "error": str(error)})
            continue
        for each in partitions:
            other = each.topic == OFFSETS_TOPIC and coordinators is not None and each.partition not in coordinators
            if each.topic in COORDINATED_TOPICS and each.state is DirState.LIVE and not other:
                yield each


def _replay(partition: Partition, wanted: Callable[[str], bool], limit: GroupLimit, paced: Callable[[int], None]) -> Replayed:
    replay, unmoved = new_replay(log_id(partition), str(partition.path), limit), UnmovedOffsets()
    for batches, buffer in _whole_batches(partition.path):
        upto = int(batches.last_offset[-1]) + 1
        if isinstance(replay, ShareLog):
            shared = share_records(batches, buffer)
            replay.replay(ShareRecords(tuple(each for each in shared.records if wanted(each.key.group)), shared.unreadable), upto)
        else:
            records = group_records(batches, buffer)
            some = tuple(each for each in records.records if isinstance(each, EndMarker) or wanted(_group_of(each)))
            unmoved.note(some)
            replay.replay(GroupRecords(some, records.unreadable), upto)
        paced(int(batches.size.sum()))
    return Replayed(partition=partition, changes=replay.changes(0), since=unmoved.since())


def _group_of(record: Commit | GroupRecord) -> str:
    return record.group if isinstance(record, Commit) else getattr(record.key, "group", "")


def _whole_batches(directory: Path) -> Iterator[tuple[Batches, Bytes]]:
    """The batches of a log, some at a time, with the buffer that they are in."""
    segments, buffer, begin = list_segments(directory), window(), 0
    while True:
        for batches, _ in batches_between(segments, begin, _END, buffer):
            needed = int(batches.positions[-1] + batches.size[-1])
            if needed > len(buffer):  # of a batch that is larger than the buffer only the header was read
                break
            yield batches, buffer
            begin = int(batches.last_offset[-1]) + 1
        else:
            return
        if needed > LARGEST_BATCH_BYTES:
            raise FormatError(f"a batch of {needed} bytes at offset {begin}")
        buffer = np.empty(needed, np.uint8)
