"""Scans a segment window by window, whatever the size of its batches, up to what is written of a preallocated one."""

import zlib
from dataclasses import replace
from mmap import PAGESIZE, mmap

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.opening import note_read
from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.kafka.formats.layout import (
    CHECKED_FROM,
    CURRENT_MAGIC,
    HEADER_BYTES,
    MAGIC_AT,
    OLD_CHECKED_FROM,
    PREFIX_BYTES,
    has_right_crc,
)
from streaming.kafka.scan.headers import Batches, batches_of, find_flaws
from streaming.kafka.scan.pieces import MAX_SEGMENT_BYTES, Piece, Scanned, scan, scan_header
from streaming.kafka.scan.soundness import stored_crcs, wrong_crcs
from streaming.kafka.scan.sums import sum_ranges
from streaming.kafka.scan.walk import Bytes, Stop, batch_size_at

WINDOW_BYTES = 8 << 20
"""How much of a segment is read at once. Bytes that stay in the processor's cache are walked twice as fast as others."""

SEEDED_BYTES = 1 << 20
"""For less than this, the plain walk is as fast as reading the index."""

_FIRST = np.zeros(1, np.intp)

BLOCK_BYTES = 4096
"""Fewer zeros than this at the end of a file may be the end of a record."""

_LOOK_BYTES = 1 << 20

BAD_CRC = "bad CRC"

_NONE = np.empty(0, np.intp)


def damaged_batches(file: OpenSegment, position: int, scanned: Scanned, buffer: Bytes) -> NDArray[np.intp]:
    """The items of ``scanned.batches`` whose bytes do not have the CRC of their header, ascending.

    Which batches of a file are damaged although a scan of their headers passes them: those without the CRC of their header. With the
    flaws of that scan this is all that damaged means for who reads a log: Kafka's consumer stops at either. What is counted from disk
    goes by it, and so does the check of the batch that a group reads next. The scrub and ``segtail dump --verify`` report the same,
    and more.

    Bytes that seem damaged are read once more: if they are whole then, the disk is not damaged.

    Args:
        position: of the window in the file.
        buffer: holds what was scanned, and is not needed afterwards.

    Raises:
        OSError: the file cannot be read.
    """
    if scanned.end > len(buffer):
        return _NONE if _large_is_whole(file, position, scanned.batches, buffer) else _FIRST
    wrong = wrong_crcs(buffer, scanned.batches)
    if not len(wrong):
        return wrong
    size = file.read_into(buffer, position)
    return wrong_crcs(buffer, scanned.batches) if size >= scanned.end else wrong


def _large_is_whole(file: OpenSegment, position: int, batch: Batches, buffer: Bytes) -> bool:
    """Whether a batch that is larger than the buffer has its CRC: it is read piece by piece."""
    current = int(batch.magic[0]) == CURRENT_MAGIC
    at, end = position + (CHECKED_FROM if current else OLD_CHECKED_FROM), position + int(batch.size[0])
    crc = 0
    while at < end:
        size = file.read_into(buffer, at, spare_cache=True)
        if not size:
            return False
        piece = buffer[: min(size, end - at)]
        crc = google_crc32c.extend(crc, piece) if current else zlib.crc32(piece.data, crc)
        at += len(piece)
    return crc == int(stored_crcs(batch)[0])


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


def scan_headers_on(
    file: OpenSegment, position: int, next_offset: int, size: int, *, plain: bool, spare_cache: bool = False
) -> Scanned | None:
    """Scan up to ``size`` bytes of a segment by their headers alone, where that costs less (`OpenSegment.plain_headers`).

    Args:
        plain: as in `streaming.broker.disk.scanning.without_half_written`.
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


def written_end(file: OpenSegment, position: int) -> int:
    """Where the written part of a file ends: at the last byte that is not zero, at ``position`` at least. Raises OSError.

    Of a file whose zeros are stored (a copy), one look after ``position`` decides: if it is full of data, the size of the file counts.
    """
    size = file.size()
    if size <= position or any(file.read(max(position, size - BLOCK_BYTES), BLOCK_BYTES)):
        return size
    end = file.stored_end(position)
    begin = max(position, end - BLOCK_BYTES)
    written = _without_zeros(file, begin, end)
    if written > begin or begin == position:
        return written
    end = min(end, position + _LOOK_BYTES)
    written = _without_zeros(file, position, end)
    return written if end - written >= BLOCK_BYTES else size


def _without_zeros(file: OpenSegment, begin: int, end: int) -> int:
    return begin + len(file.read(begin, end - begin).rstrip(b"\0"))


def has_data(segment: Segment) -> bool:
    """Whether anything is written in a segment. Raises OSError."""
    if not segment.size:
        return False
    with segment.open() as file:
        return any(file.read(0, PREFIX_BYTES))


def without_half_written(file: OpenSegment, position: int, buffer: Bytes, start: int, scanned: Scanned, *, plain: bool) -> Scanned:
    """The batches scanned from ``start`` of the buffer, without the last one if it is half written. Raises OSError.

    The written part of a preallocated file: its size does not show it, and the length of its last batch does not show that this is
    whole. A writer is at one position of a file only, so only the last batch before the zeros can be half written: only its CRC shows
    it.

    Args:
        position: the position of ``start`` in the file.
        plain: the file is known not to be preallocated: everything up to its size is written.
    """
    if scanned.sums is None or scanned.flaw is not None or not _in_doubt(file, position - start, scanned, plain):
        return scanned
    if _is_whole(buffer, scanned):
        return scanned
    at = scanned.anchor_position
    if at == start:
        return Scanned(start, Stop.ZEROS, None, scanned.batches.take(slice(0, 0)), None)
    return replace(scan(buffer, [Piece(start, at, int(scanned.batches.base_offset[0]))])[0], stop=Stop.ZEROS)


def _in_doubt(file: OpenSegment, shift: int, scanned: Scanned, plain: bool) -> bool:
    if scanned.stop is Stop.END and not plain:
        return not any(file.read(shift + scanned.end, PREFIX_BYTES))  # a preallocated file may also be full to its last byte
    return scanned.stop is Stop.ZEROS


def _is_whole(buffer: Bytes, scanned: Scanned) -> bool:
    at, end = scanned.anchor_position, scanned.end
    if end > len(buffer):  # larger than a window: counted by its header, as soon as the file reaches its end
        return True
    return has_right_crc(buffer[at:end].data)
