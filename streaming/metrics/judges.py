"""What judges the numbers of the table when they are rendered: thresholds, limits, and what it remembers from page to page."""

from dataclasses import dataclass

from streaming.metrics.retention import Limiter
from streaming.metrics.transactions import Bench


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judges:
    """``assume_replicated``: where no metadata is readable, a log is taken as replicated up to its end.

    ``coordinator_partitions`` is how many `__transaction_state` has by the metadata log: 0 where there is no such topic, None where nobody
    knows. ``fenced`` are the brokers that the controller has fenced off.
    """

    bench: Bench
    limiter: Limiter
    assume_replicated: bool = False
    coordinator_partitions: int | None = None
    fenced: frozenset[int] = frozenset()
