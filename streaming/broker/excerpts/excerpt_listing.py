"""Lists what lies in log dirs from a start on, as excerpts that are small enough to share out."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from streaming.broker.disk.locate import BatchBoundary, beginning, find_offset, window
from streaming.broker.disk.logdirs import LogDir, Partition, list_partitions, load_offset_checkpoint, read_topic_id
from streaming.broker.disk.preallocated import written_end
from streaming.broker.disk.replay import without_replaced
from streaming.broker.disk.segment_files import Segment, list_segments, log_start_offset
from streaming.broker.excerpts.time_search import find_time
from streaming.broker.protocol.excerpt_messages import EVERYTHING, Excerpt
from streaming.broker.protocol.selection import EVERYTHING_SELECTED, Selection
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError
from streaming.kafka.formats.names import LOG_START_OFFSET_CHECKPOINT, PARTITION_METADATA, DirState
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

UNREADABLE = "?"
"""In place of a topic id that cannot be read: only those who want the partition have to know."""

WHY_UNREADABLE = f"its {PARTITION_METADATA} is damaged, or may not be read"

Unreadable = Callable[[Partition, str], None]
"""Is called with a partition that cannot be read, and why."""


def refuse(partition: Partition, why: str) -> NoReturn:
    """Read nothing if one partition cannot be read."""
    raise AgentError(f"{partition.path} cannot be read: {why}")


def list_excerpts(
    log_dirs: Sequence[LogDir], selection: Selection, start: StartFrom | int, excerpt_bytes: int, unreadable: Unreadable = refuse
) -> list[Excerpt]:
    """What of the live logs of these log dirs lies from a start on: log by log, in the order of each.

    Args:
        start: an `int` is a time, Unix milliseconds: from the first batch on that has a record of that time or later.
        excerpt_bytes: a segment is cut at multiples of it.

    Raises:
        AgentError: a log dir cannot be read, or whatever ``unreadable`` raises of a log.
    """
    return list(excerpts_of(partitions_with_start(log_dirs, selection, unreadable), start, excerpt_bytes, unreadable))


def excerpts_of(
    partitions: Iterable[tuple[Partition, int]], start: StartFrom | int, excerpt_bytes: int, unreadable: Unreadable = refuse
) -> Iterator[Excerpt]:
    """The same of partitions with their log starts (`partitions_with_start`), log by log."""
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


def partitions_with_start(
    log_dirs: Sequence[LogDir], selection: Selection, unreadable: Unreadable = refuse
) -> Iterator[tuple[Partition, int]]:
    """The live partitions that are wanted, each with the log start offset by its broker's checkpoint (below 0: none there, or not known).

    Raises:
        AgentError: a log dir cannot be read, or whatever ``unreadable`` raises of a partition's own file.
    """
    for log_dir in log_dirs:
        try:
            partitions = list_partitions(log_dir, topic_id_or_unreadable)
        except OSError as error:
            raise AgentError(f"log dir {log_dir.path} cannot be read: {error}") from error
        starts = load_offset_checkpoint(log_dir, LOG_START_OFFSET_CHECKPOINT)
        for partition in sorted(partitions, key=lambda each: (each.topic, each.partition)):
            if partition.state is DirState.LIVE and selection.has(partition.topic, partition.partition):
                if partition.topic_id == UNREADABLE:
                    unreadable(partition, WHY_UNREADABLE)
                else:
                    yield partition, starts.of(partition)


def topics_of(log_dirs: Sequence[LogDir]) -> list[str]:
    """The names of the topics that have a live partition, sorted. Raises as `partitions_with_start`."""
    return sorted({partition.topic for partition, _ in partitions_with_start(log_dirs, EVERYTHING_SELECTED)})


def topic_id_or_unreadable(directory: Path) -> str:
    """The topic id of a partition's directory, or `UNREADABLE`."""
    found = read_topic_id(directory)
    return UNREADABLE if found is None else found


def start_of(segments: Sequence[Segment], log_start: int, start: StartFrom | int, buffer: Bytes) -> BatchBoundary | None:
    """Where a start is in a log; None if nothing lies after it.

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
