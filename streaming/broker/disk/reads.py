"""Counts the bytes of segments that a thread has read, for whatever purpose."""

import threading


class _Count(threading.local):
    size = 0


_count = _Count()


def note_read(size: int) -> None:
    """Note that this thread has read so many more bytes of a segment."""
    _count.size += size


def bytes_read() -> int:
    """The bytes of segments that this thread has read since it began. The difference of two values is what was read in between."""
    return _count.size
