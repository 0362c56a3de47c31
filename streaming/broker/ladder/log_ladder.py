"""The ladders of one log: of its closed segments, and of the one that grows."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from secrets import token_hex

import numpy as np

from streaming.broker.ladder.counts import NO_ENTRIES, NOTHING, Aborted, Counts, Pending, transaction_runs
from streaming.broker.ladder.segment_ladder import RungBuilder, SegmentLadder
from streaming.common.rows import Step
from streaming.kafka.formats.layout import CONTROL_BIT, TRANSACTIONAL_BIT
from streaming.kafka.formats.segment_indexes import ABORTED
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.transaction_steps import NO_STEPS, Steps

_MARKED = TRANSACTIONAL_BIT | CONTROL_BIT

_NOBODY: frozenset[int] = frozenset()
"""Python makes each empty set as another object."""


class LogLadder:
    """The ladders of all segments of one log. A log that was truncated, or is not known any more, gets a new one. Thread-safe.

    Args:
        active: the ladder of the last segment, up to where the log is read.
    """

    __slots__ = ("_active", "_before", "_closed", "_lock", "_log_start", "_recent", "_zero", "edition")  # there is one for each log

    def __init__(self, active: ActiveLadder) -> None:
        self.edition = token_hex(8)
        """Positions can be compared if they are of one edition."""
        self._log_start = 0
        self._lock = threading.Lock()
        self._active = active
        self._closed: tuple[SegmentLadder, ...] = ()
        self._before: tuple[Counts, ...] = (NOTHING,)  # of each closed segment, and of the active one
        self._recent = Aborted.none()
        self._zero = active.base_offset  # the segment that begins at the zero point, or began there

    def begin_at(self, log_start: int) -> None:
        """Note the log start. DeleteRecords may have passed data of a transaction that is open: if that is aborted, other counts than those
        that were given out lie before the log start, so the edition is another.
        """
        self._log_start = log_start

    @property
    def begin_offset(self) -> int:
        """The base offset of the first segment that is known: the one before it has to be filled next."""
        return self.begin[0]

    @property
    def begin(self) -> tuple[int, Counts]:
        """That offset, and what lies between the zero point and there."""
        with self._lock:
            return (self._closed[0] if self._closed else self._active).base_offset, self._before[0]

    @property
    def active_offset(self) -> int:
        """The base offset of the segment that grows."""
        return self._active.base_offset

    def is_at(self, base_offset: int, position: int) -> bool:
        """Whether the segment that grows is this one, and its last batch ends at this position."""
        active = self._active
        return active.base_offset == base_offset and active.position == position

    @property
    def position(self) -> int:
        """The position after the last batch, in the segment that grows."""
        return self._active.position

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""
        return self._active.end_offset

    @property
    def is_damaged(self) -> bool:
        """Whether a closed segment has damage."""
        with self._lock:
            return any(one.damage for one in self._closed)

    def counted_since(self, start: Counts) -> tuple[int, int, int, int]:
        """The offset after the last batch, and the records between a position and there, as `RungBuilder.counted` has them."""
        with self._lock:
            (end_offset, data, aborted, control), before = self._active.counted, self._before[-1]
        data, aborted, control = data + before.data, aborted + before.aborted, control + before.control
        return end_offset, data - start.data, aborted - start.aborted, control - start.control

    @property
    def nbytes(self) -> int:
        """The memory that it takes, without Python's own."""
        with self._lock:
            return sum(one.nbytes for one in self._closed) + self._active.frozen().nbytes

    def view(self) -> LadderView:
        """The ladder as it is now."""
        with self._lock:
            segments = (*self._closed, self._active.frozen())
            return LadderView(self.edition, segments, self._before, self._recent + self._active.aborted)

    def append(self, base_offset: int, position: int, batches: Batches, seen_ms: int = -1, steps: Steps = NO_STEPS) -> bool:
        """Add a range that was read.

        Args:
            base_offset: of its segment.
            position: of its first batch in the file.
            batches: at least one.
            seen_ms: when its append was seen, Unix milliseconds, -1 if it was not.
            steps: the markers in it, as of `ActiveLadder.append`.

        Returns:
            False if the range does not follow, or if it is not known any more which data is aborted: begin a new ladder.

        Raises:
            FormatError: as `ActiveLadder.append`.
        """
        with self._lock:
            if not self.is_at(base_offset, position):
                return False
            known = len(self._active.aborted)
            good = all(self._end(one) for one in self._active.append(batches, seen_ms, steps))
            aborted = self._active.aborted
            if len(aborted) > known and (aborted.entries["first_offset"][known:] < self._log_start).any():
                self.edition = token_hex(8)
            return good

    def append_plain(self, base_offset: int, position: int, next_offset: int, records: int, size: int, seen_ms: int) -> bool:
        """Add a range by its sums: see `RungBuilder.add_plain`; otherwise as `append`."""
        with self._lock:
            if not self.is_at(base_offset, position):
                return False
            self._active.add_plain(next_offset, records, size, seen_ms)
            return True

    def _end(self, ended: EndedTransaction) -> bool:
        """Count the data of a transaction in closed segments as aborted, or as committed."""
        for number, ladder in enumerate(self._closed):
            for one in ladder.pending:
                if one.producer_id != ended.producer_id or one.first_offset < ended.first_offset:
                    continue
                if ended.first_offset < 0 and not ended.committed:  # it may be data of an earlier transaction, which was committed
                    return False
                settled = ladder.without_pending(ended.producer_id) if ended.committed else ladder.with_aborted(one)
                self._replace(number, settled)
        return True

    def _replace(self, number: int, ladder: SegmentLadder) -> None:
        before = self._closed[number]
        self._closed = (*self._closed[:number], ladder, *self._closed[number + 1 :])
        grown = ladder.totals - before.totals
        if grown == NOTHING:
            return
        if before.base_offset < self._zero:  # counts that were given out below the zero point would be wrong now
            self.edition = token_hex(8)
        self._before = (*self._before[: number + 1], *(one + grown for one in self._before[number + 1 :]))

    def roll(self, base_offset: int, now_ms: int) -> SegmentLadder:
        """Go on in a new segment; returns the ladder of the one that is closed. ``now_ms``: the present time, Unix milliseconds."""
        with self._lock:
            closed = self._active.closed(now_ms)
            self._closed = (*self._closed, closed)
            self._before = (*self._before, self._before[-1] + closed.totals)
            self._recent = self._active.aborted
            self._active = self._active.following(base_offset)
            return closed

    def add(self, ladder: SegmentLadder) -> None:
        """Add the segment directly before the first one that is known.

        If it has pending data, the index of aborted transactions has to be read, and `SegmentLadder.settled` called, directly before this:
        data of transactions that are neither in the index nor open is committed.
        """
        with self._lock:
            ladder = ladder.settled(self._recent + self._active.aborted)
            for one in ladder.pending:
                if not self._active.may_be_open(one):
                    ladder = ladder.without_pending(one.producer_id)
            self._closed = (ladder, *self._closed)
            self._before = (self._before[0] - ladder.totals, *self._before)

    def drop_below(self, base_offset: int) -> None:
        """Forget segments with a smaller base offset: they were deleted. What was given out still holds."""
        with self._lock:
            gone = sum(one.base_offset < base_offset for one in self._closed)
            self._closed, self._before = self._closed[gone:], self._before[gone:]

    def forget(self, changed: Callable[[SegmentLadder], bool]) -> bool:
        """Forget closed segments up to the last one that was changed by compaction; then the edition is another. They can be added again.

        Returns:
            Whether there was one.
        """
        with self._lock:
            last = max((number for number, one in enumerate(self._closed) if changed(one)), default=-1)
            if last < 0:
                return False
            self._closed, self._before = self._closed[last + 1 :], self._before[last + 1 :]
            self.edition = token_hex(8)
            return True


