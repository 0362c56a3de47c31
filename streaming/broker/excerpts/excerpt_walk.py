"""Walks the whole and sound batches of an excerpt, window by window, and says what of it was not there to be read."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from streaming.broker.disk.locate import scan_on, start_at, start_near
from streaming.broker.disk.logdirs import LogDir, Partition, read_topic_id
from streaming.broker.disk.scanning import without_half_written, written_end
from streaming.broker.disk.segment_files import OpenSegment, Segment, list_segments
from streaming.broker.protocol.excerpt_messages import Excerpt
from streaming.errors import AgentError, FormatError, GoneError
from streaming.kafka.formats.names import DirState, parse_partition_dir
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.pieces import Scanned
from streaming.kafka.scan.sums import sum_ranges
from streaming.kafka.scan.transaction_steps import AppendTimes
from streaming.kafka.scan.walk import Bytes, Stop

log = logging.getLogger(__name__)

LEAST_BYTES = 1 << 20
"""So much is read at once at least: the last batches of an excerpt may end long after it."""

_MOST_LOGGED = 100
"""So many places of one task are logged one by one: a damaged disk may have a million."""


@dataclass(frozen=True, slots=True)
class OpenExcerpt:
    """An excerpt with the open file of its segment, and the log's ``segments`` as they are listed now; ``item``: the index of its own."""

    excerpt: Excerpt
    partition: Partition
    segments: Sequence[Segment]
    item: int
    file: OpenSegment

    @property
    def active(self) -> bool:
        """Whether the log ends in this segment: a batch that is not complete yet is none that is damaged."""
        return self.item == len(self.segments) - 1

    def times(self) -> AppendTimes:
        """The times between which its batches were appended: not before the last write to the previous segment."""
        return AppendTimes.recorded(self.segments[self.item - 1].modified_ms if self.item else 0, self.file.modified_ms())


@contextmanager
def opened(log_dirs: Sequence[LogDir], excerpt: Excerpt) -> Iterator[OpenExcerpt]:
    """Open the segment of an excerpt for a block.

    Raises:
        GoneError: it is not there any more.
        AgentError: the excerpt is not valid, or the segment cannot be read now, also in the block.
    """
    if min(excerpt.begin, excerpt.segment) < 0:
        raise AgentError("an excerpt begins at a position and a base offset from 0 on")
    partition = partition_of(log_dirs, excerpt)
    try:
        segments = list_segments(partition.path)
        item = next((item for item, each in enumerate(segments) if each.base_offset == excerpt.segment), None)
        if item is None:
            raise GoneError(f"{name_of(excerpt)} is not there any more")
        file = OpenSegment(segments[item].path, excerpt.segment)
    except FileNotFoundError as error:
        raise GoneError(f"{name_of(excerpt)} is not there any more") from error
    except OSError as error:
        raise AgentError(f"{name_of(excerpt)} cannot be read: {error}") from error
    with file:
        try:
            yield OpenExcerpt(excerpt, partition, segments, item, file)
        except OSError as error:
            raise AgentError(f"{name_of(excerpt)} cannot be read: {error}") from error


def partition_of(log_dirs: Sequence[LogDir], excerpt: Excerpt) -> Partition:
    """The partition of an excerpt.

    Raises:
        GoneError: there is none, or another one of that name.
        AgentError: no partition can have that name, or the log dir is not among these.
    """
    log_dir = next((each for each in log_dirs if str(each.path) == excerpt.log_dir), None)
    if log_dir is None:
        raise AgentError(f"log dir {excerpt.log_dir} is not among those that can be read now")
    name = f"{excerpt.topic}-{excerpt.partition}"
    parsed = parse_partition_dir(name)
    if parsed is None or (parsed.topic, parsed.partition, parsed.state) != (excerpt.topic, excerpt.partition, DirState.LIVE):
        raise AgentError(f"no partition can have the name {name!r:.100}")
    path = log_dir.path / name
    topic_id = read_topic_id(path)
    if topic_id != excerpt.topic_id:
        raise GoneError(f"{name_of(excerpt)} is not there any more")
    return Partition(log_dir, path, excerpt.topic, excerpt.partition, topic_id, DirState.LIVE)


def name_of(excerpt: Excerpt) -> str:
    """An excerpt for a message."""
    return f"segment {excerpt.segment} of {excerpt.topic}-{excerpt.partition} in {excerpt.log_dir}"


