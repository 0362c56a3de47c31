"""What a log's own files tell of its transactions and producers at an offset in the middle of it.

A broker writes down the state of all producers at the beginning of every segment. From the nearest of these snapshots on the log itself is
replayed, so that a large one is not read whole (`ProducerStateManager.truncateAndReload`, `UnifiedLog.rebuildProducerState`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streaming.disk.producer_snapshots import ProducerSnapshot, list_producer_snapshots, load_producer_snapshot
from streaming.disk.segments import OpenSegment, Segment
from streaming.errors import FormatError
from streaming.kafka.headers import Longs
from streaming.kafka.producer_snapshot import ProducerState
from streaming.kafka.producers import Producers
from streaming.kafka.transactions import Steps, Times, first_timestamps, steps_of
from streaming.kafka.walk import Bytes
from streaming.rows import TRANSACTION_STEPS, StartSource, Step
from streaming.rules.transactions import NO_TRANSACTIONS, Transactions, advance, open_ones
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


def past_at(directory: Path, segments: Sequence[Segment], offset: int | None, *, producers_limit: int | None) -> Past:
    """What is known at ``offset`` (None: at the end of the log), a batch boundary.

    Args:
        directory: the partition's.
        segments: its segments as listed; batches appended since do not matter while ``offset`` is given.
        producers_limit: most producers to remember, None to remember none.

    Raises:
        OSError: a segment is gone or cannot be read: list them again.
    """
    buffer = window()
    end = find_offset(segments, None, buffer).next_offset if offset is None else offset
    snapshot, doubts = _nearest(directory, segments, end)
    first = segments[0].base_offset
    begins = first if snapshot is None else snapshot.offset
    transactions, producers = NO_TRANSACTIONS, Producers.none(producers_limit or 0)
    if snapshot is not None:
        transactions, _ = advance(transactions, _told(snapshot, segments), 0)
        producers = producers if producers_limit is None else Producers.of(snapshot.states, producers_limit)
    reached, problem = begins, ""
    try:
        for batches, place in batches_between(segments, begins, end, buffer):
            transactions, _ = advance(transactions, steps_of(batches, buffer, _times(segments, place)), 0)
            producers = producers if producers_limit is None else producers.take(batches).producers
            reached = int(batches.last_offset[-1]) + 1
        if reached < end and all(segment.base_offset != end for segment in segments):  # else a gap that compaction has left
            raise FormatError("no whole batch")
    except FormatError as error:
        problem = f"{directory}: the log is not understood from offset {reached} on: {error.what}"
    opened = open_ones(transactions)
    opened["bytes_at"] = -1
    return Past(
        begins=begins,
        next_offset=end if not problem else reached,
        opened=opened,
        producers=producers,
        cold=snapshot is None and first > 0,
        whole=not problem,
        doubts=(*doubts, *([problem] if problem else [])),
    )


def open_transactions_at(directory: Path, segments: Sequence[Segment], offset: int, *, producers_limit: int) -> Past:
    """What is open at ``offset``, a batch boundary where the reading of a log begins: take ``ongoing`` and ``producers`` of the result.

    At the first offset of a log nothing is read but a snapshot. Raises as `past_at`.
    """
    return past_at(directory, segments, offset, producers_limit=producers_limit)


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
