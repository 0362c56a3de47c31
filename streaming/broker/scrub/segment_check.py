"""Checks one closed segment window by window. The file is open only while a window is read: it may be deleted meanwhile."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from mmap import PAGESIZE

import google_crc32c
import numpy as np

from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.kafka.formats.checkpoint_files import EpochEntry
from streaming.kafka.formats.crc import CHECKED_FROM, OLD_CHECKED_FROM
from streaming.kafka.formats.entry_head import read_base_offset, read_crc, read_leader_epoch, read_size
from streaming.kafka.formats.layout import CURRENT_MAGIC, HEADER_BYTES, MAGIC_AT
from streaming.kafka.scan.headers import columns_of, raw_headers
from streaming.kafka.scan.soundness import CheckPosition, Damage, Fault, SegmentFacts, check_batches, check_end, check_order
from streaming.kafka.scan.walk import Bytes, Stop

WINDOW_BYTES = 1 << 20
"""How many bytes are read between two rests."""

_SEEDED_BYTES = WINDOW_BYTES // 2
"""For fewer bytes than this, a walk from batch to batch is as fast as using the index."""


class ChangedError(Exception):
    """The segment is no longer the file that was listed: deleted, compacted, moved, truncated. The findings of its check do not count."""


@dataclass(slots=True)
class _Large:
    """A batch that is larger than a window. Its CRC is computed in pieces."""

    begin: int
    end: int
    header: bytes
    position: int
    crc: int = 0


class SegmentCheck:
    """A check that goes on from window to window; ``done`` when the end is reached.

    Args:
        following: the segment after it.
        epochs: the leader epochs of the log.
        position: where an earlier process stopped; a batch begins there.
    """

    def __init__(self, segment: Segment, following: Segment, epochs: Sequence[EpochEntry], position: int = 0) -> None:
        self.segment, self.following = segment, following
        self.done = False
        self.checked = 0
        """The number of checked bytes; bytes in which no batch was found do not count."""
        self._around = SegmentFacts(segment.base_offset, following.base_offset, epochs)
        self._reached = CheckPosition(position, segment.base_offset)
        self._large: _Large | None = None
        self._search_from: int | None = None

    @property
    def position(self) -> int:
        """The first byte that has not been checked. A batch begins there, or no batch was found from there on."""
        return self._reached.position

    def advance(self, buffer: Bytes) -> tuple[Damage, ...]:
        """Check one window. A window that seems damaged is read once more: if it is whole then, the disk is not damaged.

        Raises:
            ChangedError: the file is another one by now.
            OSError: the file cannot be read.
        """
        try:
            file = self.segment.open()
        except FileNotFoundError as error:
            raise ChangedError from error
        with file:
            self._refuse_changed(file)
            found = self._window(file, buffer)
            self._refuse_changed(file)
            return found

    def _refuse_changed(self, file: OpenSegment) -> None:
        segment = self.segment
        if (file.identity, file.size(), file.modified_ms()) != (segment.identity, segment.size, segment.modified_ms):
            raise ChangedError

    def _window(self, file: OpenSegment, buffer: Bytes) -> tuple[Damage, ...]:
        if self._large is not None:
            return self._go_through(self._large, file, buffer)
        if self._search_from is not None:
            return self._search(self._search_from, file, buffer)
        at = self._reached
        window = _read(file, buffer, at.position)
        size = len(window)
        seeds = file.seeds(at.position, at.position + size) - at.position if size >= _SEEDED_BYTES else None
        checked = check_batches(window, at, self._around, seeds)
        if checked.damages:
            window = _read(file, buffer, at.position)
            checked = check_batches(window, at, self._around, seeds)
        self._reached = checked.reached
        self.checked += self.position - at.position
        if checked.stop is Stop.END:
            return checked.damages + self._at_end() if self.position >= self.segment.size else checked.damages
        if checked.stop is Stop.SHORT and checked.reached.position > at.position:
            return checked.damages
        return checked.damages + self._unwhole(checked.stop, window[checked.reached.position - at.position :])

    def _at_end(self) -> tuple[Damage, ...]:
        self.done = True
        return check_end(self._reached, _first_epoch(self.following))

    def _unwhole(self, stop: Stop, rest: Bytes) -> tuple[Damage, ...]:
        """Begin with bytes that are no batch, or a batch that is larger than a window; ``rest``: the part of them that was read."""
        begin, head = self.position, rest[:HEADER_BYTES].tobytes()
        size = read_size(head)
        whole = stop is Stop.SHORT and len(head) > MAGIC_AT and begin + size <= self.segment.size
        if whole and head[MAGIC_AT] <= CURRENT_MAGIC:
            at = begin + (CHECKED_FROM if head[MAGIC_AT] == CURRENT_MAGIC else OLD_CHECKED_FROM)
            self._large = _Large(begin, begin + size, head, at)
            return ()
        self._search_from = begin + 1
        return (Damage(Fault.FRAMING, begin, self._reached.next_offset),)

    def _go_through(self, large: _Large, file: OpenSegment, buffer: Bytes) -> tuple[Damage, ...]:
        """Check one more window of a batch that is larger than a window."""
        window = _read(file, buffer, large.position)[: large.end - large.position]
        if not len(window):
            raise ChangedError
        current = large.header[MAGIC_AT] == CURRENT_MAGIC
        large.crc = google_crc32c.extend(large.crc, window) if current else zlib.crc32(window.data, large.crc)
        large.position += len(window)
        if large.position < large.end:
            return ()
        self._large, self.checked = None, self.checked + large.end - large.begin
        stored = read_crc(large.header)
        found: tuple[Damage, ...] = ()
        if stored != large.crc:
            found = (Damage(Fault.CRC, large.begin, read_base_offset(large.header)),)
            self._reached = replace(self._reached, position=large.end)
        else:
            batches = columns_of(np.zeros(1, np.int64), raw_headers(np.frombuffer(large.header, np.uint8), np.zeros(1, np.int64)))
            if not current:  # a message of an old format contains its number of records inside: its own offset is that of the last one
                batches.last_offset[:] = batches.base_offset
            reached, order = check_order(batches, self._reached, self._around)
            self._reached, found = replace(reached, position=large.end), tuple(order)
        return found

    def _search(self, begin: int, file: OpenSegment, buffer: Bytes) -> tuple[Damage, ...]:
        """Find the next batch that the index names and whose CRC is right. If there is none, the check of the segment is done."""
        seeds = file.seeds(begin, self.segment.size)
        if not len(seeds):
            self._reached = replace(self._reached, position=self.segment.size)
            self.done = True
            return ()
        first = int(seeds[0])
        window = _read(file, buffer, first)
        for seed in seeds[seeds < first + len(window)].tolist():
            if self._is_sound(window[seed - first :]):
                self._reached, self._search_from = CheckPosition(seed, self._reached.next_offset, last=None), None
                return ()
            self._search_from = seed + 1
        return ()

    def _is_sound(self, window: Bytes) -> bool:
        """Whether a window begins with a whole batch of this segment."""
        head = window[:HEADER_BYTES].tobytes()
        size = read_size(head)
        if not MAGIC_AT < size <= len(window):
            return False
        checked = check_batches(window[:size], CheckPosition(0, self._around.base_offset), self._around)
        return checked.reached.position == size and not checked.damages


def _read(file: OpenSegment, buffer: Bytes, position: int) -> Bytes:
    """The bytes from a position on. The buffer begins with the position's page, so fewer bytes may fit.

    Windows have whole pages: if a page is read in part, the kernel frees neither it nor the memory that is in one piece with it.
    """
    begin = position // PAGESIZE * PAGESIZE if len(buffer) >= 2 * PAGESIZE else position
    size = file.read_into(buffer, begin, spare_cache=True)
    return buffer[position - begin : max(size, position - begin)]


def _first_epoch(segment: Segment) -> int:
    """The leader epoch of a segment's first batch; -1 if there is no batch yet, or its format has no leader epoch."""
    try:
        with segment.open() as file:
            page = _read(file, np.empty(2 * PAGESIZE, np.uint8), 0)
    except OSError:  # it is gone or cannot be read: its own check reports that
        return -1
    return read_leader_epoch(page[:HEADER_BYTES].tobytes())
