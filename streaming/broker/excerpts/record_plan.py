"""Plans a read of records: of which partitions of the given log dirs, and from which offset to which.

What ends a log is the high watermark that its broker wrote last, up to 5 s ago, so a lower bound; or, of a broker that does not run and if
that is asked for, the last batch. Readers of committed records stop before the first transaction that is open there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from streaming.broker.disk.locate import find_offset, without_replaced
from streaming.broker.disk.logdirs import Partition
from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import Segment, list_segments, log_start_offset, read_leader_epochs
from streaming.broker.disk.segment_walk import SegmentReader, Window
from streaming.broker.excerpts.excerpt_listing import copied_in_part, is_older, open_given_dirs, wanted_partitions
from streaming.broker.excerpts.record_ends import ENDLESS, decided_end, ends_of_dir
from streaming.broker.excerpts.record_ranges import RecordRange
from streaming.broker.protocol.consumer_messages import Selection
from streaming.common.start_from import StartFrom
from streaming.common.units import format_list
from streaming.errors import FormatError, LogDirError, UsageError
from streaming.kafka.formats.entries import read_entry_times
from streaming.kafka.formats.records import MAX_RECORDS_BYTES
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

_NAMED = 10


def plan_records(wanted: WantedRecords) -> tuple[RecordRange, ...]:
    """The ranges in the order of topics, partitions and offsets; one for each segment that has something.

    Raises:
        UsageError: an option is not possible as given, or a log dir cannot be read; names both.
    """
    log_dirs = open_given_dirs(wanted.log_dirs)
    ends = {log_dir.path: ends_of_dir(log_dir, to_end=wanted.to_end) for log_dir in log_dirs}
    buffer, ranges, unknown, unwritten, after = window(), list[RecordRange](), list[str](), list[Path](), list[str]()
    partitions = choose_replicas(wanted_partitions(log_dirs, wanted.selection))
    check_named("startingOffsets", wanted.begins, partitions)
    check_named("endingOffsets", wanted.ends, partitions)
    for partition in partitions:
        own = ends[partition.log_dir.path]
        stop = own.stop_of(partition)
        try:
            if own.rests:
                end = _check_whole(wanted, partition, stop, buffer)
                after += [f"{partition.path.name} from offset {stop} to {end - 1}"] if 0 <= stop < end else []
            if stop < 0:
                _check_bounds(wanted, partition, 0, 0)
                unknown.append(partition.path.name)
                if own.rests and any(each.size for each in list_segments(partition.path)):
                    unwritten.append(partition.path)
                continue
            ranges += _ranges(wanted, partition, max(0, own.starts.of(partition)), stop, buffer)
        except OSError as error:
            raise LogDirError(f"option log_dirs: {partition.path} cannot be read: {error.strerror or error}") from error
    if unwritten and not ranges:
        raise UsageError(
            f"option until: of {unwritten[0]} no high watermark was written before its broker ended, so it is not known which records "
            "were replicated; until=end reads the log to its end"
        )
    if after:
        log.warning("not read is what comes after the high watermark: %s; until=end reads it", format_list(after, _NAMED))
    if unknown:
        log.warning(
            "nothing is read of %s: no high watermark of these partitions was written; of a broker that does not run, until=end reads them",
            format_list(unknown, _NAMED),
        )
    return tuple(ranges)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRecords:
    """What to read. ``timestamp``: begin at the first record of this time or later, Unix milliseconds, -1 for ``start_from``;
    ``committed``: of committed transactions only; ``to_end``: beyond the high watermark where no broker runs;
    ``fails_on_loss``: whether a log dir that was copied in part is an error; ``begins``, ``ends``: offsets of each topic and partition that
    bound what is read, below 0 for none.
    """

    log_dirs: tuple[Path, ...]
    selection: Selection
    start_from: StartFrom
    timestamp: int
    committed: bool
    to_end: bool
    fails_on_loss: bool
    begins: Mapping[tuple[str, int], int] = field(default_factory=dict)
    ends: Mapping[tuple[str, int], int] = field(default_factory=dict)

    def bounds(self, partition: Partition) -> tuple[int, int]:
        """The offsets that are given of a partition, below 0 for none."""
        name = partition.topic, partition.partition
        return self.begins.get(name, -1), self.ends.get(name, -1)


def choose_replicas(partitions: Iterable[Partition], *, logs: bool = True) -> tuple[Partition, ...]:
    """One replica of each partition: the one with the highest leader epoch, of these the one whose log has the most.

    A replica that was cut off from the others may have a longer log, whose end was never replicated. Its leader epoch shows that.

    Args:
        logs: whether the log says which.

    Raises:
        LogDirError: the same name is of two topics, one of which was deleted; or a directory cannot be read.
    """
    copies: dict[tuple[str, int], list[Partition]] = {}
    for each in partitions:
        copies.setdefault((each.topic, each.partition), []).append(each)
    return tuple(_choose(copies[name], logs=logs) for name in sorted(copies))


def _choose(copies: list[Partition], *, logs: bool) -> Partition:
    if len(copies) == 1:
        return copies[0]
    by_id = {each.topic_id: each for each in copies if each.topic_id}
    if len(by_id) > 1:
        named = ", ".join(f"{topic_id} in {each.path}" for topic_id, each in by_id.items())
        raise LogDirError(
            f"option log_dirs: topic {copies[0].topic} has several topic ids: {named}; it was deleted and made again, so leave one of the "
            "log dirs out, or select other topics"
        )
    try:
        chosen = max(copies, key=_progress)
    except OSError as error:
        raise LogDirError(f"option log_dirs: {error.filename} cannot be read: {error.strerror or error}") from error
    others = ", ".join(str(each.path) for each in copies if each is not chosen)
    if logs:
        log.warning("several replicas of %s-%d are given: %s is read, and not %s", chosen.topic, chosen.partition, chosen.path, others)
    return chosen


def _progress(partition: Partition) -> tuple[int, int, int]:
    """Its leader epoch, and how far its log goes: the base offset of its active segment, and the bytes in it."""
    epochs = read_leader_epochs(partition.path)
    segments = list_segments(partition.path)
    last = (segments[-1].base_offset, segments[-1].size) if segments else (-1, 0)
    return (epochs[-1].epoch if epochs else -1, *last)


def check_named(option: str, given: Mapping[tuple[str, int], int], partitions: Iterable[Partition]) -> None:
    """Check that offsets are given of exactly these partitions, or of none.

    Raises:
        UsageError: of others, or not of all; names some.
    """
    there = {(each.topic, each.partition) for each in partitions}
    for wrong, why in ((given.keys() - there, "is not there, or not selected"), (there - given.keys(), "has no offset")):
        if given and wrong:
            names = format_list([f"{topic}-{number}" for topic, number in sorted(wrong)], _NAMED)
            raise UsageError(f"option {option}: {names} {why}; give one of each partition that is read")


def _check_whole(wanted: WantedRecords, partition: Partition, stop: int, buffer: Bytes) -> int:
    """Raise, or say so, where records of a log at rest would be missing without a word; returns its end, 0 if it is not needed.

    Args:
        stop: up to where the log is known to be replicated, below 0 where that is not known.
    """
    segments = list_segments(partition.path)
    if lost := copied_in_part(partition.path, segments):
        lost = f"{lost}: it was copied in part"
        if wanted.fails_on_loss:
            raise LogDirError(f"option log_dirs: {lost}; copy it whole, or read what is there with failOnDataLoss=false")
        log.warning("deleted: %s; the query goes on, as failOnDataLoss is false", lost)
    if not segments or stop == ENDLESS:
        return 0
    end = find_offset(segments, None, buffer).next_offset
    if end < stop:
        log.warning(
            "%s ends at offset %d, or is damaged there, and offsets up to %d were replicated: it was copied in part, or has lost its end",
            *(partition.path, end, stop),
        )
    return end


def _check_bounds(wanted: WantedRecords, partition: Partition, start: int, end: int) -> None:
    """Check that the offsets that the options name of a partition can be read, as Spark's Kafka source does.

    Args:
        start, end: of what can be read of it.

    Raises:
        UsageError: some cannot, and loss fails the query; names option, partition and offset.
    """
    name = f"{partition.topic}-{partition.partition}"
    begins, ends = wanted.bounds(partition)
    if 0 <= ends < begins:
        raise UsageError(f"options startingOffsets and endingOffsets: {name} would begin at offset {begins}, after its end at {ends}")
    for option, given in (("startingOffsets", begins), ("endingOffsets", ends)):
        if given > end:
            missing = f"it can be read up to offset {end}, and {given} is asked for"
        elif 0 <= given < start:
            missing = f"it begins at offset {start}, and {given} is asked for: what was before is deleted"
        else:
            continue
        if wanted.fails_on_loss:
            raise UsageError(f"option {option}: {name}: {missing}; failOnDataLoss=false reads what is there")
        log.warning("option %s: %s: %s; the query goes on with what is there, as failOnDataLoss is false", option, name, missing)


def _ranges(wanted: WantedRecords, partition: Partition, start: int, stop: int, buffer: Bytes) -> Iterator[RecordRange]:
    segments = without_replaced(list_segments(partition.path), buffer)
    if not segments:
        _check_bounds(wanted, partition, start, start)
        return
    begins, ends = wanted.bounds(partition)
    start = max(start, log_start_offset(partition.path, tuple(segments)))
    end = decided_end(partition, segments, stop, buffer) if wanted.committed else stop
    if max(begins, ends) >= 0:
        _check_bounds(wanted, partition, start, min(end, find_offset(segments, None, buffer).next_offset))
    start = max(start, begins)
    end = min(end, ends) if ends >= 0 else end
    begin = _begin(wanted, segments, start, end, buffer)
    yield from ranges_between(partition, segments, begin, end, stop=stop, committed=wanted.committed)


def _begin(wanted: WantedRecords, segments: Sequence[Segment], start: int, end: int, buffer: Bytes) -> int:
    if wanted.timestamp >= 0:
        found = first_offset_at(segments, wanted.timestamp, start, buffer)
        return end if found is None else found
    return max(start, segments[-1].base_offset) if wanted.start_from is StartFrom.ACTIVE else start


def first_offset_at(segments: Sequence[Segment], timestamp: int, start: int, buffer: Bytes) -> int | None:
    """The offset of the first record at ``start`` or after it whose timestamp is ``timestamp`` or later; None if there is none.

    The time index of a closed segment says that it can be passed over, if the log proves what the index says. Everything else is read.

    Raises:
        OSError: a segment is gone or cannot be read.
    """
    for number, segment in enumerate(segments):
        following = segments[number + 1] if number + 1 < len(segments) else None
        if following is not None and (following.base_offset <= start or is_older(segment, following.base_offset, timestamp)):
            continue
        found = _first_in(segment, timestamp, start, buffer, growing=following is None)
        if found is not None:
            return found
    return None


def _first_in(segment: Segment, timestamp: int, start: int, buffer: Bytes, *, growing: bool) -> int | None:
    with SegmentReader.of(segment, lambda _flaw: None, buffer, growing=growing, crcs=False) as reader:
        for window in reader.windows(reader.proven_start(start)):
            batches = window.batches
            for item in np.flatnonzero((batches.max_timestamp >= timestamp) & (batches.last_offset >= start)).tolist():
                found = _first_of(window, item, timestamp, start)
                if found is not None:
                    return found
    return None


def _first_of(window: Window, item: int, timestamp: int, start: int) -> int | None:
    at, size = int(window.batches.positions[item]), int(window.batches.size[item])
    try:
        for offset, time in read_entry_times(window.buffer[at : at + size].data, MAX_RECORDS_BYTES):
            if time >= timestamp and offset >= start:
                return offset
    except FormatError:  # damage is said when records are read: here the batch counts from its beginning
        return max(start, int(window.batches.base_offset[item]))
    return None


def ranges_between(
    partition: Partition, segments: Sequence[Segment], begin: int, end: int, *, stop: int, committed: bool
) -> Iterator[RecordRange]:
    """The ranges of a log between two offsets, one for each segment that has something; ``stop``, ``committed``: as in `RecordRange`."""
    for segment, following in pairwise([*segments, None]):
        assert segment is not None
        first, last = max(begin, segment.base_offset), end if following is None else min(end, following.base_offset)
        if first < last and segment.size:
            yield RecordRange(
                directory=partition.path,
                topic=partition.topic,
                partition=partition.partition,
                begin=first,
                end=last,
                stop=stop,
                committed=committed,
                size=segment.size,
            )
