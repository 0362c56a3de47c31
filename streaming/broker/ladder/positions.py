"""Positions of offsets: what lies before them in their log, and which record is next; and the count of a whole log in a single pass."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import accumulate, islice, takewhile
from typing import NamedTuple

import numpy as np

from streaming.broker.disk.producer_files import SnapshotFile, load_producer_snapshot
from streaming.broker.disk.segment_files import Segment
from streaming.broker.ladder.append_bounds import AppendBounds, RecordTimes, append_bounds
from streaming.broker.ladder.counts import Aborted, Counts
from streaming.broker.ladder.filling import count_segment, read_aborted
from streaming.broker.ladder.log_ladder import LadderView
from streaming.broker.ladder.segment_ladder import SegmentLadder
from streaming.broker.ladder.stretch import Answer, OpenedBatches, Stretch
from streaming.common.arrays import Flags
from streaming.common.units import format_word
from streaming.errors import FormatError
from streaming.kafka.formats.producer_snapshot import ProducerState
from streaming.kafka.scan.walk import Bytes


def positions(
    segments: Sequence[Segment],
    ladder: LadderView,
    offsets: Sequence[int],
    upto: int,
    opened: OpenedBatches | None = None,
    *,
    reads_uncommitted: bool = False,
    now_ms: int | None = None,
) -> list[Position]:
    """The positions of some offsets of a log, in their order.

    Args:
        segments: the listing that the ladder's segments are of. A file that was replaced since is found out by its identity.
        ladder: as it is now: the positions are of its edition.
        upto: the next record is looked for below this offset, which is the high watermark.
        opened: what opened batches have shown so far, for a caller that asks again and again.
        reads_uncommitted: the next record may be one of an aborted transaction.
        now_ms: as of when an append that no agent has seen is looked up of a next record; None: it is not.
    """
    times = None if now_ms is None else RecordTimes(segments, now_ms)
    search = _Search(segments, ladder, upto, OpenedBatches() if opened is None else opened, times, reads_uncommitted=reads_uncommitted)
    return [search.position(offset) for offset in offsets]


class PositionState(IntEnum):
    """Whether a position is known."""

    KNOWN = 0
    FILLING = 1  # its segment is not counted yet
    BEYOND = 2  # it is after the end of the log
    BELOW = 3  # it is before the first segment on disk
    DAMAGED = 4  # bytes there, or between it and the end of the log, are damaged, cannot be read, or are too large to be opened


@dataclass(frozen=True, slots=True)
class Position:
    """What lies between the ladder's zero point and an offset, and the next record that consumers get from there on.

    How many of the offsets that were deleted before the first segment were records, as far as the producer snapshot beside it shows
    that. The snapshot of a segment holds the producers of what is before it: the last data offset of each, and whether its
    transaction is open. So a data offset there is a record, and the offset after the last record of a closed transaction, or a later
    one, is its marker. It does not hold producers without an id, nor those that have been silent for `producer.id.expiration.ms`, and
    of one whose epoch a marker has raised (transaction version 2) it does not hold the data offset. So nothing follows from what is
    not in it.

    ``data``: data records, of which ``aborted`` belong to aborted transactions (right only up to the last stable offset); ``control``:
    records of control batches; ``bytes``: of whole batches. All are negative below the zero point.

    ``next_offset``: of the first data record at the offset or after it, -1 if there is none below the given end; one that is aborted
    counts only for consumers with ``read_uncommitted``. The other ``next`` fields are about it: its own timestamp, when it was appended
    (if that was seen, or if the broker wrote its time), both Unix milliseconds, -1 if not known; the size of its batch in bytes, the base
    offset of its segment, its batch's position there. Of an offset before the first segment on disk, that segment is ``next_segment``, and
    between ``deleted_least`` and ``deleted_most`` of the offsets before it were records (-1: not known). Where the append was not seen, it
    was between ``next_earliest_ms`` and ``next_latest_ms``, as `AppendBounds`, if that was asked.
    """

    offset: int
    state: PositionState
    data: int = 0
    aborted: int = 0
    control: int = 0
    bytes: int = 0
    next_offset: int = -1
    next_timestamp_ms: int = -1
    next_append_ms: int = -1
    next_batch_bytes: int = -1
    next_segment: int = -1
    next_position: int = -1
    deleted_least: int = -1
    deleted_most: int = -1
    next_earliest_ms: int = -1
    next_latest_ms: int = -1


class _Search:
    """Looks offsets up; a stretch is scanned once."""

    def __init__(
        self,
        segments: Sequence[Segment],
        ladder: LadderView,
        upto: int,
        opened: OpenedBatches,
        times: RecordTimes | None,
        *,
        reads_uncommitted: bool,
    ) -> None:
        self._times = times
        self._reads_uncommitted = reads_uncommitted
        self._opened = opened
        self._segments = segments
        self._ladder = ladder
        self._upto = min(upto, ladder.end_offset)
        self._sound_from = ladder.sound_from
        self._stretches: dict[tuple[int, int], Stretch] = {}

    def position(self, offset: int) -> Position:
        state = self._state(offset)
        if state is PositionState.BELOW and self._segments:
            first = self._segments[0]
            gone = deleted_records(first, offset, reads_uncommitted=self._reads_uncommitted)
            return Position(offset, state, next_segment=first.base_offset, deleted_least=gone.least, deleted_most=gone.most)
        if state is not PositionState.KNOWN:
            return Position(offset, state)
        try:
            return self._known(offset)
        except FileNotFoundError:  # deleted or replaced since it was listed: the next listing shows which
            return Position(offset, PositionState.FILLING)
        except (FormatError, OSError):
            return Position(offset, PositionState.DAMAGED)

    def _state(self, offset: int) -> PositionState:
        if offset > self._ladder.end_offset:
            return PositionState.BEYOND
        if not self._segments or offset < self._segments[0].base_offset:
            return PositionState.BELOW
        if offset < self._ladder.begin_offset:
            return PositionState.FILLING
        return PositionState.DAMAGED if offset < self._sound_from else PositionState.KNOWN

    def _known(self, offset: int) -> Position:
        number = self._ladder.number_of(offset)
        segment, before = self._ladder.segments[number], self._ladder.before[number]
        at = segment.stretch_of(offset)
        found = before + segment.before(at)
        if offset <= segment.begin_of(at)[0]:  # at a rung: nothing has to be scanned for what lies before it
            return self._with_next(_position(offset, found), number, at)
        if at == len(segment.rungs):  # in a gap after the last batch
            return self._with_next(_position(offset, found), number + 1, 0)
        stretch = self._stretch(number, at)
        item = stretch.batch_of(offset)
        inside, taken = self._inside(stretch, item, offset)
        found += stretch.counts_before(item) + inside
        found = replace(found, bytes=before.bytes + int(stretch.positions[item]))
        position = _position(offset, found)
        if offset >= self._upto:
            return position
        if self._readable(stretch)[item] and taken < stretch.records[item]:
            return self._next_in(position, number, at, item, taken)
        following = self._next_batch(stretch, item + 1)
        if following is None:
            return self._with_next(position, number, at + 1)
        return self._next_in(position, number, at, following, 0)

    def _inside(self, stretch: Stretch, item: int, offset: int) -> tuple[Counts, int]:
        """What lies between the beginning of a batch and an offset, and how many records that is."""
        if offset <= stretch.base_offset[item] or not stretch.records[item]:
            return Counts(), 0
        if stretch.has_all(item):
            taken = offset - int(stretch.base_offset[item])
        else:
            taken, _ = self._opened.ask(stretch, item, ("before", offset), lambda: _records_before(stretch, item, offset))
        if stretch.control[item]:
            return Counts(control=taken), taken
        return Counts(data=taken, aborted=taken if stretch.is_aborted[item] else 0), taken

    def _with_next(self, position: Position, number: int, at: int) -> Position:
        """Find the next record from a stretch on: stretches without one are left out by the ladder alone."""
        if position.offset >= self._upto:
            return position
        for later in range(number, len(self._ladder.segments)):
            rungs = self._ladder.segments[later].rungs
            data = rungs["data"].astype(np.int64)
            readable = np.diff(data if self._reads_uncommitted else data - rungs["aborted"], prepend=0)
            for one in np.flatnonzero(readable[at:]).tolist():
                if self._ladder.segments[later].begin_of(at + one)[0] >= self._upto:
                    return position
                item = self._next_batch(self._stretch(later, at + one), 0)
                if item is not None:
                    return self._next_in(position, later, at + one, item, 0)
            at = 0
        return position

    def _next_batch(self, stretch: Stretch, item: int) -> int | None:
        """The first batch from ``item`` on with a record that consumers get."""
        found = np.flatnonzero((stretch.records[item:] > 0) & self._readable(stretch)[item:])
        return item + int(found[0]) if len(found) else None

    def _readable(self, stretch: Stretch) -> Flags:
        """Whether consumers get the records of each batch."""
        readable: Flags = ~stretch.control if self._reads_uncommitted else ~stretch.control & ~stretch.is_aborted
        return readable

    def _next_in(self, position: Position, number: int, at: int, item: int, taken: int) -> Position:
        """The next record is the one after ``taken`` records of a batch."""
        stretch, segment = self._stretch(number, at), self._ladder.segments[number]
        offset = int(stretch.base_offset[item]) + taken if stretch.has_all(item) else -1
        timestamp = stretch.first_timestamp(item) if not taken or stretch.append_time[item] else None
        if offset < 0 or timestamp is None:
            try:
                found, timestamp = self._opened.ask(stretch, item, ("record", taken), lambda: _record_at(stretch, item, taken))
                offset = found if offset < 0 else offset
            except FormatError:
                timestamp = -1
            if offset < 0:
                raise FormatError("a batch cannot be opened", int(stretch.positions[item]))
        if offset >= self._upto:
            return position
        append_ms = int(stretch.max_timestamp[item]) if stretch.append_time[item] else int(segment.rungs["seen_ms"][at])
        unseen = self._times if append_ms < 0 else None
        bounds = AppendBounds(-1, -1) if unseen is None else unseen.bounds(segment, stretch, item, timestamp)
        return replace(
            position,
            next_offset=offset,
            next_timestamp_ms=timestamp,
            next_append_ms=append_ms,
            next_batch_bytes=int(stretch.sizes[item]),
            next_segment=segment.base_offset,
            next_position=int(stretch.positions[item]),
            next_earliest_ms=bounds.earliest_ms,
            next_latest_ms=bounds.latest_ms,
        )

    def _stretch(self, number: int, at: int) -> Stretch:
        key = number, at
        if key not in self._stretches:
            ladder = self._ladder.segments[number]
            listed = bisect_left(self._segments, ladder.base_offset, key=lambda one: one.base_offset)
            if listed == len(self._segments) or self._segments[listed].base_offset != ladder.base_offset:
                raise FileNotFoundError(f"there is no segment {ladder.base_offset}")
            _, _, _, _, aborted, _ = ladder.rungs[at].tolist()
            entries = self._aborted(listed, ladder.begin_of(at + 1)[0]) if aborted > ladder.before(at).aborted else Aborted.none()
            self._stretches[key] = Stretch.read(self._segments[listed], ladder, at, entries)
        return self._stretches[key]

    def _aborted(self, listed: int, upto: int) -> Aborted:
        """The aborted transactions with data below an offset, from a segment on. The newest are in memory before they are on disk."""
        return read_aborted(self._segments[listed:], upto) + self._ladder.aborted


def deleted_records(first: Segment, offset: int, *, reads_uncommitted: bool = False) -> DeletedRecords:
    """The records from an offset on that were deleted before the first segment of a log, and that a consumer of that isolation got.

    No snapshot shows whether a transaction was committed: with ``read_committed`` its records are perhaps some, with the other all are.
    """
    try:
        states = load_producer_snapshot(SnapshotFile.beside(first)).states
    except (FormatError, OSError):
        return DeletedRecords()
    there = [each for each in states if offset <= each.last_offset < first.base_offset]
    records = sum(reads_uncommitted or (each.coordinator_epoch < 0 and each.current_txn_first_offset < 0) for each in there)
    marker = any(_is_closed(each) and each.last_offset == offset - 1 for each in states)
    return DeletedRecords(records, first.base_offset - offset - marker)


class DeletedRecords(NamedTuple):
    """Bounds of a number of records, -1 twice if nothing is known."""

    least: int = -1
    most: int = -1


def _is_closed(producer: ProducerState) -> bool:
    """Whether a marker follows the last record of a producer."""
    return producer.coordinator_epoch >= 0 and producer.current_txn_first_offset < 0


def _position(offset: int, counts: Counts) -> Position:
    return Position(offset, PositionState.KNOWN, counts.data, counts.aborted, counts.control, counts.bytes)


def _records_before(stretch: Stretch, item: int, offset: int) -> Answer:
    """How many records of a batch are before an offset; the second number has no meaning."""
    return sum(1 for _ in takewhile(lambda record: record[0] < offset, stretch.record_times(item))), 0


def _record_at(stretch: Stretch, item: int, number: int) -> Answer:
    """Offset and timestamp of a record of a batch by its number, -1 if there are not as many."""
    return next(islice(stretch.record_times(item), number, None), (-1, -1))


def count_log(segments: Sequence[Segment], begin: int, buffer: Bytes, paced: Callable[[int], None] = lambda _: None) -> CountedLog:
    """Count the segments of a log from the one on that has the offset ``begin``.

    Args:
        segments: a listing, not empty.
        buffer: is used for the scan.
        paced: called with the number of bytes after each window that was read; it may wait.

    Raises:
        OSError: a segment cannot be read, or is gone.
    """
    first = max((number for number, segment in enumerate(segments) if segment.base_offset <= begin), default=0)
    ladders: list[SegmentLadder] = [count_segment(segments, number, buffer, paced) for number in range(first, len(segments))]
    before = tuple(accumulate((one.totals for one in ladders[:-1]), initial=Counts()))
    return CountedLog(tuple(segments), LadderView("", tuple(ladders), before, Aborted.none()))


@dataclass(frozen=True, slots=True, eq=False)
class CountedLog:
    """The ladder of all segments of a listing, or of those from some offset on; positions of its offsets can be asked for.

    Counts a log that nobody writes to, or as it is now, in a single pass: for commands that read log dirs once.
    """

    segments: tuple[Segment, ...]
    ladder: LadderView

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""
        return self.ladder.end_offset

    def damage(self, begin: int) -> str:
        """The first damage of a segment that has offsets from ``begin`` on, with its file, in words; "" if there is none.

        What lies before a damaged batch need not be counted if ``begin`` is after it.
        """
        paths = {segment.base_offset: str(segment.path) for segment in self.segments}
        ends = [*(one.base_offset for one in self.ladder.segments[1:]), self.end_offset + 1]
        return next(
            (
                f"{format_word(paths[one.base_offset])}: {one.damage}"
                for one, end in zip(self.ladder.segments, ends, strict=True)
                if one.damage and begin < (end if one.cut else one.sound_from)
            ),
            "",
        )

    def hole(self, begin: int) -> tuple[int, int] | None:
        """The first offsets from ``begin`` on that lie between two segments and are in none, the last one included; None if there are none.

        That is as it should be where a topic is compacted, or was.
        """
        pairs = zip(self.ladder.segments, self.ladder.segments[1:], strict=False)
        gaps = ((max(one.end_offset, begin), following.base_offset - 1) for one, following in pairs if not one.damage)
        return next((gap for gap in gaps if gap[0] <= gap[1]), None)

    @property
    def whole(self) -> bool:
        """Whether all segments are counted, and none of them is damaged."""
        return self.ladder.begin_offset <= self.segments[0].base_offset and self.ladder.sound_from <= self.ladder.begin_offset

    @property
    def cut(self) -> bool:
        """Whether damage ends it: what follows is not known."""
        return self.ladder.segments[-1].cut

    def positions(self, offsets: Sequence[int], upto: int, *, reads_uncommitted: bool = False) -> list[Position]:
        """As `streaming.broker.ladder.positions.positions`."""
        return positions(self.segments, self.ladder, offsets, upto, reads_uncommitted=reads_uncommitted)

    def appended(self, offset: int, timestamp: int, now_ms: int) -> AppendBounds:
        """As `streaming.broker.ladder.append_bounds.append_bounds`."""
        return append_bounds(self.segments, self.ladder, offset, timestamp, now_ms)

    def between(self, begin: int, end: int) -> Counts | None:
        """What lies between two offsets; bytes are those of whole batches from the one on that ``begin`` is in.

        None if bytes in between, or between them and the end of the log, are damaged or cannot be read.
        """
        first, last = self.positions((begin, end), end)
        if first.state is not PositionState.KNOWN or last.state is not PositionState.KNOWN:
            return None
        return _counts(last) - _counts(first)


def _counts(position: Position) -> Counts:
    return Counts(position.data, position.aborted, position.control, position.bytes)
