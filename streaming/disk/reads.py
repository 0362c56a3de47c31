"""How many bytes of segments a thread has read so far: counted where they are read, whoever asked for them."""

import threading


class _Count(threading.local):
    size = 0


_count = _Count()


def note_read(size: int) -> None:
    """This thread has read so many bytes more of a segment."""
    _count.size += size


def bytes_read() -> int:
    """The bytes of segments that this thread has read since it began; two of these numbers tell what was read between."""
    return _count.size
