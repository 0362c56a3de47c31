"""Lists what lies in log dirs from a start on, as excerpts that are small enough to share out; and where a time begins in a log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np

from streaming.broker.disk.availability import UNKNOWN_BROKER, read_identity
from streaming.broker.disk.locate import BatchBoundary, beginning, find_offset, start_near, walk_on, window, without_replaced
from streaming.broker.disk.log_dir_search import find_log_dirs, unsearched_words
from streaming.broker.disk.logdirs import LogDir, OffsetCheckpoint, Partition, list_partitions, load_offset_checkpoint, read_topic_id
from streaming.broker.disk.opening import INDEX_BYTES, read_small
from streaming.broker.disk.scanning import written_end
from streaming.broker.disk.segment_files import Segment, indexes_alone, list_segments, log_start_offset
from streaming.broker.disk.segment_times import indexed_largest, is_there
from streaming.broker.protocol.consumer_messages import EVERYTHING_SELECTED, Selection
from streaming.broker.protocol.excerpt_messages import EVERYTHING, Excerpt
from streaming.common.start_from import StartFrom
from streaming.common.units import format_list
from streaming.errors import AgentError, FormatError, LogDirError, UsageError
from streaming.kafka.formats.names import (
    INTERNAL_TOPICS,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    METADATA_TOPIC,
    PARTITION_METADATA,
    DirState,
    FileKind,
    parse_partition_dir,
    segment_file_name,
)
from streaming.kafka.formats.properties import known_clusters
from streaming.kafka.formats.segment_indexes import read_time_entries
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

UNREADABLE = "?"
"""In place of a topic id that cannot be read: only those who want the partition have to know."""

WHY_UNREADABLE = f"its {PARTITION_METADATA} is damaged, or may not be read"

Unreadable = Callable[[Partition, str], None]
"""Is called with a partition that cannot be read, and why."""

_NAMED = 10
_INDEXES_NAMED = 3


def refuse(partition: Partition, why: str) -> NoReturn:
    """Read nothing if one partition cannot be read."""
    raise AgentError(f"{partition.path} cannot be read: {why}")


def excerpts_of(
    partitions: Iterable[tuple[Partition, int]], start: StartFrom | int, excerpt_bytes: int, unreadable: Unreadable = refuse
) -> Iterator[Excerpt]:
    """What of partitions, with their log starts (`partitions_with_start`), lies from a start on: log by log, in the order of each.

    Args:
        start: an `int` is a time, Unix milliseconds: from the first batch on that has a record of that time or later.
        excerpt_bytes: a segment is cut at multiples of it.

    Raises:
        AgentError: whatever ``unreadable`` raises of a log.
    """
    buffer = window()
    for partition, log_start in partitions:
        try:
            excerpts = list(_of_log(partition, log_start, start, excerpt_bytes, buffer))
        except FileNotFoundError as error:  # it was deleted after it was listed
            log.info("log is excluded", extra={"path": str(partition.path), "error": str(error)})
        except OSError as error:
            unreadable(partition, error.strerror or str(error))
        else:
            yield from excerpts


def _of_log(partition: Partition, log_start: int, start: StartFrom | int, excerpt_bytes: int, buffer: Bytes) -> Iterator[Excerpt]:
    segments = without_replaced(list_segments(partition.path), buffer)
    boundary = start_of(segments, log_start, start, buffer) if segments else None
    if boundary is None:
        return
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        if segment.base_offset < boundary.segment.base_offset:
            continue
        begin, from_offset = (boundary.position, boundary.next_offset) if segment is boundary.segment else (0, segment.base_offset)
        end = segment.size if following is not None else _written(segment)
        whole = Excerpt(
            broker=partition.log_dir.broker,
            log_dir=str(partition.log_dir.path),
            topic=partition.topic,
            partition=partition.partition,
            topic_id=partition.topic_id,
            segment=segment.base_offset,
            begin=begin,
            end=end,
            bytes=end - begin,
            from_offset=from_offset,
            until_offset=EVERYTHING if following is None else following.base_offset,
        )
        yield from cut(whole, excerpt_bytes)


def start_of(segments: Sequence[Segment], log_start: int, start: StartFrom | int, buffer: Bytes) -> BatchBoundary | None:
    """Where a start is in a log; None if nothing lies after it.

    Finds where a time begins in a log: the first batch that holds a record of that time or a later one. The rule is that of
    `UnifiedLog.fetchOffsetByTimestamp`. Time indexes only say where to begin to look, so the result is the same without.

    Args:
        segments: of the log, one at least.
        log_start: its start by the broker's checkpoint; below 0: not known.

    Raises:
        OSError: a segment is gone or cannot be read.
    """
    if start is StartFrom.LATEST:
        return None
    first = max(log_start, log_start_offset(segments[0].directory, tuple(segments)))
    boundary = beginning(segments[0]) if first <= segments[0].base_offset else find_offset(segments, first, buffer)
    if start is StartFrom.EARLIEST:
        return boundary
    if start is StartFrom.ACTIVE:
        return boundary if boundary.segment is segments[-1] else beginning(segments[-1])
    own = [segment for segment in segments if segment.base_offset >= boundary.segment.base_offset]
    return find_time(boundary, own, int(start), buffer)


def find_time(begin: BatchBoundary, segments: Sequence[Segment], timestamp: int, buffer: Bytes) -> BatchBoundary | None:
    """The boundary before the first batch whose largest timestamp is at least ``timestamp`` (Unix milliseconds); None if there is none.

    Args:
        begin: batches before it are deleted records.
        segments: from that of ``begin`` on.

    Raises:
        OSError: a segment is gone or cannot be read.
    """
    for segment, following in pairwise([*segments, None]):
        assert segment is not None
        if following is not None and is_older(segment, following.base_offset, timestamp):
            continue
        from_there = (begin.position, begin.next_offset) if segment is begin.segment else (0, segment.base_offset)
        found = _in_segment(segment, from_there, timestamp, buffer)
        if found is not None:
            return found
    return None


def is_older(segment: Segment, next_base: int, timestamp: int) -> bool:
    """Whether the time index of a closed segment says that all its records are older."""
    largest = indexed_largest(segment.directory, segment.base_offset, next_base)
    return largest is not None and largest[0] < timestamp and is_there(segment, *largest)


def _in_segment(segment: Segment, begin: tuple[int, int], timestamp: int, buffer: Bytes) -> BatchBoundary | None:
    with segment.open() as file:
        position, next_offset = max(begin, start_near(file, _older_upto(segment, timestamp) + 1))
        for at, scanned in walk_on(file, position, next_offset, buffer, spare_cache=True):
            items = np.flatnonzero(scanned.batches.max_timestamp >= timestamp)
            if len(items):
                batches, item = scanned.batches, int(items[0])
                return BatchBoundary(segment, at + int(batches.positions[item]), int(batches.base_offset[item]), -1, b"", 0)
    return None


def _older_upto(segment: Segment, timestamp: int) -> int:
    """The offset up to which the time index says that no record has the time; below the segment's own if it says nothing."""
    before = segment.base_offset - 1
    try:
        data = read_small(segment.path.with_name(segment_file_name(segment.base_offset, FileKind.TIMEINDEX)), INDEX_BYTES)
    except (FormatError, OSError):  # a new segment has none, and that of a deleted one is renamed
        return before
    entries = read_time_entries(data)
    count = int(np.searchsorted(entries.timestamps, timestamp))
    if not count:
        return before
    largest, offset = int(entries.timestamps[count - 1]), segment.base_offset + int(entries.offsets[count - 1])
    return offset if is_there(segment, largest, offset) else before


