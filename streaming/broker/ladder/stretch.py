"""A stretch of batches, and what opening them has shown."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.scanning import scan_on
from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.broker.ladder.counts import Aborted, Counts
from streaming.broker.ladder.segment_ladder import RUNG_BYTES, SegmentLadder
from streaming.common.arrays import Longs
from streaming.errors import FormatError, TooLargeError
from streaming.kafka.formats.entries import TIMED_ENTRY_BYTES, read_entry_times
from streaming.kafka.formats.layout import CURRENT_MAGIC, DELETE_HORIZON_BIT, TIMESTAMP_TYPE_BIT
from streaming.kafka.scan.headers import Batches, find_flaws, read_headers
from streaming.kafka.scan.walk import Bytes, walk

log = logging.getLogger(__name__)

_OLD_ATTRIBUTES_AT = 17
_FIRST = np.zeros(1, np.intp)

MOST_ANSWERS = 4096
"""How many answers are remembered; the one that was not asked for longest is forgotten."""

Answer = tuple[int, int]
"""Two numbers, by the question."""

_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """The batches of a stretch, in columns of equal length.

    ``positions`` in the file; ``data``, ``aborted`` and ``control``: records before each batch, from the beginning of the stretch;
    ``is_aborted``: whether it belongs to an aborted transaction.
    """

    segment: Segment
    base_offset: Longs
    last_offset: Longs
    records: Longs
    sizes: Longs
    positions: Longs
    control: NDArray[np.bool_]
    is_aborted: NDArray[np.bool_]
    max_timestamp: Longs
    base_timestamp: Longs
    append_time: NDArray[np.bool_]
    before: tuple[Longs, Longs, Longs]

    @classmethod
    def read(cls, segment: Segment, ladder: SegmentLadder, number: int, aborted: Aborted) -> Self:
        """Scan the stretch of that number.

        Raises:
            FormatError: there is something else than the batches that were counted.
            OSError: the segment cannot be read; FileNotFoundError if another file has its name by now.
        """
        next_offset, position = ladder.begin_of(number)
        _, end = ladder.begin_of(number + 1)
        found: list[tuple[Batches, int]] = []
        with segment.open() as file:
            while position < end:
                batches = _window(file, position, next_offset, _of_thread.buffer[: end - position])
                found.append((batches, position))
                position, next_offset = position + int(batches.size.sum()), int(batches.last_offset[-1]) + 1
        return cls._of(segment, found, aborted)

    @classmethod
    def _of(cls, segment: Segment, scanned: Sequence[tuple[Batches, int]], aborted: Aborted) -> Self:
        def column(name: str) -> Longs:
            return np.concatenate([getattr(batches, name) for batches, _ in scanned]).astype(np.int64)

        masks = [(aborted.mask(batches), batches) for batches, _ in scanned]
        is_aborted = np.concatenate([np.zeros(len(batches), np.bool_) if mask is None else mask for mask, batches in masks])
        records, control = column("records"), np.concatenate([batches.control for batches, _ in scanned])
        data, in_control = np.where(control, 0, records), np.where(control, records, 0)
        times = [_times(batches) for batches, _ in scanned]
        return cls(
            segment=segment,
            base_offset=column("base_offset"),
            last_offset=column("last_offset"),
            records=records,
            sizes=column("size"),
            positions=np.concatenate([batches.positions + position for batches, position in scanned]),
            control=control,
            is_aborted=is_aborted,
            max_timestamp=column("max_timestamp"),
            base_timestamp=np.concatenate([base for base, _ in times]),
            append_time=np.concatenate([append for _, append in times]),
            before=(_before(data), _before(np.where(is_aborted, records, 0)), _before(in_control)),
        )

    def batch_of(self, offset: int) -> int:
        """The first batch that ends at an offset or after it; the number of batches if there is none."""
        return int(np.searchsorted(self.last_offset, offset))

    def has_all(self, item: int) -> bool:
        """Whether no record of a batch is missing, so that offsets need not be read."""
        return bool(self.records[item] == self.last_offset[item] - self.base_offset[item] + 1)

    def counts_before(self, item: int) -> Counts:
        """What lies between the beginning of the stretch and a batch, without bytes."""
        data, aborted, control = (int(column[item]) for column in self.before)
        return Counts(data, aborted, control)

    def identity_of(self, item: int) -> tuple[object, ...]:
        """The identity of a batch, which one that takes its place in the same file does not have."""
        columns = (self.positions, self.base_offset, self.last_offset, self.records, self.sizes, self.base_timestamp, self.max_timestamp)
        return (self.segment.identity, *(int(column[item]) for column in columns))

    def record_times(self, item: int) -> Iterator[tuple[int, int]]:
        """Offset and timestamp of each record of a batch, which is opened as they are taken.

        Raises:
            FormatError: it is damaged.
            TooLargeError: it grows beyond `MAX_TIMED_BYTES` before the record that is asked for.
            OSError: the segment cannot be read.
        """
        with self.segment.open() as file:
            data = file.read(int(self.positions[item]), min(int(self.sizes[item]), TIMED_ENTRY_BYTES))
        return read_entry_times(memoryview(data))

    def first_timestamp(self, item: int) -> int | None:
        """The timestamp of the first record of a batch, Unix milliseconds; None if its header does not show it."""
        if self.append_time[item] or self.records[item] == 1:
            return int(self.max_timestamp[item])
        return int(self.base_timestamp[item]) if self.base_timestamp[item] >= 0 else None


def _window(file: OpenSegment, position: int, next_offset: int, buffer: Bytes) -> Batches:
    """At least one batch. Without the sums of `scan_on`, which are most of the work for the few batches that a stretch mostly has."""
    walked = walk(buffer, 0, file.read_into(buffer, position))
    batches = read_headers(buffer, walked.positions)
    if len(batches) and not find_flaws(batches, _FIRST, np.array([next_offset])):
        return batches
    scanned = scan_on(file, position, next_offset, buffer)  # a batch that is larger than the buffer, or bytes that are no batch
    if scanned.sums is None:
        raise FormatError(scanned.flaw or "no whole batch", position)
    return scanned.batches


class _BufferOfThread(threading.local):
    """A buffer for stretches. To take a new one each time would take longer than to read it."""

    def __init__(self) -> None:
        self.buffer: Bytes = np.empty(RUNG_BYTES, np.uint8)


_of_thread = _BufferOfThread()


def _times(batches: Batches) -> tuple[Longs, NDArray[np.bool_]]:
    """The timestamp of the first record of each batch as its header has it, -1 if not; and whether the broker has written its time."""
    headers: Any = batches.headers
    current = batches.magic >= CURRENT_MAGIC
    based = current & (batches.attributes & DELETE_HORIZON_BIT == 0)
    old = np.fromiter((one.tobytes()[_OLD_ATTRIBUTES_AT] for one in headers), np.int16, len(headers)) if not current.all() else None
    attributes = batches.attributes if old is None else np.where(current, batches.attributes, np.where(batches.magic == 1, old, 0))
    base: Longs = np.where(based, headers["base_timestamp"], -1).astype(np.int64)
    return base, (attributes & TIMESTAMP_TYPE_BIT) != 0


def _before(values: Longs) -> Longs:
    """The sum of all values before each one, and of all of them at the end."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])


