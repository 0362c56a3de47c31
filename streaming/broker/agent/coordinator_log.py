"""Follows one log of a group coordinator: reads it from its first byte up to what the watcher has published of it, then on, in pieces.

It begins again when reading did not simply go on for the watcher, as after a truncation, and after bytes that are no batch. A log that was
away is begun again too: tombstones that were written meanwhile may be cleaned by then.
"""

import threading
from collections.abc import Callable, Iterator

import numpy as np

from streaming.broker.disk.replay import batches_between
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.protocol.group_messages import FollowedLog, Following, KnownLog
from streaming.broker.watcher.tail import Tail
from streaming.errors import FormatError
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.kafka.groups.replays import Replay
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes

PIECE_BYTES = 512 << 10
"""How much is read and parsed at once: other threads wait for parts of that time."""

LARGEST_BATCH_BYTES = 256 << 20


class ReplayedLog:
    """One log under one tail. One thread calls `step`; others may call `answer`.

    Args:
        new: makes an empty replay with a new edition.
    """

    def __init__(self, tail: Tail, new: Callable[[], Replay]) -> None:
        self.tail = tail
        self._new = new
        self._lock = threading.Lock()  # protects the replay; it is never held while a file is read
        self._breaks = tail.breaks
        self._replay = new()
        self._read = False
        self._pieces: Iterator[tuple[Batches, int]] | None = None
        self._buffer: Bytes | None = None
        self._end = 0  # where the pieces end

    @property
    def unread(self) -> bool:
        """Whether something is published that is not replayed, as far as this can be known without a call into the log dir."""
        return not self._read or self.tail.breaks != self._breaks or self._replay.upto < published(self.tail)

    @property
    def read(self) -> bool:
        """Whether it was read up to what was published at some moment."""
        return self._read

    def step(self, buffer: Bytes) -> bool:
        """Read one piece; returns whether there is more.

        Args:
            buffer: the same one at each call, as pieces remain in it.

        Raises:
            FormatError: there is something else than a batch, with file and position.
            OSError: the log cannot be read now.
        """
        if self.tail.breaks != self._breaks:
            self.begin_again()
        if self._pieces is None:
            self._end = published(self.tail)
            if self._replay.upto >= self._end:
                self._read = True
                return False
            self._open(buffer)
        assert self._pieces is not None
        piece = next(self._pieces, None)
        if self.tail.breaks != self._breaks:  # what was just read may be of either log
            return True
        if piece is None:
            self._pieces = self._buffer = None
            with self._lock:
                self._replay.advance(self._end)  # offsets before it were cleaned
            return True
        self._take(piece[0])
        return True

    def _take(self, batches: Batches) -> None:
        assert self._buffer is not None
        needed = int(batches.positions[-1] + batches.size[-1])
        if needed <= len(self._buffer):
            apply = self._replay.read(batches, self._buffer)
            with self._lock:
                apply()
            return
        if needed > LARGEST_BATCH_BYTES:
            raise FormatError(f"a batch of {needed} bytes at offset {batches.base_offset[-1]}")
        self._open(np.empty(needed, np.uint8))  # of a batch that is larger than the buffer only the header was read

    def _open(self, buffer: Bytes) -> None:
        self._buffer = buffer
        self._pieces = batches_between(list_segments(self.tail.partition.path), self._replay.upto, self._end, buffer)

    def adopt(self, tail: Tail) -> bool:
        """Go on under the tail of another watcher, which goes on from the journal; False if it found another log there."""
        if tail.breaks or self.tail.breaks != self._breaks or tail.cursor.next_offset < self._replay.upto:
            return False
        self.tail, self._breaks = tail, 0
        return True

    def begin_again(self) -> None:
        """Forget everything, and read it again from the first byte."""
        with self._lock:
            self._replay.close()
            self._replay = self._new()
            self._read = False
        self._breaks = self.tail.breaks
        self._pieces = self._buffer = None

    def close(self) -> None:
        """Give back what it takes of the limit of groups. Nothing may be called after that but `answer`."""
        with self._lock:
            self._replay.close()
            self._read = False

    def answer(self, request: KnownLog | None) -> GroupChanges | FollowedLog:
        """The changes since the version that a job knows."""
        with self._lock:
            if not self._read or self.tail.breaks != self._breaks:
                return followed(self.tail, Following.READING)
            replay = self._replay
            return replay.changes(request.version if request is not None and request.edition == replay.edition else 0)


def published(tail: Tail) -> int:
    """Up to which offset the journal has a log, 0 if it has nothing of it."""
    cursor = tail.stored_cursor
    return 0 if cursor is None else cursor.next_offset


def followed(tail: Tail, following: Following) -> FollowedLog:
    """A log whose commits are not known now."""
    log = tail.cursor.log
    return FollowedLog(broker=log.broker, topic=log.topic, topic_id=log.topic_id, coordinator=log.partition, following=following)
