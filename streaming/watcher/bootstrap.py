"""What a log's own files tell of its transactions and producers at an offset in the middle of it.

A broker writes down the state of all producers at the beginning of every segment. From the nearest of these snapshots on the log itself is
replayed, so that a large one is not read whole (`ProducerStateManager.truncateAndReload`, `UnifiedLog.rebuildProducerState`). What is left
may be a segment: it is replayed in pieces.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streaming.disk.producer_snapshots import ProducerSnapshot, list_producer_snapshots, load_producer_snapshot
from streaming.disk.reads import bytes_read
from streaming.disk.segments import OpenSegment, Segment
from streaming.errors import FormatError
from streaming.kafka.headers import Batches, Longs
from streaming.kafka.producer_snapshot import ProducerState
from streaming.kafka.producers import Producers
from streaming.kafka.transactions import Steps, Times, first_timestamps, steps_of
from streaming.kafka.walk import Bytes
from streaming.rows import TRANSACTION_STEPS, StartSource, Step
from streaming.rules.transactions import NO_TRANSACTIONS, Transactions, advance, open_ones
from streaming.watcher.events import TIMES_UNKNOWN
from streaming.watcher.locate import find_offset, scan_on, start_near, window
from streaming.watcher.replay import batches_between

_LOOK_BYTES = 256 << 10
"""How much is read at once to find first batches: the distance between two entries of an index is some kilobytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """What the files tell of a log up to ``next_offset``.

    ``opened`` are the transactions that are open there: ``bytes`` of theirs counts what was replayed alone, and where they began in the log
    is not told (``bytes_at`` -1). ``begins`` is the offset that was replayed from; ``cold`` says that it is not the first of the log, and
    no snapshot told what was open there. ``whole`` is False where the log was not understood up to the end that was asked for, ``doubts``
    says in words, with the file, what was not understood and done without.
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
        """The same as steps of kind ONGOING: what a range that begins at ``next_offset`` says first."""
        steps = np.zeros(len(self.opened), TRANSACTION_STEPS)
        for name in ("source", "producer_epoch", "producer_id", "first_offset", "next_offset", "bytes", "start_ms", "last_ms"):
            steps[name] = self.opened[name]
        steps["step"], steps["bytes_before"] = Step.ONGOING, -1
        return steps


class Replay:
    """The replay of one log, from the nearest snapshot on; `advance` it until it is where it has to be.

    Args:
        directory: the partition's.
        segments: its segments as listed.
        end: where the log will be replayed to at least, a batch boundary; it decides which snapshot is the nearest.
        producers_limit: most producers to remember, None to remember none.
        buffer: what is read at once; used by nobody else while `advance` runs.

    Raises:
        OSError: a segment is gone or cannot be read: list them again.
    """

    def __init__(self, directory: Path, segments: Sequence[Segment], end: int, *, producers_limit: int | None, buffer: Bytes) -> None:
        self._directory = directory
        self._producers_limit = producers_limit
        self._buffer = buffer
        snapshot, self._doubts = _nearest(directory, segments, end)
        first = segments[0].base_offset
        self.begins = first if snapshot is None else snapshot.offset
        """The offset that it is replayed from."""
        self._cold = snapshot is None and first > 0
        self._transactions, self._producers = NO_TRANSACTIONS, Producers.none(producers_limit or 0)
        if snapshot is not None:
            self._transactions, _ = advance(self._transactions, _told(snapshot, segments), 0)
            self._producers = self._producers if producers_limit is None else Producers.of(snapshot.states, producers_limit)
        self._reached = self._through = self.begins  # behind the last batch, and behind the gap that compaction may have left there
        self._problem = ""
        self._pieces: Iterator[None] | None = None
        self._pieces_end = self.begins
        self._segment = -1  # base offset of the one that was replayed last, and the timestamps in it so far
        self._first_timestamp = self._largest_timestamp = TIMES_UNKNOWN

    def advance(self, segments: Sequence[Segment], end: int, budget: int | None = None) -> bool:
        """Replay on to ``end``, a batch boundary, or until about ``budget`` bytes have been read; returns whether there is no more to do.

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
        """Let go of the file that is open between two pieces."""
        if isinstance(self._pieces, Generator):
            self._pieces.close()
        self._pieces = None

    def past(self) -> Past:
        """What is known where it has come to."""
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
        """The largest timestamp of the first batch of a segment and that of all of it so far: Unix milliseconds, -1 none.

        Args:
            segment: its base offset.

        Returns:
            None where it is another than the one that was replayed last, or was not replayed from its beginning.
        """
        known = segment == self._segment and self._largest_timestamp != TIMES_UNKNOWN and not self._problem
        return (self._first_timestamp, self._largest_timestamp) if known else None

    def _replay(self, segments: Sequence[Segment], begin: int, end: int) -> Iterator[None]:
        for batches, place in batches_between(segments, begin, end, self._buffer):
            self._take(batches, segments, place)
            yield
        if self._reached < end and all(segment.base_offset != end for segment in segments):  # else a gap that compaction has left
            raise FormatError("no whole batch")

    def _take(self, batches: Batches, segments: Sequence[Segment], place: int) -> None:
        self._transactions, _ = advance(self._transactions, steps_of(batches, self._buffer, _times(segments, place)), 0)
        if self._producers_limit is not None:
            self._producers = self._producers.take(batches).producers
        base = segments[place].base_offset
        if base != self._segment:
            from_its_beginning = self._segment >= 0 or self.begins == base
            self._segment = base
            self._first_timestamp = max(int(batches.max_timestamp[0]), -1) if from_its_beginning else TIMES_UNKNOWN
            self._largest_timestamp = -1 if from_its_beginning else TIMES_UNKNOWN
        if self._largest_timestamp != TIMES_UNKNOWN:
            self._largest_timestamp = max(self._largest_timestamp, int(batches.max_timestamp.max()))
        self._reached = int(batches.last_offset[-1]) + 1


