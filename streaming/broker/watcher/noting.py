"""Who wants to know of every range that the watcher reads, besides those who read its events."""

from collections.abc import Callable
from typing import Protocol

from streaming.broker.watcher.tail import Tail
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.sums import Sums
from streaming.kafka.scan.transaction_steps import Steps


class Noting(Protocol):
    """Is called with every range that is read, before the cursor moves over it. It costs almost nothing, and does not raise.

    ``seen_ms``: when the append of a range was seen, Unix milliseconds, -1 if it was not.
    """

    def note(self, tail: Tail, batches: Batches, sums: Sums, seen_ms: int, steps: Steps) -> None:
        """``steps``: of transactions, markers among them."""

    def note_plain(self, tail: Tail, next_offset: int, records: int, size: int, seen_ms: int, batches: Callable[[], Batches]) -> None:
        """The same of a range with no transactional and no control batch; ``batches`` makes its columns, which costs more than its sums."""


class NotesNothing:
    """Nobody wants to know of ranges besides their events."""

    def note(self, tail: Tail, batches: Batches, sums: Sums, seen_ms: int, steps: Steps) -> None:
        """See `Noting`."""

    def note_plain(self, tail: Tail, next_offset: int, records: int, size: int, seen_ms: int, batches: Callable[[], Batches]) -> None:
        """See `Noting`."""
