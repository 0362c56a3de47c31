"""The transactions that end in the ranges of a log, and those that are open at an offset of it, with the bytes that they have there."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.locate import batches_between
from streaming.broker.disk.producer_files import aborted_transactions, list_producer_snapshots, nearest_snapshot
from streaming.broker.disk.segment_files import Segment
from streaming.broker.disk.segment_walk import SegmentReader
from streaming.broker.watcher.bootstrap import Past, Replay
from streaming.common.arrays import Flags
from streaming.common.rows import TRANSACTIONS, Step
from streaming.errors import FormatError
from streaming.kafka.formats.layout import CONTROL_BIT, CURRENT_MAGIC, TRANSACTIONAL_BIT
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.transaction_steps import AppendTimes, steps_of
from streaming.kafka.scan.walk import Bytes
from streaming.rules.transaction_fold import OPEN, Steps, Transactions, advance, open_ones

UNKNOWN = -1
"""``bytes`` of a transaction of which a part is not there any more, or was not looked at."""

ENDED = np.dtype([*((name, TRANSACTIONS[name]) for name in TRANSACTIONS.names or ()), ("end_ms", "<i8")])
"""Transactions with the times of their markers (Unix milliseconds), by ``marker_offset``.

A marker without a transaction here has no first offset, no times of data and no source (-1, -1 and 0), and no bytes.
"""

Ended = NDArray[np.void]
"""An array of `ENDED`."""

_ANY_TIME = AppendTimes.recorded(0, 0)  # when something was appended does not matter here

DamageReport = Callable[[Path, int | None, str], None]
"""Takes a file, a position and what is wrong there."""


class TransactionFates:
    """Looks as far ahead of a reader as it takes to know how the transactions end that it meets.

    Args:
        segments: the segment in which the reader begins, and all after it.
        position: of the batch in the first of them from which on it asks.
        stop: an offset; batches after it do not count.
        buffer: for reading; nothing else uses it.
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


@dataclass(frozen=True, slots=True)
class AbortedRange:
    """The data of a producer from an offset up to a marker, or up to the end of the transaction by the index."""

    producer_id: int
    first_offset: int
    end: int


def _steps_in(segment: Segment, position: int, buffer: Bytes, growing: bool, offset: int = -1) -> Iterator[tuple[Batches, Steps]]:
    """The batches of a segment, some at a time, and what they did to transactions. Damage is passed over: readers of records report it."""
    with SegmentReader.of(segment, lambda _flaw: None, buffer, growing=growing, crcs=False) as reader:
        for window in reader.windows(position or reader.proven_start(offset)):
            batches = window.batches
            while True:
                try:
                    yield window.batches, steps_of(batches, window.buffer, _ANY_TIME)
                    break
                except FormatError as error:  # a marker that is not understood ends nothing
                    batches = batches.take(batches.positions != error.position)


def end_transactions(before: Transactions, steps: Steps) -> tuple[Transactions, Ended]:
    """Add a range that begins where the log was read up to: which transactions are open after it, and those that ended in it.

    Args:
        before: those that were open before it, ``bytes`` `UNKNOWN` where that is so.
        steps: of the range, in order.
    """
    after, _ = advance(before, steps, 0)
    after = after.copy()
    vague = before.compress(before["bytes"] == UNKNOWN)
    if len(vague):
        those = np.isin(after["producer_id"], vague["producer_id"]) & np.isin(after["first_offset"], vague["first_offset"])
        after["bytes"][those] = UNKNOWN
    closed = after.compress(after["committed"] != OPEN)
    markers = steps.compress((steps["step"] == Step.COMMIT) | (steps["step"] == Step.ABORT))
    ended = np.zeros(len(markers), ENDED)
    for name in ("producer_epoch", "producer_id"):
        ended[name] = markers[name]
    for name in ("first_offset", "next_offset", "start_ms", "last_ms", "bytes_at"):
        ended[name] = -1
    ended["committed"] = markers["step"] == Step.COMMIT
    ended["marker_offset"], ended["end_ms"] = markers["first_offset"], markers["start_ms"]
    places = np.searchsorted(markers["first_offset"], closed["marker_offset"])
    for name in TRANSACTIONS.names or ():
        ended[name][places] = closed[name]
    return open_ones(after), ended


