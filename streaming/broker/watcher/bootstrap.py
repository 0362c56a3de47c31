"""Finds the transactions and producers of a log at an offset in the middle of it, from the log's own files.

A broker writes a snapshot of all producers at the beginning of every segment. The log is replayed from the nearest of these snapshots on,
so that a large log is not read whole (`ProducerStateManager.truncateAndReload`, `UnifiedLog.rebuildProducerState`). The remaining part may
be a whole segment, so it is replayed in pieces.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from streaming.broker.disk.locate import batches_between, scan_on, start_near
from streaming.broker.disk.opening import bytes_read
from streaming.broker.disk.producer_files import ProducerSnapshot, first_sound, list_producer_snapshots, nearest_snapshot
from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.broker.journal.cursor import TIMES_UNKNOWN
from streaming.common.arrays import Longs
from streaming.common.rows import TRANSACTION_STEPS, StartSource, Step
from streaming.errors import FormatError
from streaming.kafka.formats.producer_snapshot import ProducerState
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.producer_states import Producers
from streaming.kafka.scan.transaction_steps import AppendTimes, Steps, first_timestamps, steps_of
from streaming.kafka.scan.walk import Bytes
from streaming.rules.transaction_fold import NO_TRANSACTIONS, Transactions, advance, open_ones

_LOOK_BYTES = 256 << 10
"""How many bytes are read at once to find first batches: the distance between two entries of an index is some kilobytes."""


class Replay:
    """The replay of one log from the nearest snapshot on. Call `advance` until it has reached the required offset.

    Args:
        directory: the partition's directory.
        segments: its segments as listed.
        end: a batch boundary; the log will be replayed at least up to it. It decides which snapshot is the nearest.
        producers_limit: most producers to remember, None to remember none.
        buffer: the buffer for reading; nothing else uses it while `advance` runs.

    Raises:
        OSError: a segment is gone or cannot be read: list them again.
    """

    def __init__(self, directory: Path, segments: Sequence[Segment], end: int, *, producers_limit: int | None, buffer: Bytes) -> None:
        self._directory = directory
        self._producers_limit = producers_limit
        self._buffer = buffer
        first = segments[0].base_offset
        snapshots = list_producer_snapshots(directory)
        snapshot, self._doubts = nearest_snapshot(snapshots, first, end)
        self.begins = first if snapshot is None else snapshot.offset
        """The offset where the replay begins."""
        self._cold = snapshot is None and first > 0
        self._transactions, self._producers = NO_TRANSACTIONS, Producers.none(producers_limit or 0)
        if snapshot is not None:
            self._transactions, _ = advance(self._transactions, _ongoing(snapshot, segments), 0)
            self._producers = self._producers if producers_limit is None else Producers.of(snapshot.states, producers_limit)
        elif self._cold and (later := first_sound(file for file in snapshots if file.offset > end)[0]) is not None:
            self._transactions, _ = advance(self._transactions, _ongoing(_as_of(later, first), segments), 0)
        self._reached = self._through = self.begins  # after the last batch, and after the gap that compaction may have left there
        self._problem = ""
        self._pieces: Iterator[None] | None = None
        self._pieces_end = self.begins
        self._segment = -1  # base offset of the segment that was replayed last, and its timestamps so far
        self._first_timestamp = self._largest_timestamp = TIMES_UNKNOWN

    def advance(self, segments: Sequence[Segment], end: int, budget: int | None = None) -> bool:
        """Replay on to ``end``, a batch boundary, or until about ``budget`` bytes have been read; returns whether the replay is done.

        Raises:
            OSError: a segment is gone or cannot be read: this replay cannot go on.
        """
        began = bytes_read()
        try:
            while not self._problem and self._through < end:
                if self._pieces is None:
                    self._pieces, self._pieces_end = self._replay(segments, self._through, end), end
                for _ in self._pieces:
                    if budget is not None and bytes_read() - began >= budget:
                        return False
                self._pieces, self._through = None, self._pieces_end
        except FormatError as error:
            self._pieces = None
            self._problem = f"{self._directory}: the log is not understood from offset {self._reached} on: {error.what}"
        return True

    def close(self) -> None:
        """Close the file that stays open between two pieces."""
        if isinstance(self._pieces, Generator):
            self._pieces.close()
        self._pieces = None

    def past(self) -> Past:
        """The state of the log at the offset that the replay has reached."""
        opened = open_ones(self._transactions)
        opened["bytes_at"] = -1
        return Past(
            begins=self.begins,
            next_offset=self._reached if self._problem else self._through,
            opened=opened,
            producers=self._producers,
            cold=self._cold,
            whole=not self._problem,
            doubts=(*self._doubts, *([self._problem] if self._problem else [])),
        )

    def timestamps(self, segment: int) -> tuple[int, int] | None:
        """The largest timestamp of a segment's first batch, and of the whole segment so far: Unix milliseconds, -1 none.

        Args:
            segment: its base offset.

        Returns:
            None if the segment is not the one that was replayed last, or was not replayed from its beginning.
        """
        known = segment == self._segment and self._largest_timestamp != TIMES_UNKNOWN and not self._problem
        return (self._first_timestamp, self._largest_timestamp) if known else None

    def _replay(self, segments: Sequence[Segment], begin: int, end: int) -> Iterator[None]:
        for batches, item in batches_between(segments, begin, end, self._buffer):
            self._take(batches, segments, item)
            yield
        if self._reached < end and all(segment.base_offset != end for segment in segments):  # else compaction has left a gap
            raise FormatError("no whole batch")

    def _take(self, batches: Batches, segments: Sequence[Segment], item: int) -> None:
        self._transactions, _ = advance(self._transactions, steps_of(batches, self._buffer, _times(segments, item)), 0)
        if self._producers_limit is not None:
            self._producers = self._producers.take(batches).producers
        base = segments[item].base_offset
        if base != self._segment:
            from_its_beginning = self._segment >= 0 or self.begins == base
            self._segment = base
            self._first_timestamp = max(int(batches.max_timestamp[0]), -1) if from_its_beginning else TIMES_UNKNOWN
            self._largest_timestamp = -1 if from_its_beginning else TIMES_UNKNOWN
        if self._largest_timestamp != TIMES_UNKNOWN:
            self._largest_timestamp = max(self._largest_timestamp, int(batches.max_timestamp.max()))
        self._reached = int(batches.last_offset[-1]) + 1


def _ongoing(snapshot: ProducerSnapshot, segments: Sequence[Segment]) -> Steps:
    """The open transactions of a snapshot as steps of kind ONGOING. Their first batches give their start times, if these still exist."""
    states = sorted((state for state in snapshot.states if state.current_txn_first_offset >= 0), key=_first_offset)
    steps = np.zeros(len(states), TRANSACTION_STEPS)
    if not states:
        return steps
    firsts = np.array([_first_offset(state) for state in states], np.int64)
    written = AppendTimes.recorded(0, snapshot.modified_ms).clamp(np.array([state.timestamp for state in states], np.int64))
    starts = _first_batch_times(segments, firsts)
    found = starts >= 0
    steps["step"], steps["bytes_before"] = Step.ONGOING, -1
    steps["source"] = np.where(found, int(StartSource.RECORDED), int(StartSource.SNAPSHOT))
    steps["producer_epoch"] = [state.producer_epoch for state in states]
    steps["producer_id"] = [state.producer_id for state in states]
    steps["first_offset"] = firsts
    steps["next_offset"] = np.maximum([state.last_offset + 1 for state in states], firsts + 1)
    steps["start_ms"] = np.where(found, starts, written)
    steps["last_ms"] = np.maximum(written, steps["start_ms"])
    return steps


def _first_offset(state: ProducerState) -> int:
    return state.current_txn_first_offset


def _first_batch_times(segments: Sequence[Segment], offsets: Longs) -> Longs:
    """The append times of the batches that begin at these offsets, ascending; -1 for a batch that does not exist any more."""
    found = np.full(len(offsets), -1, np.int64)
    bases = np.array([segment.base_offset for segment in segments])
    owners = np.searchsorted(bases, offsets, side="right") - 1
    buffer = np.empty(_LOOK_BYTES, np.uint8)
    for item in np.unique(owners[owners >= 0]).tolist():
        own = np.flatnonzero(owners == item)
        with segments[item].open() as file:
            found[own] = _look_up(file, offsets[own], _times(segments, item), buffer)
    return found


def _look_up(file: OpenSegment, offsets: Longs, times: AppendTimes, buffer: Bytes) -> Longs:
    """The same for one segment. The index leads from offset to offset, so many offsets cost at most one walk through the segment."""
    found = np.full(len(offsets), -1, np.int64)
    item, position, next_offset = 0, 0, file.base_offset
    while item < len(offsets):
        near = start_near(file, int(offsets[item]))
        if near[0] > position:
            position, next_offset = near
        scanned = scan_on(file, position, next_offset, buffer)
        if scanned.sums is None:
            break
        batches = scanned.batches
        last = int(np.searchsorted(offsets, scanned.sums.next_offset))
        items = np.minimum(np.searchsorted(batches.base_offset, offsets[item:last]), len(batches) - 1)
        there = batches.base_offset[items] == offsets[item:last]
        found[item:last] = np.where(there, times.clamp(first_timestamps(batches))[items], -1)
        item, position, next_offset = last, position + scanned.end, scanned.sums.next_offset
    return found


def _times(segments: Sequence[Segment], item: int) -> AppendTimes:
    """The times between which the batches of a segment were appended: not before the last write to the previous segment."""
    return AppendTimes.recorded(segments[item - 1].modified_ms if item else 0, segments[item].modified_ms)


def _as_of(later: ProducerSnapshot, first: int) -> ProducerSnapshot:
    """Of what was open at a later snapshot what was begun before a log's first offset, so that it was open there. Others may have been.

    A start leaves only the snapshot at the end of a log (`UnifiedLog.loadProducerState`), where DeleteRecords has left one segment.
    """
    states = [replace(each, last_offset=min(each.last_offset, first - 1)) for each in later.states if each.current_txn_first_offset < first]
    return replace(later, states=tuple(states))


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """The state of a log at ``next_offset``, found in its files.

    ``opened``: the transactions that are open there. Their ``bytes`` count only the replayed part, and it is not known where they began in
    the log (``bytes_at`` -1). ``begins``: the offset where the replay began. ``cold``: this is not the first offset of the log, and no
    snapshot contained what was open there. ``whole``: False if the log was not understood up to the requested end. ``doubts``: a message
    for each thing that was not understood and left out, with its file.
    """

    begins: int
    next_offset: int
    opened: Transactions
    producers: Producers
    cold: bool
    whole: bool
    doubts: tuple[str, ...]

    @property
    def ongoing(self) -> Steps:
        """``opened`` as steps of kind ONGOING: the first steps of a range that begins at ``next_offset``."""
        steps = np.zeros(len(self.opened), TRANSACTION_STEPS)
        for name in ("source", "producer_epoch", "producer_id", "first_offset", "next_offset", "bytes", "start_ms", "last_ms"):
            steps[name] = self.opened[name]
        steps["step"], steps["bytes_before"] = Step.ONGOING, -1
        return steps
