"""How transactions end: by the markers in the log itself, which stay as long as data of theirs, and by the index of aborted ones.

A transactional batch belongs to an aborted transaction if the next marker of its producer is an ABORT. A broker goes by the ``.txnindex``
alone (`UnifiedLog.collectAbortedTransactions`), which may be missing in a copy. Transactions are short, so the marker is near.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.aborted_transactions import aborted_transactions
from streaming.broker.disk.producer_snapshots import nearest_snapshot
from streaming.broker.disk.segment_files import Segment
from streaming.broker.excerpts.segment_walk import SegmentReader
from streaming.common.arrays import Flags
from streaming.common.rows import Step
from streaming.errors import FormatError
from streaming.kafka.formats.layout import CONTROL_BIT, TRANSACTIONAL_BIT
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.transaction_steps import AppendTimes, Steps, steps_of
from streaming.kafka.scan.walk import Bytes

_ANY_TIME = AppendTimes.recorded(0, 0)  # when something was appended does not matter here

DamageReport = Callable[[Path, int | None, str], None]
"""Takes a file, a position and what is wrong there."""


@dataclass(frozen=True, slots=True)
class AbortedRange:
    """The data of a producer from an offset up to a marker, or up to the end of the transaction by the index."""

    producer_id: int
    first_offset: int
    end: int


class TransactionFates:
    """Looks as far ahead of a reader as it takes to know how the transactions end that it meets.

    Args:
        segments: the segment in which the reader begins, and all after it.
        position: of the batch in the first of them from which on it asks.
        stop: an offset; what is after it does not count.
        buffer: for reading, used by nobody else.
    """

    def __init__(self, segments: Sequence[Segment], position: int, stop: int, buffer: Bytes, report: DamageReport) -> None:
        self._segments = segments
        self._stop = stop
        self._report = report
        self._open: dict[int, int] = {}  # by producer: the first offset since its last marker
        self._aborted: list[AbortedRange] = []
        self._reached = -1
        self._windows: Iterator[Steps] | None = self._look(segments, position, buffer)

    def aborted(self, batches: Batches) -> Flags:
        """Which of the next batches belong to aborted transactions."""
        first, last = int(batches.base_offset[0]), min(int(batches.last_offset[-1]), self._stop - 1)
        while self._windows is not None and (self._reached <= last or any(begin <= last for begin in self._open.values())):
            steps = next(self._windows, None)
            if steps is None:
                self._windows = None
            else:
                self._take(steps)
        self._aborted = [each for each in self._aborted if each.end > first]
        data = (batches.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT)) == TRANSACTIONAL_BIT
        found = np.zeros(len(batches), np.bool_)
        producers = batches.headers["producer_id"]
        for each in self._aborted:
            if each.first_offset <= last:
                begin, end = np.searchsorted(batches.base_offset, [each.first_offset, each.end])
                found[begin:end] |= data[begin:end] & (producers[begin:end] == each.producer_id)
        return found

    def _look(self, segments: Sequence[Segment], position: int, buffer: Bytes) -> Iterator[Steps]:
        for number, segment in enumerate(segments):
            if segment.base_offset >= self._stop:
                return
            self._take_index(segment)
            for batches, steps in _steps_in(segment, position if number == 0 else 0, buffer, number == len(segments) - 1):
                if batches.base_offset[0] >= self._stop:
                    return
                self._reached = int(batches.last_offset[-1]) + 1
                yield steps

    def _take(self, steps: Steps) -> None:
        for step, producer, first in zip(*(steps[name].tolist() for name in ("step", "producer_id", "first_offset")), strict=True):
            if first >= self._stop:
                continue
            if step == Step.DATA:
                self._open.setdefault(producer, first)
            else:
                begin = self._open.pop(producer, None)
                if begin is not None and step == Step.ABORT:
                    self._aborted.append(AbortedRange(producer, begin, first))

    def _take_index(self, segment: Segment) -> None:
        try:
            entries: NDArray[np.void] = aborted_transactions([segment], self._stop)
        except (FormatError, OSError) as error:  # the markers are there, too
            self._report(segment.path.with_suffix(".txnindex"), None, f"the index of aborted transactions cannot be read: {error}")
            return
        for producer, first, last in zip(*(entries[name].tolist() for name in ("producer_id", "first_offset", "last_offset")), strict=True):
            self._aborted.append(AbortedRange(producer, first, last))


def first_open(directory: Path, segments: Sequence[Segment], stop: int, buffer: Bytes) -> tuple[int, int] | None:
    """Producer and first offset of the oldest transaction that is open at the offset ``stop``: no marker before it ends the transaction.

    The log is read from the nearest producer snapshot on, which a broker writes at the beginning of every segment.

    Raises:
        OSError: a segment is gone or cannot be read.
    """
    snapshot, _ = nearest_snapshot(directory, segments[0].base_offset, stop)
    begin, opened = (segments[0].base_offset, {}) if snapshot is None else (snapshot.offset, snapshot.opened)
    last = len(segments) - 1
    numbers = [number for number in range(len(segments)) if number == last or segments[number + 1].base_offset > begin]
    for number in numbers:
        if segments[number].base_offset >= stop or begin >= stop:
            break
        for batches, steps in _steps_in(segments[number], 0, buffer, number == last, begin):
            if batches.base_offset[0] >= stop:
                break
            for step, producer, first in zip(*(steps[name].tolist() for name in ("step", "producer_id", "first_offset")), strict=True):
                if begin <= first < stop and step == Step.DATA:
                    opened.setdefault(producer, first)
                elif begin <= first < stop:
                    opened.pop(producer, None)
    return min(opened.items(), key=lambda each: each[1]) if opened else None


def _steps_in(segment: Segment, position: int, buffer: Bytes, growing: bool, offset: int = -1) -> Iterator[tuple[Batches, Steps]]:
    """The batches of a segment, some at a time, and what they did to transactions. Damage is passed over: whoever reads records says it."""
    with SegmentReader.of(segment, lambda _flaw: None, buffer, growing=growing, crcs=False) as reader:
        for window in reader.windows(position or reader.proven_start(offset)):
            batches = window.batches
            while True:
                try:
                    yield window.batches, steps_of(batches, window.buffer, _ANY_TIME)
                    break
                except FormatError as error:  # a marker that is not understood ends nothing
                    batches = batches.take(batches.positions != error.position)
