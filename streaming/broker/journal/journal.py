"""The last events of one agent, in order, in memory. Kafka's logs are what lasts: a job that lacks a dropped event reads them again.

``seq`` is the number of an event. Events that are published together are a block. Each event has the running total of the log bytes that
were published up to it, so that one search finds how far a byte budget reaches.
"""

from __future__ import annotations

import threading
import uuid
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import pyarrow as pa

from streaming.broker.journal.blocks import (
    BLOCK_BYTES,
    BLOCK_ROWS,
    AppendedRanges,
    PlacedEvent,
    blob_bytes,
    block_of,
    counted_bytes,
    longs,
    pack,
    part,
    unpack,
)
from streaming.broker.journal.cursor import Cursor
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.errors import FencedError
from streaming.kafka.scan.producer_states import Producers

MOST_BYTES = 64 << 20
"""About so many bytes of packed events are kept; 90 to 200 bytes are one range of a log."""

BLOCKS_AT_ONCE = 8
"""So many blocks are unpacked for one range, however long it is."""


class Journal:
    """The events of one agent. Thread-safe.

    Args:
        most_bytes: about the most bytes of packed events. The oldest are dropped.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.id = str(uuid.uuid4())
        self._most_bytes = most_bytes
        self._lock = threading.RLock()
        self._published = threading.Condition(self._lock)
        self.full_bytes = most_bytes // 2
        """No more is read of logs while the job that has come furthest has so many bytes of events before it: it reads no faster."""
        self._blocks: list[_Block] = []
        self._size = 0
        self._upto = 0
        self._dropped = self._end = Point(0, 0)
        self._stands: dict[LogKey, Stand] = {}
        self.begun = False
        """Whether any job has begun: where logs are read from is decided."""
        self._fenced: weakref.WeakSet[threading.Thread] = weakref.WeakSet()

    # --- writing

    def publish(
        self,
        events: Sequence[Event],
        stands: Iterable[Stand] = (),
        gone: Iterable[LogKey] = (),
        begun: Begun | None = None,
        ranges: AppendedRanges | None = None,
    ) -> None:
        """Append events, and take over how far the logs are published with them.

        Args:
            gone: the logs that are not watched any more.
            begun: of a job whose beginning these events are.
            ranges: further events, which come after the others.

        Raises:
            FencedError: another thread has replaced this one.
        """
        with self._lock:
            if threading.current_thread() in self._fenced:
                raise FencedError("this thread was replaced by another one")
            if begun is not None:
                begun.seq, self.begun = self._end.seq, True
            for placed in _blocks(events, self._end):
                self._append(block_of(placed))
            if ranges is not None:
                self._append(ranges.placed(self._end.seq, self._end.total))
            self._stands.update((stand.cursor.log, stand) for stand in stands)
            for log in gone:
                self._stands.pop(log, None)
            self._drop()
            if events or ranges is not None:
                self._published.notify_all()

    def _append(self, rows: pa.RecordBatch) -> None:
        first, last, total = int(rows["seq"][0].as_py()), int(rows["seq"][-1].as_py()), int(rows["total"][-1].as_py())
        packed = pack(rows)
        self._upto += len(packed)
        self._blocks.append(_Block(first, last, total, self._upto, packed))
        self._size += len(packed)
        self._end = Point(last, total)

    def _drop(self) -> None:
        """Drop the oldest blocks, but never the last one."""
        count = 0
        while self._size > self._most_bytes and count < len(self._blocks) - 1:
            self._size -= self._blocks[count].size
            self._dropped = Point(self._blocks[count].last, self._blocks[count].total)
            count += 1
        del self._blocks[:count]

    def fence(self, thread: threading.Thread) -> None:
        """Prevent all further publications of a thread. Waits until one in progress is done."""
        with self._lock:
            self._fenced.add(thread)

    def clear(self) -> None:
        """Drop all events: no job waits for them."""
        with self._lock:
            self._blocks.clear()
            self._size, self._dropped = 0, self._end

    # --- what a watcher that replaces another one goes on from

    def cursors(self) -> list[Cursor]:
        """How far each log is published."""
        with self._lock:
            return [stand.cursor for stand in self._stands.values()]

    def producers(self, log: LogKey) -> Producers | None:
        """The producers of a log where its cursor is, None if they are not known."""
        with self._lock:
            stand = self._stands.get(log)
            return None if stand is None else stand.producers

    # --- reading

    def end(self) -> Point:
        """The point up to which events are published."""
        return self._end

    def dropped(self) -> Point:
        """The point up to which events are dropped."""
        return self._dropped

    def size(self) -> int:
        """About how many bytes the events take."""
        return self._size

    def size_after(self, seq: int) -> int:
        """About how many bytes the events after a seq take."""
        with self._lock:
            first = self._with_row_after(seq)
            return self._upto - self._blocks[first - 1].upto if first else self._size

    def reach(self, after: int, budget: int | None) -> Point:
        """How far ``budget`` bytes of logs reach after seq ``after`` (None: to the end).

        At least one event is always included, or a job would never go on.
        """
        with self._lock:
            begin = self.at(after)
            if budget is None or self._end.total - begin.total <= budget:
                return self._end
            limit = begin.total + budget
            first = self._with_row_after(after)
            over = bisect_right(self._blocks, limit, lo=first, key=attrgetter("total"))  # the first block that does not fit as a whole
            block = self._blocks[over]
        rows = part(block.batch, after, block.last)
        fitting = int(np.searchsorted(longs(rows, "total"), limit, side="right"))
        if fitting == 0 and over > first:
            return Point(block.first - 1, self._blocks[over - 1].total)
        at = max(fitting - 1, 0)
        return Point(int(longs(rows, "seq")[at]), int(longs(rows, "total")[at]))

    def at(self, seq: int) -> Point:
        """The point of an event that is there, or that was dropped last."""
        with self._lock:
            if seq <= self._dropped.seq:
                return self._dropped
            if seq >= self._end.seq:
                return self._end
            block = self._blocks[self._with_row_after(seq - 1)]
        rows = part(block.batch, seq - 1, seq)
        return Point(seq, int(longs(rows, "total")[-1]))

    def blocks(self, after: int, upto: int, most: int | None = None) -> list[pa.RecordBatch]:
        """The events with ``after < seq <= upto``, in order: columns of `streaming.broker.journal.blocks.BLOCK`.

        Args:
            most: the most blocks, None for all of them.
        """
        with self._lock:
            first = self._with_row_after(after)
            found = self._blocks[first : bisect_right(self._blocks, upto, lo=first, key=attrgetter("first"))][:most]
        return [part(block.batch, after, upto) for block in found]

    def wait(self, seconds: float) -> bool:
        """Wait until something is published; returns False when ``seconds`` have passed without."""
        with self._published:
            return seconds > 0 and self._published.wait(seconds)

    def _with_row_after(self, seq: int) -> int:
        """The number of the block with the first row after a seq."""
        return bisect_right(self._blocks, seq, key=attrgetter("last"))


@dataclass(frozen=True, slots=True)
class _Block:
    first: int
    last: int
    total: int  # at its end
    upto: int  # the bytes of all blocks so far, dropped ones included
    rows: bytes

    @property
    def size(self) -> int:
        return len(self.rows)

    @property
    def batch(self) -> pa.RecordBatch:
        return unpack(self.rows)


@dataclass(frozen=True, slots=True)
class Point:
    """A point in a journal: everything up to and with ``seq``. ``total``: the bytes of logs published up to there since its beginning."""

    seq: int
    total: int


@dataclass(frozen=True, slots=True)
class Stand:
    """How far a log is published, and its producers there, None if they are not known."""

    cursor: Cursor
    producers: Producers | None


class Begun:
    """The beginning of a job: everything that is published for it comes after ``seq``, once ``done`` is set."""

    def __init__(self) -> None:
        self.seq = -1
        self.done = threading.Event()


def _blocks(events: Iterable[Event], end: Point) -> Iterator[list[PlacedEvent]]:
    """The rows of events that come after ``end``, a block at a time."""
    block: list[PlacedEvent] = []
    seq, total, size = end.seq, end.total, 0
    for event in events:
        seq, total, size = seq + 1, total + counted_bytes(event), size + blob_bytes(event)
        block.append(PlacedEvent(seq, total, event))
        if len(block) == BLOCK_ROWS or size >= BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block