def _written(segment: Segment) -> int:
    """How much of an active segment is written: of a preallocated one, that is not all."""
    with segment.open() as file:
        return written_end(file, 0)


def cut(excerpt: Excerpt, excerpt_bytes: int) -> Iterator[Excerpt]:
    """An excerpt cut at multiples of ``excerpt_bytes``; nothing of an empty one."""
    begin = excerpt.begin
    while begin < excerpt.end:
        end = min(excerpt.end, (begin // excerpt_bytes + 1) * excerpt_bytes)
        yield replace(excerpt, begin=begin, end=end, bytes=end - begin)
        begin = end


def topics_of(log_dirs: Sequence[LogDir]) -> list[str]:
    """The names of the topics that have a live partition, sorted. Raises as `partitions_with_start`."""
    return sorted({partition.topic for partition, _ in partitions_with_start(log_dirs, EVERYTHING_SELECTED)})


def _listed_anew(log_dir: LogDir) -> tuple[Iterable[Partition], OffsetCheckpoint]:
    return list_partitions(log_dir, topic_id_or_unreadable), load_offset_checkpoint(log_dir, LOG_START_OFFSET_CHECKPOINT)


def partitions_with_start(
    log_dirs: Sequence[LogDir],
    selection: Wants,
    unreadable: Unreadable = refuse,
    listed: Callable[[LogDir], tuple[Iterable[Partition], OffsetCheckpoint]] = _listed_anew,
) -> Iterator[tuple[Partition, int]]:
    """The live partitions that are wanted, each with the log start offset by its broker's checkpoint (below 0: none there, or not known).

    Args:
        listed: what lists a log dir, with that checkpoint. Raises OSError: it cannot be read.

    Raises:
        AgentError: a log dir cannot be read, or whatever ``unreadable`` raises of a partition's own file.
    """
    for log_dir in log_dirs:
        try:
            partitions, starts = listed(log_dir)
        except OSError as error:
            raise AgentError(f"log dir {log_dir.path} cannot be read: {error}") from error
        for partition in sorted(partitions, key=lambda each: (each.topic, each.partition)):
            if partition.state is DirState.LIVE and selection.has(partition.topic, partition.partition):
                if partition.topic_id == UNREADABLE:
                    unreadable(partition, WHY_UNREADABLE)
                else:
                    yield partition, starts.of(partition)


class Wants(Protocol):
    """Says which partitions are wanted, as `Selection` does."""

    def has(self, topic: str, partition: int) -> bool:
        """Whether a partition is wanted."""


def topic_id_or_unreadable(directory: Path) -> str:
    """The topic id of a partition's directory, or `UNREADABLE`."""
    found = read_topic_id(directory)
    return UNREADABLE if found is None else found


def open_given_dirs(paths: Sequence[Path]) -> tuple[LogDir, ...]:
    """The log dirs at or below these paths, each once. One without ``meta.properties``, a copy, counts if it has directories of partitions.

    Raises:
        LogDirError: one does not exist, cannot be read or is no log dir, or they are of several clusters; names the option ``log_dirs``.
    """
    below = find_log_dirs(paths)
    if below.unsearched:
        raise LogDirError(f"option log_dirs: {unsearched_words(below.unsearched)}")
    found = tuple({path.resolve(): _open(path) for path in below.paths}.values())
    if len(known_clusters(each.cluster_id for each in found)) > 1:
        named = ", ".join(f"{each.path} is of {each.cluster_id}" for each in found if each.cluster_id)
        raise LogDirError(f"option log_dirs: give log dirs of one cluster; {named}")
    return found


def _open(path: Path) -> LogDir:
    try:
        return read_identity(path)
    except LogDirError as error:
        if _may_exist(path / META_PROPERTIES) or not _has_partitions(path):
            raise LogDirError(f"option log_dirs: {error}") from error
    except OSError as error:
        raise LogDirError(f"option log_dirs: {path} cannot be read: {error.strerror or error}") from error
    log.warning("option log_dirs: %s has no %s: it is read as a part of a copied log dir", path, META_PROPERTIES)
    return LogDir(path, UNKNOWN_BROKER, "", None)


def _may_exist(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a directory that may not be read does not show it
        return True


def _has_partitions(path: Path) -> bool:
    try:
        return any(parse_partition_dir(each.name) is not None and each.is_dir() for each in path.iterdir())
    except OSError:  # what is in the way was said already
        return False


def copied_in_part(directory: Path, segments: Iterable[Segment]) -> str:
    """What shows that a log at rest lacks a segment, in words; "" if nothing does. Of one whose broker runs it may be a deletion.

    Raises:
        OSError: the directory is gone or cannot be read.
    """
    alone = indexes_alone(directory, segments)
    return f"{directory} has {format_list(alone, _INDEXES_NAMED)} without the .log beside" if alone else ""


def wanted_partitions(log_dirs: Iterable[LogDir], selection: Selection, *, refuses: bool = True) -> tuple[Partition, ...]:
    """The wanted live partitions of these log dirs.

    The log dirs that a reader of records was given: checked, so that a wrong one fails before anything is read.

    The coordinators' topics are read only if ``topics`` names them, as consumers with a pattern leave them out. The log of the cluster's
    metadata never is: it may hold passwords.

    Args:
        refuses: whether it is an error that something is not there that the options name.

    Raises:
        UsageError: nothing of what the options name is there; names some of what is.
        LogDirError: a log dir or a wanted partition cannot be read: its records would be missing.
    """
    there: list[Partition] = []
    for log_dir in log_dirs:
        try:
            there += [each for each in list_partitions(log_dir, topic_id_or_unreadable) if each.state is DirState.LIVE]
        except OSError as error:
            raise LogDirError(f"option log_dirs: {log_dir.path} cannot be read: {error.strerror or error}") from error
    if METADATA_TOPIC in selection.topics:
        raise UsageError(f"option topics: {METADATA_TOPIC} is not read, because it may hold passwords; segtail dump shows it without them")
    hidden = {METADATA_TOPIC, *INTERNAL_TOPICS.difference(selection.topics)}
    found = tuple(each for each in there if each.topic not in hidden and selection.has(each.topic, each.partition))
    missing = set(selection.topics).difference(each.topic for each in there)
    if refuses and (missing or (not found and (selection.topics or selection.pattern or selection.partitions))):
        raise UsageError(_nothing(selection, sorted(missing), sorted({each.topic for each in there} - hidden)))
    for each in found:
        if each.topic_id == UNREADABLE:
            raise LogDirError(f"option log_dirs: {each.path} cannot be read: {WHY_UNREADABLE}; run as the broker's user, or leave it out")
    return found


def _nothing(selection: Selection, missing: Sequence[str], topics: Sequence[str]) -> str:
    if missing:
        option = f"option topics: no partition of {', '.join(missing[:_NAMED])} is in the log dirs"
    elif selection.pattern:
        option = f"option topicsPattern: {selection.pattern!r} fits no topic in the log dirs as a whole"
    else:
        option = "option partitions: no such partition is in the log dirs"
    more = f" and {len(topics) - _NAMED} more" if len(topics) > _NAMED else ""
    return f"{option}; they have {', '.join(topics[:_NAMED]) or 'no topics'}{more}"
