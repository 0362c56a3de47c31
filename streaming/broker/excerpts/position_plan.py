"""Plans how far logs can be read from positions on: whole batches only, fair over logs, as a function of the disk.

Nothing is remembered that decides: a reader that plans again from the same positions gets the same ends, or later ones.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

from streaming.broker.disk.locate import BatchBoundary, find_offset, start_at, walk_on, window, without_replaced
from streaming.broker.disk.logdirs import (
    NOTHING_WRITTEN,
    LogDir,
    OffsetCheckpoint,
    Partition,
    TopicIds,
    load_offset_checkpoint,
    partitions_by_name,
)
from streaming.broker.disk.opening import Calling
from streaming.broker.disk.segment_files import Segment, list_segments, log_start_offset, read_leader_epochs
from streaming.broker.excerpts.excerpt_listing import UNREADABLE, Unreadable, Wants, cut, partitions_with_start, refuse, start_of
from streaming.broker.protocol.consumer_messages import Selection
from streaming.broker.protocol.excerpt_messages import EVERYTHING, Excerpt
from streaming.common.log_positions import NOT_KNOWN, LogName, Position, Positions
from streaming.common.start_from import StartFrom
from streaming.kafka.formats.checkpoint_files import EpochEntry
from streaming.kafka.formats.names import LOG_START_OFFSET_CHECKPOINT
from streaming.kafka.scan.walk import Bytes
from streaming.rules.position_rule import Resumed, epochs_below, resume

log = logging.getLogger(__name__)

_SETTLED_NS = 2_000_000_000
"""If a directory was changed later than so long ago, a later change may have the same time."""

End = Callable[["OpenLog"], int]
"""Up to which offset a log may be read at most."""


@dataclass(frozen=True, slots=True)
class OpenLog:
    """A log as it is listed now. ``served``: the first offset that it serves; ``start``: where the batch with that one begins; ``end``:
    after its last whole batch."""

    partition: Partition
    segments: Sequence[Segment]
    epochs: Sequence[EpochEntry]
    served: int
    start: int
    end: int

    @classmethod
    def open(cls, partition: Partition, stored_start: int, buffer: Bytes) -> "OpenLog | None":
        """The log of a partition; None if it has no segment.

        Args:
            stored_start: its log start offset by its broker's checkpoint, below 0 if none is there.

        Raises:
            OSError: it is gone, or cannot be read now.
        """
        epochs = read_leader_epochs(partition.path)
        segments = without_replaced(list_segments(partition.path), buffer)
        if not segments:
            return None
        served = max(stored_start, log_start_offset(partition.path, tuple(segments), epochs))
        start = segments[0].base_offset if served <= segments[0].base_offset else find_offset(segments, served, buffer).next_offset
        return cls(partition, segments, epochs, served, start, max(start, find_offset(segments, None, buffer).next_offset))

    @property
    def name(self) -> LogName:
        """Its name among the logs of its broker."""
        return LogName(self.partition.topic, self.partition.partition)

    def resumed(self, before: Position | None, begin: int) -> Resumed:
        """Where a reader goes on that was at ``before``, or begins at ``begin`` if it was not in this log yet."""
        if before is not None and before.topic_id == self.partition.topic_id:
            return resume(before, self.epochs, self.start, self.end)
        return Resumed(max(begin, self.start), deleted=max(self.start - begin, 0))

    def first(self, start: StartFrom | int, end: int, buffer: Bytes) -> int:
        """The offset at which a reader begins that starts so, and may read up to ``end``."""
        if start is StartFrom.LATEST:
            return end
        boundary = start_of(self.segments, self.served, start, buffer)
        return end if boundary is None else boundary.next_offset

    def excerpts(self, begin: int, to: Position, most_bytes: int, buffer: Bytes) -> Iterator[Excerpt]:
        """What lies between an offset and a position, in its order, a segment at a time, cut at multiples of ``most_bytes``."""
        if begin >= min(to.next_offset, self.end):
            return
        at, until = find_offset(self.segments, begin, buffer), find_offset(self.segments, to.next_offset, buffer)
        for number, segment in enumerate(self.segments):
            following = self.segments[number + 1].base_offset if number + 1 < len(self.segments) else EVERYTHING
            if segment.base_offset < at.segment.base_offset or segment.base_offset >= to.next_offset:
                continue
            from_position = at.position if segment is at.segment else 0
            end = until.position if segment is until.segment else segment.size  # what follows is for later, also if it is damaged
            yield from cut(
                Excerpt(
                    broker=self.partition.log_dir.broker,
                    log_dir=str(self.partition.log_dir.path),
                    topic=self.partition.topic,
                    partition=self.partition.partition,
                    topic_id=self.partition.topic_id,
                    segment=segment.base_offset,
                    begin=from_position,
                    end=end,
                    bytes=end - from_position,
                    from_offset=max(begin, segment.base_offset),
                    until_offset=min(to.next_offset, following),
                    until_epoch=to.leader_epoch if to.leader_epoch >= 0 else EVERYTHING,
                ),
                most_bytes,
            )


class KnownLogs:
    """Log dirs as they were listed, for a caller that lists them again and again. It only spares work: what stays is parsed once, and a log
    that is read to its end is not opened as long as its directory and its active segment stay as they are. Thread-safe.
    """

    def __init__(self) -> None:
        self.rests: dict[Path, _Rests] = {}
        """By the path of a log. It is the same for all readers, so one that is shared is right for each of them."""
        self._dirs: dict[Path, _KnownDir] = {}

    def partitions(self, log_dirs: Sequence[LogDir], wanted: Wants, unreadable: Unreadable = refuse) -> list[tuple[Partition, int]]:
        """The wanted live partitions, each once for each broker. Raises as `partitions_with_start`.

        Where one is gone that was there before, all are listed again: it may have moved to a log dir that was listed before it did.
        """
        vanished: list[str] = []
        found = list(partitions_with_start(log_dirs, wanted, unreadable, partial(self._listed, vanished)))
        if vanished:
            found = list(partitions_with_start(log_dirs, wanted, unreadable, partial(self._listed, vanished)))
        return list({(each.log_dir.broker, each.topic, each.partition): (each, start) for each, start in found}.values())

    def _listed(self, vanished: list[str], log_dir: LogDir) -> tuple[Iterable[Partition], OffsetCheckpoint]:
        known = self._dirs.setdefault(log_dir.path, _KnownDir())
        with known.lock:
            before, known.partitions = known.partitions, partitions_by_name(log_dir, known.topic_id, known.partitions)
            gone = before.keys() - known.partitions.keys()
            vanished += gone
            for name in gone:
                self.rests.pop(before[name].path, None)
            known.topic_ids.keep({each.path for each in known.partitions.values()})
            known.starts = load_offset_checkpoint(log_dir, LOG_START_OFFSET_CHECKPOINT, known.starts)
            return known.partitions.values(), known.starts


@dataclass(slots=True)
class _KnownDir:
    lock: threading.Lock = field(default_factory=threading.Lock)
    topic_ids: TopicIds = field(default_factory=TopicIds)
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    starts: OffsetCheckpoint = NOTHING_WRITTEN

    def topic_id(self, directory: Path) -> str:
        found = self.topic_ids.read(directory)
        return UNREADABLE if found is None else found


def raised(_: Partition, error: OSError) -> NoReturn:
    """Plan nothing if one log cannot be read."""
    raise error


class _Stamp(NamedTuple):
    """What a log had before it was listed: its directory's time, and its log start offset by its broker's checkpoint."""

    directory_ns: int
    stored_start: int


@dataclass(frozen=True, slots=True)
class _Rests:
    """A log that was read to its end, with its ``active`` segment as it was listed: whatever was appended since then differs from it."""

    active: Segment
    path: str
    position: Position
    stamp: _Stamp

    def still(self, partition: Partition, at: Position | None, stored_start: int) -> bool:
        """Whether nothing has changed for a reader at ``at``."""
        if at is None or at[:-1] != self.position[:-1] or partition.topic_id != at.topic_id:  # wherever it began
            return False
        try:
            with Calling(partition.path):
                directory, active = os.stat(partition.path), os.stat(self.path)  # noqa: PTH116  # of each log, at each plan
        except OSError:
            return False
        now = _Stamp(directory.st_mtime_ns, stored_start), active.st_size, active.st_ino
        return now == (self.stamp, self.active.size, self.active.identity.inode)


@dataclass(slots=True)
class PositionPlanner:
    """Plans for one reader of one broker's logs.

    ``start``: where the logs begin that are there at the first plan; later ones are read from their first offset. ``begins``: where some
    begin whatever ``start`` says, an offset or an end of the log. ``available``: up to where each log could be read at the last plan.
    ``known``: spares work. ``unreadable``: is called with a log that cannot be read, which stays where it is.
    """

    start: StartFrom | int
    end_of: End
    begins: Mapping[LogName, int | StartFrom] = field(default_factory=dict)
    available: dict[LogName, Position] = field(default_factory=dict)
    clock_ns: Callable[[], int] = time.time_ns
    known: KnownLogs = field(default_factory=KnownLogs)
    unreadable: Callable[[Partition, OSError], object] = raised

    def plan(
        self, partitions: Iterable[tuple[Partition, int]], at: Positions, budget: int | None, *, first: bool
    ) -> dict[LogName, Position]:
        """The position of each of these logs after the next part of it; of others as they are in ``at``.

        Args:
            partitions: with their log start offsets by their broker's checkpoint; each log once.
            budget: bytes of all logs together, shared out evenly; a log with anything to read gets one batch at least. None: no bound.
            first: nothing was planned yet.

        Raises:
            OSError: a log cannot be read now.
        """
        buffer, ends, open_logs, rested = window(), dict(at), list[_Grown](), self.known.rests
        start = self.start if first else StartFrom.EARLIEST
        self.available = dict(at)
        for partition, stored_start in partitions:
            name = LogName(partition.topic, partition.partition)
            rests = rested.get(partition.path)
            if rests is not None and rests.still(partition, at.get(name), stored_start):
                continue
            try:
                listed = os.stat(partition.path).st_mtime_ns  # noqa: PTH116  # before it is listed: what comes after that changes it
                opened = OpenLog.open(partition, stored_start, buffer)
                if opened is not None:
                    open_logs.append(self._grown(opened, at.get(name), start, buffer, _Stamp(listed, stored_start)))
            except FileNotFoundError as error:  # it was deleted after it was listed
                log.info("log is left out", extra={"path": str(partition.path), "error": str(error)})
            except OSError as error:
                self.unreadable(partition, error)
        for each, share in zip(open_logs, _shares([each.bytes for each in open_logs], budget), strict=True):
            try:
                to = each.reach(share, buffer)
            except FileNotFoundError as error:  # retention was faster
                log.info("log is left out", extra={"path": str(each.log.partition.path), "error": str(error)})
                continue
            except OSError as error:
                self.unreadable(each.log.partition, error)
                continue
            ends[each.log.name], self.available[each.log.name] = to, each.to
            path = each.log.partition.path
            rested.pop(path, None)
            if to.next_offset == each.log.end and each.stamp.directory_ns < self.clock_ns() - _SETTLED_NS:
                active = each.log.segments[-1]
                rested[path] = _Rests(active, str(active.path), to, each.stamp)
        return ends

    def _grown(self, opened: OpenLog, before: Position | None, start: StartFrom | int, buffer: Bytes, stamp: "_Stamp") -> "_Grown":
        """What a reader at ``before`` has not read of a log."""
        topic_id, limit = opened.partition.topic_id, min(opened.end, self.end_of(opened))
        known = before is not None and before.topic_id == topic_id
        given = start if before is not None else self.begins.get(opened.name, start)
        if known:
            first = NOT_KNOWN
        elif opened.name in self.begins and type(given) is int:
            first = given
        else:
            first = opened.first(given, max(limit, opened.start), buffer)
        offset = opened.resumed(before, first).offset
        begin, end = find_offset(opened.segments, offset, buffer), max(offset, limit)
        size = sum(each.size for each in opened.segments if each.base_offset >= begin.segment.base_offset) - begin.position
        epochs = opened.epochs
        if not epochs and before is not None and known:  # it is empty, or its file was damaged: what was read had them all the same
            epochs = [EpochEntry(*each) for each in before.epochs if each[1] < offset]
        to = Position(topic_id, end, epochs_below(epochs, end), first)
        return _Grown(opened, begin, to, epochs, size if offset < end else 0, stamp)


@dataclass(frozen=True, slots=True)
class _Grown:
    """A log with ``bytes`` between ``begin`` and its end. ``to``: the position at that end. ``epochs``: of what lies below it."""

    log: OpenLog
    begin: BatchBoundary
    to: Position
    epochs: Sequence[EpochEntry]
    bytes: int
    stamp: _Stamp

    def reach(self, share: int, buffer: Bytes) -> Position:
        """The position after so many bytes: at a batch boundary before, or after the first batch."""
        if share >= self.bytes:
            return self.to
        left, position = share, self.begin.position
        for segment in self.log.segments:
            if segment.base_offset < self.begin.segment.base_offset:
                continue
            if segment.size - position > left:
                first = segment is self.begin.segment or left == share
                return self._at(_boundary(segment, position, position + left, buffer, first=first))
            left, position = left - (segment.size - position), 0
        return self.to

    def _at(self, offset: int) -> Position:
        end = min(offset, self.to.next_offset)
        return self.to._replace(next_offset=end, epochs=epochs_below(self.epochs, end))


def _boundary(segment: Segment, position: int, until: int, buffer: Bytes, *, first: bool) -> int:
    """The offset at the last batch boundary that an index leads to between two positions.

    If it leads to none: after the batch at ``position`` if that is the ``first`` one, else where the segment begins.
    """
    with segment.open() as file:
        found, offset = start_at(file, until)
        if found > position:
            return offset
        for at, scanned in walk_on(file, found, offset, buffer, spare_cache=True) if first else ():
            after = scanned.batches.positions + scanned.batches.size + at
            ends = scanned.batches.last_offset[after > position]
            if len(ends):
                return int(ends[0]) + 1
    return segment.base_offset


def _shares(sizes: Sequence[int], budget: int | None) -> list[int]:
    """How many bytes of each log are read: all that it has, as long as those are no more than an equal share of the rest of the budget."""
    if budget is None:
        return list(sizes)
    shares, left = [0] * len(sizes), budget
    for number, item in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[item] = min(sizes[item], max(left, 0) // (len(sizes) - number))
        left -= shares[item]
    return shares


@dataclass(frozen=True, slots=True)
class SelectedOrRead:
    """Logs that are selected, and those that were read before and may be so no more."""

    selection: Selection
    read: Container[LogName]

    def has(self, topic: str, partition: int) -> bool:
        """Whether it is one of them."""
        return LogName(topic, partition) in self.read or self.selection.has(topic, partition)
