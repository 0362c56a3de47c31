"""How often logs that could not be read to the end are begun with again, before they wait for the next survey."""

from streaming.watcher.tail import Tail

TRIES = 3
"""So often a log is begun with whose segments are deleted or compacted meanwhile."""


class Tries:
    """Those of the logs of one queue, which have to be read besides being tailed. Only the watcher's thread uses it."""

    def __init__(self) -> None:
        self._failures: dict[Tail, int] = {}

    def any_left(self, tail: Tail) -> bool:
        """Whether a log may be begun with now."""
        return self._failures.get(tail, 0) < TRIES

    def failed(self, tail: Tail, error: Exception) -> None:
        """A segment that is gone since it was listed may be another one's the next time; whatever else is wrong will be so again."""
        self._failures[tail] = self._failures.get(tail, 0) + 1 if isinstance(error, FileNotFoundError) else TRIES

    def succeeded(self, tail: Tail) -> None:
        """A log was read to the end."""
        self._failures.pop(tail, None)

    def begin_again(self) -> tuple[Tail, ...]:
        """Forget all failures. Returns the logs that had any, first come first."""
        failed = tuple(self._failures)
        self._failures.clear()
        return failed