def parts_of(segment: OpenExcerpt, buffer: Bytes) -> Iterator[WalkedPart | Unread]:
    """The batches of an open excerpt, and at last what of it cannot be read, if anything.

    Opens the segment of an excerpt, by its names alone: a log dir with very many partitions is not listed for it.

    Raises:
        OSError: the file cannot be read.
    """
    excerpt, file = segment.excerpt, segment.file
    position, next_offset = max(start_at(file, excerpt.begin), start_near(file, excerpt.from_offset))
    while position < excerpt.end:
        window = buffer[: max(LEAST_BYTES, min(len(buffer), excerpt.end - position))]
        scanned = scan_on(file, position, next_offset, window, spare_cache=True)
        scanned = without_half_written(file, position, window, 0, scanned, plain=False)
        wanted, passed = _within(excerpt, position, scanned)
        if wanted is not None:
            yield WalkedPart(position, wanted)
        if passed:
            return
        if scanned.sums is not None:
            position, next_offset = position + scanned.end, scanned.sums.next_offset
        if scanned.flaw is not None or scanned.sums is None:
            unread = _unread(segment, position, next_offset, scanned)
            if unread is not None:
                yield unread
            return


@dataclass(frozen=True, slots=True)
class WalkedPart:
    """Batches of an excerpt, one at least. ``position``: of the window in the file; positions in ``scanned`` count from there.

    The bytes are in the buffer until the next part is asked for; of a batch that is larger than the buffer, only the header.
    """

    position: int
    scanned: Scanned

    @property
    def batches(self) -> Batches:
        """The batches, in order."""
        return self.scanned.batches

    @property
    def start(self) -> int:
        """Where the first batch begins in the window."""
        return int(self.scanned.batches.positions[0])


@dataclass(frozen=True, slots=True)
class Unread:
    """The rest of an excerpt, which is no batches: from ``position`` on, so many ``bytes`` of the file.

    ``next_offset``: after the batches before it; ``reason`` in words.
    """

    position: int
    bytes: int
    next_offset: int
    reason: str


def _within(excerpt: Excerpt, position: int, scanned: Scanned) -> tuple[Scanned | None, bool]:
    """The batches of a window that belong to the excerpt, and whether one is there that comes after it."""
    batches = scanned.batches
    at = batches.positions
    first = max(int(np.searchsorted(at, excerpt.begin - position)), int(np.searchsorted(batches.base_offset, excerpt.from_offset)))
    later = np.flatnonzero(batches.leader_epoch > excerpt.until_epoch)
    ends = (np.searchsorted(at, excerpt.end - position), np.searchsorted(batches.base_offset, excerpt.until_offset), *later[:1])
    end = int(min(ends))
    passed = end < len(batches)
    if first >= end:
        return None, passed
    if first == 0 and not passed:
        return scanned, False
    batches = batches.take(slice(first, end))
    reached = int(batches.positions[-1] + batches.size[-1])
    return Scanned(reached, Stop.END, None, batches, sum_ranges(batches, np.zeros(1, np.intp))[0]), passed


def _unread(segment: OpenExcerpt, position: int, next_offset: int, scanned: Scanned) -> Unread | None:
    """What is there from ``position`` on, where no batch follows."""
    excerpt, file, reason = segment.excerpt, segment.file, scanned.flaw
    begin, end = max(position, excerpt.begin), min(excerpt.end, file.size())
    if reason is None and not segment.active:
        written = written_end(file, position) if scanned.stop is Stop.ZEROS else end
        if written > position:
            reason, end = "the segment ends inside a batch although the log goes on after it", min(end, written)
    if reason is None or begin >= end:
        return None
    return Unread(begin, end - begin, next_offset, reason)


class RecordDamage:
    """The damage that one task met. Each place is logged with file and position, and counted.

    The place is in the text of a message: in a Python worker of Spark no formatter is set up that writes other fields.
    """

    def __init__(self, on_damage: OnDamage) -> None:
        self.on_damage = on_damage
        self.places = 0
        """So many places were damaged."""
        self._last: tuple[Path, int | None] | None = None

    def found(self, path: Path, position: int | None, what: str) -> None:
        """Report a place that is damaged. Several damages of the same batch are reported once.

        Raises:
            FormatError: damage makes the query fail.
        """
        if (path, position) == self._last:
            return
        self._last = path, position
        place = str(path) if position is None else f"{path}: position {position}"
        if self.on_damage is OnDamage.FAIL:
            raise FormatError(f"{place}: {what}; with the option mode=PERMISSIVE what can be read is read")
        self.places += 1
        if self.places <= _MOST_LOGGED:
            log.warning("damaged: %s: %s", place, what)

    def close(self) -> None:
        """Say how much it was."""
        if self.places:
            kept = "records of it that can be read were read" if self.on_damage is OnDamage.READ else "damaged batches were left out"
            log.warning("%d damaged places in this task's segments; %s", self.places, kept)


class OnDamage(StrEnum):
    """What becomes of a damaged batch."""

    READ = "read"  # the records of it that can be read come
    LEAVE_OUT = "leave out"
    FAIL = "fail"
