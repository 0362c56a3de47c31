"""Reads an ``.index``. Its entries are plausible, but never proven (see `streaming.kafka.formats.segment_indexes`)."""

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from streaming.broker.disk.opening import Calling, open_file
from streaming.kafka.formats.segment_indexes import OFFSET_ENTRY_BYTES, read_offset_entries, unpack_offset_entry
from streaming.kafka.scan.walk import Positions

_MOST_ENTRIES_AT_ONCE = 8192

_USUAL_INTERVAL_BYTES = 4096
"""The usual value of ``index.interval.bytes``. Two entries are further apart than this."""

_BACK = 8
"""How many entries before the end of one window are read for the next window.

A window ends inside a batch, and the next window begins with that batch.
"""

_BLOCK_BYTES = 4096
_BLOCK_ENTRIES = _BLOCK_BYTES // OFFSET_ENTRY_BYTES

_NONE = np.empty(0, np.int64)


@contextmanager
def opened_index(path: Path | str) -> Iterator[int | None]:
    """The descriptor of an index for the duration of a block; None if it cannot be opened."""
    with Calling(path):
        try:
            fd = open_file(path)
        except OSError:  # absent for a new segment, renamed with its segment: everything works without it, but slower
            yield None
            return
        try:
            yield fd
        finally:
            os.close(fd)


def positions_between(path: Path | str, start: int, end: int, near: int = 0) -> tuple[Positions, int]:
    """Positions in ``[start, end)`` of the ``.log`` where an entry begins, none if there is no index; and the number of the next entry.

    Args:
        near: the number that an earlier call returned for an ``end`` near this ``start``: then no search is needed.
    """
    found, last = [_NONE], 0
    at_once = min((end - start) // _USUAL_INTERVAL_BYTES + 2 * _BACK, _MOST_ENTRIES_AT_ONCE)
    with opened_index(path) as fd:
        if fd is None:
            return _NONE, 0
        entry = max(0, near - _BACK)
        if entry == 0 or not 0 < _entry(fd, entry)[1] < start:
            entry = _count_before(fd, lambda _, position: position < start)
        while True:
            data = _read(fd, entry, at_once)
            positions = read_offset_entries(data, last).positions
            found.append(positions)
            if len(positions) < at_once or positions[-1] >= end:
                break
            entry += len(positions)
            last = int(positions[-1])
    entry += int(np.searchsorted(positions, end))
    all_found = np.concatenate(found)
    begin, stop = np.searchsorted(all_found, [start, end])
    return all_found[begin:stop], entry


def _entry(fd: int, number: int) -> tuple[int, int]:
    return unpack_offset_entry(_read(fd, number, 1))


def _read(fd: int, number: int, count: int) -> bytes:
    return os.pread(fd, count * OFFSET_ENTRY_BYTES, number * OFFSET_ENTRY_BYTES)  # it may be cut off in the meantime


def _count_before(fd: int, before: Callable[[int, int], bool]) -> int:
    """The number of entries before the first one without the property, which a preallocated index's zero tail never has.

    One read is enough for the index of a segment that has just begun; else a binary search leads to the block to read.
    """
    low, high, block = 0, _BLOCK_ENTRIES, os.pread(fd, _BLOCK_BYTES, 0)
    if len(block) == _BLOCK_BYTES and _has(block, _BLOCK_ENTRIES - 1, before):
        low, high = _BLOCK_ENTRIES, os.lseek(fd, 0, os.SEEK_END) // OFFSET_ENTRY_BYTES
        while high - low > _BLOCK_ENTRIES:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if _has(_read(fd, middle, 1), 0, before) else (low, middle)
        block = _read(fd, low, high - low)
    return low + bisect_left(range(len(block) // OFFSET_ENTRY_BYTES), True, key=lambda number: not _has(block, number, before))


def _has(entries: bytes, number: int, before: Callable[[int, int], bool]) -> bool:
    offset, position = unpack_offset_entry(entries[number * OFFSET_ENTRY_BYTES : (number + 1) * OFFSET_ENTRY_BYTES])
    return position > 0 and before(offset, position)


def last_entry_below(path: Path | str, offset: int | None) -> tuple[int, int] | None:
    """The last entry (relative offset, position) with an offset below ``offset``, which is relative, too (None: the last entry of all)."""
    with opened_index(path) as fd:
        count = 0 if fd is None else _count_before(fd, lambda entry_offset, _: offset is None or entry_offset < offset)
        return _entry(fd, count - 1) if fd is not None and count else None


def last_entry_upto(path: Path | str, position: int) -> tuple[int, int] | None:
    """The last entry (relative offset, position) at or before a position."""
    with opened_index(path) as fd:
        count = 0 if fd is None else _count_before(fd, lambda _, entry_position: entry_position <= position)
        return _entry(fd, count - 1) if fd is not None and count else None
