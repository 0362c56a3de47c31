"""A read-only look into an ``.index``: what it says is plausible, never proven (see `streaming.kafka.index`)."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct

import numpy as np

from streaming.disk.calls import Calling
from streaming.kafka.index import ENTRY_BYTES, read_offset_entries
from streaming.kafka.walk import Positions

_CHUNK_ENTRIES = 8192
_ENTRY = Struct(">ii")


def positions_between(path: Path, start: int, end: int) -> Positions:
    """Positions in ``[start, end)`` of the ``.log`` where an entry begins; none where there is no index."""
    found, last = [np.empty(0, np.int64)], 0
    with Calling(path), _opened(path) as fd:
        entry = 0 if fd is None else _count_before(fd, lambda _, position: position < start)
        while fd is not None:
            data = os.pread(fd, _CHUNK_ENTRIES * ENTRY_BYTES, entry * ENTRY_BYTES)
            positions = read_offset_entries(data, last).positions
            found.append(positions)
            entry += len(positions)
            if len(positions) < _CHUNK_ENTRIES or positions[-1] >= end:
                break
            last = int(positions[-1])
    all_found = np.concatenate(found)
    return all_found[(all_found >= start) & (all_found < end)]


def last_entry_below(path: Path, offset: int | None) -> tuple[int, int] | None:
    """The last entry (relative offset, position) whose offset is below ``offset``, a relative one too (None: the last entry of all)."""
    with Calling(path), _opened(path) as fd:
        count = 0 if fd is None else _count_before(fd, lambda entry_offset, _: offset is None or entry_offset < offset)
        return _entry(fd, count - 1) if fd is not None and count else None


@contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # absent on a fresh segment, renamed with a deleted one: everything works without it, slower
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _count_before(fd: int, before: Callable[[int, int], bool]) -> int:
    """Binary search: how many entries lie before the first one that does not; the zero tail of a preallocated index does not."""
    low, high = 0, os.lseek(fd, 0, os.SEEK_END) // ENTRY_BYTES
    while low < high:
        middle = (low + high) // 2
        offset, position = _entry(fd, middle)
        if position > 0 and before(offset, position):
            low = middle + 1
        else:
            high = middle
    return low


def _entry(fd: int, number: int) -> tuple[int, int]:
    data = os.pread(fd, ENTRY_BYTES, number * ENTRY_BYTES)
    offset, position = _ENTRY.unpack(data) if len(data) == ENTRY_BYTES else (0, 0)  # cut off while we look
    return offset, position
