"""Counts how often a log that could not be read to the end is tried again, before it waits for the next rescan."""

from streaming.broker.watcher.tail import Tail

TRIES = 3
"""How often a log is tried while its segments are deleted or compacted."""


class Tries:
    """The failed tries of the logs of one queue, which have to be read in addition to being followed. Only the watcher's thread uses it."""

    def __init__(self) -> None:
        self._failures: dict[Tail, int] = {}

    def any_left(self, tail: Tail) -> bool:
        """Whether a log may be tried now."""
        return self._failures.get(tail, 0) < TRIES

    def failed(self, tail: Tail, error: Exception) -> None:
        """Note a failed try. A segment that is gone since the listing may not matter at the next try; any other error will occur again."""
        self._failures[tail] = self._failures.get(tail, 0) + 1 if isinstance(error, FileNotFoundError) else TRIES

    def succeeded(self, tail: Tail) -> None:
        """A log was read to the end."""
        self._failures.pop(tail, None)

    def begin_again(self) -> tuple[Tail, ...]:
        """Forget all failures. Returns the logs that had any, in the order of their first failures."""
        failed = tuple(self._failures)
        self._failures.clear()
        return failed
