"""Reads a group coordinator's log into a replay, in pieces, and notices what was cleaned before it could be read.

One pass reads what is published at its beginning, from files that were all there at once. The next pass reads other files: if the cleaner
was between the two, a tombstone may be gone that deletes what the first one has read (`delete.retention.ms`). Then offsets are missing.
"""

from collections.abc import Iterator
from threading import Lock

import numpy as np

from streaming.broker.disk.replay import LARGEST_BATCH_BYTES, batches_between
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.watcher.tail import Tail
from streaming.errors import FormatError
from streaming.kafka.formats.layout import CURRENT_MAGIC
from streaming.kafka.groups.replays import Replay
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes


class ReplayReading:
    """One replay of a log under one tail, from its first byte. One thread uses it.

    Args:
        lock: is held while the replay changes, and never while a file is read.
    """

    def __init__(self, tail: Tail, replay: Replay, lock: Lock) -> None:
        self.replay = replay
        self._tail, self._breaks = tail, tail.breaks
        self._lock = lock
        self._pieces: Iterator[tuple[Batches, int]] | None = None
        self._buffer: Bytes | None = None
        self._end = 0  # where the pass ends
        self._whole = 0  # where the first pass ended: before that, all was cleaned before anything was read
        self._cleaned = False

    @property
    def broken(self) -> bool:
        """Whether the watcher did not simply go on since this began: then it is of no more use."""
        return self._tail.breaks != self._breaks

    @property
    def has_more(self) -> bool:
        """Whether something is published that is not replayed."""
        return self.replay.upto < published(self._tail)

    def took_cleaned(self) -> bool:
        """Whether records were cleaned, since the last such question, between what one pass and a later one has read."""
        cleaned, self._cleaned = self._cleaned, False
        return cleaned

    def adopt(self, tail: Tail) -> bool:
        """Go on under the tail of another watcher, which goes on from the journal; False if it found another log there."""
        if tail.breaks or self.broken or tail.cursor.next_offset < self.replay.upto:
            return False
        self._tail, self._breaks = tail, 0
        return True

    def step(self, buffer: Bytes) -> bool:
        """Read one piece; returns whether there is more.

        Args:
            buffer: the same one at each call, as pieces remain in it.

        Raises:
            FormatError: there is something else than a batch, with file and position.
            OSError: the log cannot be read now.
        """
        if self._pieces is None:
            self._end = published(self._tail)
            if self.replay.upto >= self._end:
                return False
            self._whole = self._whole or self._end
            self._open(buffer)
        assert self._pieces is not None
        piece = next(self._pieces, None)
        if self.broken:  # what was just read may be of either log
            return True
        if piece is None:
            self._pieces = self._buffer = None
            self._cleaned |= self._whole <= self.replay.upto < self._end
            with self._lock:
                self.replay.advance(self._end)
            return True
        self._take(piece[0])
        if self.replay.upto >= self._end:
            self._pieces = self._buffer = None  # no file stays open while nothing is published
        return True

    def _take(self, batches: Batches) -> None:
        assert self._buffer is not None
        needed = int(batches.positions[-1] + batches.size[-1])
        if needed <= len(self._buffer):
            apply = self.replay.read(batches, self._buffer)
            self._cleaned |= self._misses(batches)
            with self._lock:
                apply()
            return
        if needed > LARGEST_BATCH_BYTES:
            raise FormatError(f"a batch of {needed} bytes at offset {batches.base_offset[-1]}")
        self._open(np.empty(needed, np.uint8))  # of a batch that is larger than the buffer only the header was read

    def _open(self, buffer: Bytes) -> None:
        self._buffer = buffer
        self._pieces = batches_between(list_segments(self._tail.partition.path), self.replay.upto, self._end, buffer)

    def _misses(self, batches: Batches) -> bool:
        """Whether offsets of a later pass are in no record, between batches or in them: a broker appends without gaps."""
        before = np.append(self.replay.upto, batches.last_offset[:-1] + 1)
        offsets = batches.last_offset + 1 - np.minimum(batches.base_offset, before)
        missing = (offsets > batches.records) & (batches.magic == CURRENT_MAGIC)
        return bool((missing & (before >= self._whole)).any())


def published(tail: Tail) -> int:
    """Up to which offset the journal has a log, 0 if it has nothing of it."""
    cursor = tail.stored_cursor
    return 0 if cursor is None else cursor.next_offset
