"""What judges the numbers of the table when they are rendered: thresholds, limits, and the memory from page to page."""

from dataclasses import dataclass, field

from streaming.agent.messages import Reassignment
from streaming.metrics.limiter import Limiter
from streaming.metrics.overdue import DeletableSince
from streaming.metrics.transactions import TransactionJudge
from streaming.metrics.waiting import Waiting
from streaming.rules.copying import Paces


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judges:
    """``assume_replicated``: if no metadata is readable, a log is taken as replicated up to its end.

    ``coordinator_partitions`` is the number of partitions of `__transaction_state` by the metadata log: 0 if there is no such topic, None
    if it is not known. ``deletable`` is None if a page is made only once: there is nothing to remember. ``fenced`` are the brokers that the
    controller has fenced off. ``metadata_ms`` is when the most advanced copy of the metadata log was last written to, in Unix milliseconds;
    None if that does not show whether the copy is old. ``reassignments`` are those that are under way. ``overdue_after_ms`` is the option
    of that name. ``waiting`` knows the groups that wait for hanging transactions.
    """

    transactions: TransactionJudge
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