class OpenedBatches:
    """Remembers answers about opened batches. ``refused``: how many were not given, as a batch is too large to be opened. Thread-safe."""

    def __init__(self) -> None:
        self._answers: OrderedDict[_Key, Answer | str] = OrderedDict()
        self._lock = threading.Lock()
        self.refused = 0

    def ask(self, stretch: Stretch, item: int, question: tuple[str, int], answer: Callable[[], Answer]) -> Answer:
        """The answer to a question about a batch of a stretch, by ``answer`` the first time.

        Raises:
            TooLargeError: the batch is too large; without trying again.
            FormatError, OSError: as ``answer`` raises them. These are not remembered: another attempt may succeed.
        """
        key = (stretch.identity_of(item), question)
        with self._lock:
            known = self._answers.get(key)
            if known is not None:
                self._answers.move_to_end(key)
        if known is None:
            try:
                known = answer()
            except TooLargeError as error:
                known = error.what
                position = int(stretch.positions[item])
                extra = {"path": str(stretch.segment.path), "position": position, "what": known}
                log.warning("a batch is too large to be opened for a time: it is not known", extra=extra)
            with self._lock:
                if key not in self._answers:
                    self.refused += isinstance(known, str)
                self._answers[key] = known
                while len(self._answers) > MOST_ANSWERS:
                    self._answers.popitem(last=False)
        if isinstance(known, str):
            raise TooLargeError(known)
        return known
