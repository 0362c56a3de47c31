"""How a command reads: not faster than it may, by waiting after what it has read, and without garbage collection."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class ReadPace:
    """Called with the number of bytes after each read.

    Args:
        rate: bytes a second.
        clock: seconds.
        sleep: waits for a number of seconds.
        progress: called with the bytes of each read, too.
    """

    def __init__(
        self, rate: int, clock: Callable[[], float], sleep: Callable[[float], None], progress: Callable[[int], None] = lambda _: None
    ) -> None:
        self._rate, self._clock, self._sleep, self._progress = rate, clock, sleep, progress
        self._free_at = clock()

    def __call__(self, size: int) -> None:
        """Wait until so many bytes may have been read."""
        self._progress(size)
        now = self._clock()
        self._free_at = max(now, self._free_at) + size / self._rate
        if self._free_at - now > 1:  # many small waits take longer than they should
            self._sleep(self._free_at - now)


@contextmanager
def uncollected() -> Iterator[None]:
    """Switch the garbage collector off meanwhile.

    Reads without garbage collection: nearly all objects of a reading are needed to its end. To check them again and again takes a
    third of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
