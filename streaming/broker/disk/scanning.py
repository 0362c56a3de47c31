"""Scans a segment window by window, whatever the size of its batches."""

from mmap import PAGESIZE, mmap

import numpy as np

from streaming.broker.disk.calls import note_read
from streaming.broker.disk.segment_files import OpenSegment
from streaming.kafka.formats.layout import CURRENT_MAGIC, HEADER_BYTES, MAGIC_AT
from streaming.kafka.scan.headers import find_flaws
from streaming.kafka.scan.pieces import MAX_SEGMENT_BYTES, Piece, Scanned, scan, scan_header
from streaming.kafka.scan.sums import sum_ranges
from streaming.kafka.scan.walk import Bytes, Stop, batch_size_at
from streaming.kafka.scan.whole_pieces import batches_of

WINDOW_BYTES = 8 << 20
"""How much of a segment is read at once. Bytes that stay in the processor's cache are walked twice as fast as others."""

SEEDED_BYTES = 1 << 20
"""For less than this, the plain walk is as fast as reading the index."""

_FIRST = np.zeros(1, np.intp)


def window() -> Bytes:
    """Create a buffer to scan through.

    It begins at the start of a page, as a file does. Allocated memory begins 16 bytes into a page, and then whole pages are copied at half
    the speed, because the processor delays each load for the store 4 KiB before it.
    """
    memory = np.empty(WINDOW_BYTES + PAGESIZE, np.uint8)
    skipped = -memory.ctypes.data % PAGESIZE
    return memory[skipped : skipped + WINDOW_BYTES]


def kept_window(size: int = WINDOW_BYTES) -> Bytes:
    """A buffer of a thread that keeps it: it takes memory as far as something was read into it, page by page.

    numpy has the kernel back its own with pages of 2 MiB, so a buffer into which only a few batches are ever read takes as much. But one
    that is made, filled and dropped again costs less that way.
    """
    return np.frombuffer(mmap(-1, size), np.uint8)


def scan_on(file: OpenSegment, position: int, next_offset: int, buffer: Bytes, *, spare_cache: bool = False) -> Scanned:
    """Scan the part of a segment from ``position`` that fits into ``buffer``. Positions in the result count from there.

    Raises:
        OSError: the file cannot be read.
    """
    size = file.read_into(buffer, position, spare_cache=spare_cache)
    seeds = file.seeds(position, position + size) - position if size >= SEEDED_BYTES else None
    scanned = scan(buffer, [Piece(0, size, next_offset, seeds, MAX_SEGMENT_BYTES - position)])[0]
    if scanned.sums is None and scanned.stop is Stop.SHORT and scanned.flaw is None and size == len(buffer):
        return _scan_large(file, position, next_offset, buffer)
    return scanned


def scan_headers_on(
    file: OpenSegment, position: int, next_offset: int, size: int, *, plain: bool, spare_cache: bool = False
) -> Scanned | None:
    """Scan up to ``size`` bytes of a segment by their headers alone, where that costs less (`OpenSegment.plain_headers`).

    Args:
        plain: as in `streaming.broker.disk.preallocated.without_half_written`.
        spare_cache: as in `OpenSegment.plain_headers`.

    Returns:
        What `scan_on` would return for a buffer of this size, into which nothing is read. None where headers are not enough, and the bytes
        have to be scanned: there is anything else than plain, sound and whole batches.

    Raises:
        OSError: the file cannot be read.
    """
    end = min(position + size, file.size())
    headers, reached = file.plain_headers(position, end, spare_cache=spare_cache)
    cut = reached > end  # the last batch goes on behind the end
    if reached < end or (reached == end and not plain) or reached > MAX_SEGMENT_BYTES or len(headers) <= cut:
        return None
    batches = batches_of(headers)
    if find_flaws(batches, _FIRST, np.array([next_offset])):
        return None
    batches = batches.take(slice(0, len(headers) - cut))
    passed = int(batches.size.sum())
    note_read(passed)  # what bounds the bytes of a poll, and their pace, is for those that are passed over, too
    return Scanned(passed, Stop.SHORT if cut else Stop.END, None, batches, sum_ranges(batches, _FIRST)[0])


def _scan_large(file: OpenSegment, position: int, next_offset: int, buffer: Bytes) -> Scanned:
    """Scan one batch that is larger than the buffer. Its header has everything that is counted, once the file reaches to its end."""
    head = buffer[:HEADER_BYTES].tobytes()
    size = batch_size_at(head)
    if position + size > file.size():
        return Scanned(0, Stop.SHORT, None, scan(buffer[:0], [Piece(0, 0, next_offset)])[0].batches, None)
    if head[MAGIC_AT] == CURRENT_MAGIC:
        return scan_header(head, next_offset)
    whole = np.frombuffer(file.read(position, size), np.uint8)  # the counted values of an old message are inside it
    return scan(whole, [Piece(0, len(whole), next_offset)])[0]
