"""What judges the numbers of the table when they are rendered: thresholds, limits, and what it remembers from page to page."""

from dataclasses import dataclass, field

from streaming.agent.messages import Reassignment
from streaming.metrics.limiter import Limiter
from streaming.metrics.overdue import DeletableSince
from streaming.metrics.transactions import Bench
from streaming.metrics.waiting import Waiting
from streaming.rules.copying import Paces


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judges:
    """``assume_replicated``: where no metadata is readable, a log is taken as replicated up to its end.

    ``coordinator_partitions`` is how many `__transaction_state` has by the metadata log: 0 where there is no such topic, None where nobody
    knows. ``deletable`` is None where a page is made once: there is nothing to remember. ``fenced`` are the brokers that the controller has
    fenced off. ``metadata_ms`` is when the copy of the metadata log that has come furthest was last written to, Unix milliseconds, None
    where that does not tell whether it is old. ``reassignments`` are those that are under way. ``overdue_after_ms`` is the option of that
    name. ``waiting`` is asked for the groups that wait for hanging transactions.
    """

    bench: Bench
    limiter: Limiter
    deletable: DeletableSince | None = None
    assume_replicated: bool = False
    coordinator_partitions: int | None = None
    fenced: frozenset[int] = frozenset()
    metadata_ms: int | None = None
    overdue_after_ms: int = 1_800_000
    paces: Paces = field(default_factory=Paces)
    reassignments: tuple[Reassignment, ...] = ()
    waiting: Waiting = field(default_factory=Waiting)