def past_at(directory: Path, segments: Sequence[Segment], offset: int | None, *, producers_limit: int | None) -> Past:
    """What is known at ``offset`` (None: at the end of the log), a batch boundary; all of it at once, however much has to be replayed.

    Args:
        directory: the partition's.
        segments: its segments as listed; batches appended since do not matter while ``offset`` is given.
        producers_limit: most producers to remember, None to remember none.

    Raises:
        OSError: a segment is gone or cannot be read: list them again.
    """
    buffer = window()
    end = find_offset(segments, None, buffer).next_offset if offset is None else offset
    replay = Replay(directory, segments, end, producers_limit=producers_limit, buffer=buffer)
    replay.advance(segments, end)
    return replay.past()


def _nearest(directory: Path, segments: Sequence[Segment], offset: int) -> tuple[ProducerSnapshot | None, list[str]]:
    """The newest sound snapshot in the log at or before ``offset``, and what was wrong with newer ones."""
    doubts: list[str] = []
    for file in reversed(list_producer_snapshots(directory)):
        if not segments[0].base_offset <= file.offset <= offset:
            continue
        try:
            return load_producer_snapshot(file), doubts
        except (FormatError, OSError) as error:
            doubts.append(f"{file.path}: {error}: an older snapshot or the log itself stands in for it")
    return None, doubts


def _times(segments: Sequence[Segment], place: int) -> Times:
    """When the batches of a segment were appended: not before the segment before it was last written to."""
    return Times.recorded(segments[place - 1].modified_ms if place else 0, segments[place].modified_ms)


def _told(snapshot: ProducerSnapshot, segments: Sequence[Segment]) -> Steps:
    """The open transactions of a snapshot as steps of kind ONGOING. When they began stands in their first batches, if those are there."""
    states = sorted((state for state in snapshot.states if state.current_txn_first_offset >= 0), key=_first_offset)
    steps = np.zeros(len(states), TRANSACTION_STEPS)
    if not states:
        return steps
    firsts = np.array([_first_offset(state) for state in states], np.int64)
    written = Times.recorded(0, snapshot.modified_ms).clamp(np.array([state.timestamp for state in states], np.int64))
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
    """When the batches that begin at these offsets, ascending, were appended; -1 where there is no such batch any more."""
    found = np.full(len(offsets), -1, np.int64)
    bases = np.array([segment.base_offset for segment in segments])
    owners = np.searchsorted(bases, offsets, side="right") - 1
    buffer = np.empty(_LOOK_BYTES, np.uint8)
    for place in np.unique(owners[owners >= 0]).tolist():
        own = np.flatnonzero(owners == place)
        file = OpenSegment(segments[place].path, segments[place].base_offset)
        try:
            found[own] = _look_up(file, offsets[own], _times(segments, place), buffer)
        finally:
            file.close()
    return found


def _look_up(file: OpenSegment, offsets: Longs, times: Times, buffer: Bytes) -> Longs:
    """The same for one segment: from one to the next by its index, so that many need no more than a walk through the segment."""
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
        places = np.minimum(np.searchsorted(batches.base_offset, offsets[item:last]), len(batches) - 1)
        there = batches.base_offset[places] == offsets[item:last]
        found[item:last] = np.where(there, times.clamp(first_timestamps(batches))[places], -1)
        item, position, next_offset = last, position + scanned.end, scanned.sums.next_offset
    return found