class ActiveLadder(RungBuilder):
    """The ladder of the segment that grows. Only one thread uses it, but what `frozen` returns does not change.

    The ladder of the segment that grows: each range that is read is added, and costs microseconds if nothing in it is transactional.
    Whether data is aborted is known when the marker of its producer comes. Until then it pends, with the rungs that it lies before.

    Args:
        opened: the transactions that are open at the beginning of the segment: producer id and first offset of each. None: not known.
    """

    # there is one for each log
    __slots__ = ("_began_here", "_ended", "_ended_count", "_pending", "knows_all", "opened")

    def __init__(self, base_offset: int, opened: Mapping[int, int] | None) -> None:
        super().__init__(base_offset)
        self.opened: dict[int, int] = dict(opened or {})
        """The transactions that are open at its end: first offset by producer id, -1 if it may be in an earlier segment."""
        self.knows_all = opened is not None
        """Whether these are all of them."""
        self._began_here = _NOBODY  # producers of which a marker was seen: what they have open since is known
        self._pending: dict[int, Pending] = {}
        self._ended = NO_ENTRIES  # the aborted transactions
        self._ended_count = 0

    @property
    def aborted(self) -> Aborted:
        """The aborted transactions whose markers are here, if it is known where they began."""
        return Aborted(self._ended[: self._ended_count])

    def append(self, batches: Batches, seen_ms: int = -1, steps: Steps = NO_STEPS) -> tuple[EndedTransaction, ...]:
        """Add the batches that follow.

        Args:
            batches: at least one; they begin at `position`.
            seen_ms: when their append was seen, Unix milliseconds, -1 if it was not.
            steps: the rows of `streaming.kafka.scan.transaction_steps.steps_of` for these batches; only markers are read in them.

        Returns:
            The transactions that end here and have, or may have, data in earlier segments.

        Raises:
            FormatError: an offset that no batch of this segment can have.
        """
        self.add(batches, None, seen_ms)
        return self._transactions(batches, steps) if (batches.attributes & _MARKED).any() else ()

    def _transactions(self, batches: Batches, steps: Steps) -> tuple[EndedTransaction, ...]:
        markers = steps.compress(steps["step"] != Step.DATA)
        kinds: dict[int, int] = dict(zip(markers["first_offset"].tolist(), markers["step"].tolist(), strict=True))
        reaching_back = []
        for run in transaction_runs(batches):
            if len(run.items):
                pending, before = Pending.of(run, batches), self._pending.get(run.producer_id)
                pending = pending if before is None else before + pending
                if len(pending.ends) > 2 * len(self.rungs):
                    pending = pending.at(self.base_offset + self.rungs["offset"].astype(np.int64))
                self._pending[run.producer_id] = pending
                known = self.knows_all or run.producer_id in self._began_here
                self.opened.setdefault(run.producer_id, pending.first_offset if known else -1)
            offset = int(batches.base_offset[run.marker]) if run.marker >= 0 else -1
            if offset in kinds:
                ended = self._end(run.producer_id, offset, committed=kinds[offset] == Step.COMMIT)
                if ended is not None and ended.first_offset < self.base_offset:
                    reaching_back.append(ended)
        return tuple(reaching_back)

    def _end(self, producer_id: int, offset: int, *, committed: bool) -> EndedTransaction | None:
        """End a transaction; None if its marker ends nothing."""
        first_offset, pending = self.opened.pop(producer_id, None), self._pending.pop(producer_id, None)
        self._began_here = self._began_here if self.knows_all else self._began_here | {producer_id}
        if first_offset is None:
            return None if self.knows_all else EndedTransaction(producer_id, -1, offset, committed)
        if not committed and pending is not None:
            self.abort(pending)
        begins = first_offset if first_offset >= 0 or pending is None else pending.first_offset
        if not committed and begins >= 0:
            if self._ended_count == len(self._ended):
                self._ended = np.concatenate([self._ended, np.zeros(self._ended_count + 4, ABORTED)])
            self._ended[self._ended_count] = (0, producer_id, begins, offset, -1)
            self._ended_count += 1
        return EndedTransaction(producer_id, first_offset, offset, committed)

    def may_be_open(self, pending: Pending) -> bool:
        """Whether the transaction of data in an earlier segment may still be open; if not, it has ended since."""
        if not self.knows_all and pending.producer_id not in self._began_here:
            return True
        return 0 <= self.opened.get(pending.producer_id, -1) <= pending.first_offset

    def following(self, base_offset: int) -> ActiveLadder:
        """The ladder of the next segment, with nothing in it yet."""
        ladder = ActiveLadder(base_offset, self.opened)
        ladder.knows_all, ladder._began_here = self.knows_all, self._began_here
        return ladder

    def frozen(self) -> SegmentLadder:
        """The ladder as it is now."""
        return SegmentLadder(self.base_offset, self.rungs, tuple(self._pending.values()))

    def closed(self, now_ms: int) -> SegmentLadder:
        """The ladder of the segment as it is closed, with no more rungs than needed. ``now_ms``: the present time, Unix milliseconds."""
        if len(self.rungs):
            self.thin(now_ms)
        return SegmentLadder(self.base_offset, self.rungs.copy(), tuple(self._pending.values()))


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """The end of a transaction, ``last_offset`` is its marker's. ``first_offset`` is -1 if it is not known where it began."""

    producer_id: int
    first_offset: int
    last_offset: int
    committed: bool


@dataclass(frozen=True, slots=True, eq=False)
class LadderView:
    """A ladder at one moment.

    ``segments`` follow each other without a gap; ``before``: what lies between the zero point and the beginning of each of them.
    ``aborted``: the aborted transactions that ended in the last two of them: their index may not be written yet.
    """

    edition: str
    segments: tuple[SegmentLadder, ...]
    before: tuple[Counts, ...]
    aborted: Aborted

    @property
    def begin_offset(self) -> int:
        """The base offset of the first segment that is known."""
        return self.segments[0].base_offset

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""
        return self.segments[-1].end_offset

    @property
    def end(self) -> Counts:
        """What lies between the zero point and the end."""
        return self.before[-1] + self.segments[-1].totals

    @property
    def sound_from(self) -> int:
        """The smallest offset between which and the end nothing is damaged."""
        after_cuts = max((number for number, one in enumerate(self.segments[:-1], 1) if one.cut), default=0)
        return max(self.segments[after_cuts].base_offset, *(one.sound_from for one in self.segments))

    def number_of(self, offset: int) -> int:
        """The index of the segment that an offset is in; it is not below `begin_offset`."""
        return bisect_right(self.segments, offset, key=lambda one: one.base_offset) - 1