def open_at(directory: Path, segments: Sequence[Segment], offset: int, buffer: Bytes) -> Past:
    """What is open in a log at an offset: by the nearest producer snapshot, and the batches after it.

    ``bytes`` of an ``opened`` transaction cover all its batches if the first of them is still there, else they are `UNKNOWN`.

    Args:
        segments: of the log, one at least.
        offset: a batch boundary.

    Raises:
        OSError: a segment is gone or cannot be read: list them again.
    """
    replay = Replay(directory, segments, offset, producers_limit=None, buffer=buffer)
    try:
        replay.advance(segments, offset)
        past = replay.past()
    finally:
        replay.close()
    transactions = past.opened.copy()
    early = transactions["first_offset"] < past.begins
    doubts = past.doubts
    if early.any():
        there = early & (transactions["first_offset"] >= segments[0].base_offset)
        transactions["bytes"][early & ~there] = UNKNOWN
        if there.any():
            try:
                transactions["bytes"][there] = _with_earlier(transactions.compress(there), segments, past.begins, buffer)
            except FormatError as error:
                transactions["bytes"][there] = UNKNOWN
                doubts = (*doubts, f"{directory}: what is open there is not counted: {error}")
    return replace(past, opened=transactions, doubts=doubts)


def _with_earlier(transactions: Transactions, segments: Sequence[Segment], end: int, buffer: Bytes) -> NDArray[np.int64]:
    """The bytes of transactions, with their batches from their first ones up to ``end``, a batch boundary."""
    begin = int(transactions["first_offset"].min())
    order = np.argsort(transactions["producer_id"], kind="stable")
    producers = transactions["producer_id"][order]
    firsts, sizes = transactions["first_offset"][order], transactions["bytes"][order].astype(np.int64)
    for batches, _ in batches_between(segments, begin, end, buffer):
        _add(batches, producers, firsts, sizes)
    found = np.empty(len(transactions), np.int64)
    found[order] = sizes
    return found


def _add(batches: Batches, producers: NDArray[np.int64], firsts: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
    """Add the sizes of transactional data batches to those of their producers' transactions. A producer has one that is open."""
    data = (batches.magic == CURRENT_MAGIC) & (batches.attributes & TRANSACTIONAL_BIT != 0) & ~batches.control
    items = np.flatnonzero(data)
    if not len(items):
        return
    own = batches.headers["producer_id"][items]
    places = np.minimum(np.searchsorted(producers, own), len(producers) - 1)
    those = (producers[places] == own) & (batches.base_offset[items] >= firsts[places])
    np.add.at(sizes, places[those], batches.size[items][those])


def first_open(directory: Path, segments: Sequence[Segment], stop: int, buffer: Bytes, since: int = -1) -> tuple[int, int] | None:
    """Producer and first offset of the oldest transaction that is open at the offset ``stop``: no marker before it ends the transaction.

    How transactions end: by the markers in the log itself, which stay as long as data of theirs, and by the index of aborted ones. A
    transactional batch belongs to an aborted transaction if the next marker of its producer is an ABORT. A broker goes by the
    ``.txnindex`` alone (`UnifiedLog.collectAbortedTransactions`), which may be missing in a copy. Transactions are short, so the
    marker is near.

    The log is read from the nearest producer snapshot on, which a broker writes at the beginning of every segment.

    Args:
        since: an offset before which no transaction began that can be open at ``stop``, -1 if none is known. The log is read from there.

    Raises:
        OSError: a segment is gone or cannot be read.
    """
    begin, opened = _known_before(directory, segments, stop) if since < 0 else (since, dict[int, int]())
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


def _known_before(directory: Path, segments: Sequence[Segment], stop: int) -> tuple[int, dict[int, int]]:
    """From where a log has to be read to know what is open at ``stop``, and what is open there: producer, first offset."""
    snapshot, _ = nearest_snapshot(list_producer_snapshots(directory), segments[0].base_offset, stop)
    return (segments[0].base_offset, {}) if snapshot is None else (snapshot.offset, snapshot.opened)
