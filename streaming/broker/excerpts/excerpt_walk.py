"""Walks the whole and sound batches of an excerpt, window by window, and says what of it was not there to be read."""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from streaming.broker.disk.locate import scan_on, start_at, start_near
from streaming.broker.disk.preallocated import without_half_written, written_end
from streaming.broker.excerpts.excerpt_files import OpenExcerpt
from streaming.broker.protocol.excerpt_messages import Excerpt
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.pieces import Scanned
from streaming.kafka.scan.sums import sum_ranges
from streaming.kafka.scan.walk import Bytes, Stop

LEAST_BYTES = 1 << 20
"""So much is read at once at least: the last batches of an excerpt may end long after it."""


@dataclass(frozen=True, slots=True)
class Unread:
    """The rest of an excerpt, which is no batches: from ``position`` on, so many ``bytes`` of the file.

    ``next_offset``: after the batches before it; ``reason`` in words.
    """

    position: int
    bytes: int
    next_offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class WalkedPart:
    """Batches of an excerpt, one at least. ``position``: of the window in the file; positions in ``scanned`` count from there.

    The bytes are in the buffer until the next part is asked for; of a batch that is larger than the buffer, only the header.
    """

    position: int
    scanned: Scanned

    @property
    def batches(self) -> Batches:
        """The batches, in order."""
        return self.scanned.batches

    @property
    def start(self) -> int:
        """Where the first batch begins in the window."""
        return int(self.scanned.batches.positions[0])


def parts_of(segment: OpenExcerpt, buffer: Bytes) -> Generator[WalkedPart, None, Unread | None]:
    """The batches of an open excerpt; returns what of it cannot be read, None if that is nothing.

    Raises:
        OSError: the file cannot be read.
    """
    excerpt, file = segment.excerpt, segment.file
    position, next_offset = max(start_at(file, excerpt.begin), start_near(file, excerpt.from_offset))
    while position < excerpt.end:
        window = buffer[: max(LEAST_BYTES, min(len(buffer), excerpt.end - position))]
        scanned = scan_on(file, position, next_offset, window, spare_cache=True)
        scanned = without_half_written(file, position, window, 0, scanned, plain=False)
        wanted, passed = _within(excerpt, position, scanned)
        if wanted is not None:
            yield WalkedPart(position, wanted)
        if passed:
            return None
        if scanned.sums is not None:
            position, next_offset = position + scanned.end, scanned.sums.next_offset
        if scanned.flaw is not None or scanned.sums is None:
            return _unread(segment, position, next_offset, scanned)
    return None


def _within(excerpt: Excerpt, position: int, scanned: Scanned) -> tuple[Scanned | None, bool]:
    """The batches of a window that belong to the excerpt, and whether one is there that comes after it."""
    batches = scanned.batches
    at = batches.positions
    first = max(int(np.searchsorted(at, excerpt.begin - position)), int(np.searchsorted(batches.base_offset, excerpt.from_offset)))
    later = np.flatnonzero(batches.leader_epoch > excerpt.until_epoch)
    ends = (np.searchsorted(at, excerpt.end - position), np.searchsorted(batches.base_offset, excerpt.until_offset), *later[:1])
    end = int(min(ends))
    passed = end < len(batches)
    if first >= end:
        return None, passed
    if first == 0 and not passed:
        return scanned, False
    batches = batches.take(slice(first, end))
    reached = int(batches.positions[-1] + batches.size[-1])
    return Scanned(reached, Stop.END, None, batches, sum_ranges(batches, np.zeros(1, np.intp))[0]), passed


def _unread(segment: OpenExcerpt, position: int, next_offset: int, scanned: Scanned) -> Unread | None:
    """What is there from ``position`` on, where no batch follows."""
    excerpt, file, reason = segment.excerpt, segment.file, scanned.flaw
    begin, end = max(position, excerpt.begin), min(excerpt.end, file.size())
    if reason is None and not segment.active:
        written = written_end(file, position) if scanned.stop is Stop.ZEROS else end
        if written > position:
            reason, end = "the segment ends inside a batch although the log goes on after it", min(end, written)
    if reason is None or begin >= end:
        return None
    return Unread(begin, end - begin, next_offset, reason)
