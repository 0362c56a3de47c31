"""The ladder of the segment that grows: each range that is read is added, and costs microseconds if nothing in it is transactional.

Whether data is aborted is known when the marker of its producer comes. Until then it pends, with the rungs that it lies before.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from streaming.broker.ladder.counts import NO_ENTRIES, Aborted
from streaming.broker.ladder.rung_builder import RungBuilder
from streaming.broker.ladder.runs import Pending, Run, transaction_runs
from streaming.broker.ladder.segment_ladder import Rungs, SegmentLadder
from streaming.common.rows import Step
from streaming.kafka.formats.layout import CONTROL_BIT, TRANSACTIONAL_BIT
from streaming.kafka.formats.transaction_index import ABORTED
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.transaction_steps import NO_STEPS, Steps

_MARKED = TRANSACTIONAL_BIT | CONTROL_BIT

_NOBODY: frozenset[int] = frozenset()
"""Python makes each empty set anew."""


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """The end of a transaction, ``last_offset`` is its marker's. ``first_offset`` is -1 if it is not known where it began."""

    producer_id: int
    first_offset: int
    last_offset: int
    committed: bool


class ActiveLadder:
    """For one thread, but what `frozen` returns does not change.

    Args:
        opened: the transactions that are open at the beginning of the segment: producer id and first offset of each. None: not known.
    """

    __slots__ = (
        "_aborted",
        "_aborted_count",
        "_began_here",
        "_built",
        "_pending",
        "base_offset",
        "knows_all",
        "opened",
    )  # there is one for each log

    def __init__(self, base_offset: int, opened: Mapping[int, int] | None) -> None:
        self.base_offset = base_offset
        self.opened: dict[int, int] = dict(opened or {})
        """The transactions that are open at its end: first offset by producer id, -1 if it may be in an earlier segment."""
        self.knows_all = opened is not None
        """Whether these are all of them."""
        self._began_here = _NOBODY  # producers of which a marker was seen: what they have open since is known
        self._built = RungBuilder(base_offset)
        self._pending: dict[int, Pending] = {}
        self._aborted = NO_ENTRIES
        self._aborted_count = 0

    @property
    def position(self) -> int:
        """The position after its last batch."""
        return self._built.position

    @property
    def end_offset(self) -> int:
        """The offset after its last batch."""
        return self._built.end_offset

    @property
    def counted(self) -> tuple[int, int, int, int]:
        """See `RungBuilder.counted`."""
        return self._built.counted

    @property
    def rungs(self) -> Rungs:
        """Its rungs."""
        return self._built.rungs

    @property
    def aborted(self) -> Aborted:
        """The aborted transactions whose markers are here, if it is known where they began."""
        return Aborted(self._aborted[: self._aborted_count])

    def append_plain(self, next_offset: int, records: int, size: int, seen_ms: int) -> None:
        """Add the batches that follow by their sums: no more than a stretch, and nothing in them is transactional or a control batch.

        Raises:
            FormatError: as `append` does.
        """
        self._built.add_plain(next_offset, records, size, seen_ms)

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
        self._built.add(batches, None, seen_ms)
        return self._transactions(batches, steps) if (batches.attributes & _MARKED).any() else ()

    def _transactions(self, batches: Batches, steps: Steps) -> tuple[EndedTransaction, ...]:
        markers = steps.compress(steps["step"] != Step.DATA)
        kinds: dict[int, int] = dict(zip(markers["first_offset"].tolist(), markers["step"].tolist(), strict=True))
        reaching_back = []
        for run in transaction_runs(batches):
            self._pend(run, batches)
            offset = int(batches.base_offset[run.marker]) if run.marker >= 0 else -1
            if offset in kinds:
                ended = self._end(run.producer_id, offset, committed=kinds[offset] == Step.COMMIT)
                if ended is not None and ended.first_offset < self.base_offset:
                    reaching_back.append(ended)
        return tuple(reaching_back)

    def _pend(self, run: Run, batches: Batches) -> None:
        if len(run.items):
            pending, before = Pending.of(run, batches), self._pending.get(run.producer_id)
            pending = pending if before is None else before + pending
            if len(pending.ends) > 2 * len(self.rungs):
                pending = pending.at(self.base_offset + self.rungs["offset"].astype(np.int64))
            self._pending[run.producer_id] = pending
            known = self.knows_all or run.producer_id in self._began_here
            self.opened.setdefault(run.producer_id, pending.first_offset if known else -1)

    def _end(self, producer_id: int, offset: int, *, committed: bool) -> EndedTransaction | None:
        """End a transaction; None if its marker ends nothing."""
        first_offset, pending = self.opened.pop(producer_id, None), self._pending.pop(producer_id, None)
        self._began_here = self._began_here if self.knows_all else self._began_here | {producer_id}
        if first_offset is None:
            return None if self.knows_all else EndedTransaction(producer_id, -1, offset, committed)
        if not committed and pending is not None:
            self._built.abort(pending)
        begins = first_offset if first_offset >= 0 or pending is None else pending.first_offset
        if not committed and begins >= 0:
            self._note_aborted(producer_id, begins, offset)
        return EndedTransaction(producer_id, first_offset, offset, committed)

    def _note_aborted(self, producer_id: int, first_offset: int, last_offset: int) -> None:
        if self._aborted_count == len(self._aborted):
            self._aborted = np.concatenate([self._aborted, np.zeros(self._aborted_count + 4, ABORTED)])
        self._aborted[self._aborted_count] = (0, producer_id, first_offset, last_offset, -1)
        self._aborted_count += 1

    def may_be_open(self, pending: Pending) -> bool:
        """Whether the transaction of data in an earlier segment may still be open; if not, it has ended since."""
        if not self.knows_all and pending.producer_id not in self._began_here:
            return True
        return 0 <= self.opened.get(pending.producer_id, -1) <= pending.first_offset

    def following(self, base_offset: int) -> "ActiveLadder":
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
            self._built.thin(now_ms)
        return SegmentLadder(self.base_offset, self.rungs.copy(), tuple(self._pending.values()))
