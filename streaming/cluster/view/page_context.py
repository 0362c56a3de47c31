"""What a page depends on besides the table: thresholds, limits, what is known of the cluster, and the memory from page to page."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from streaming.broker.protocol.cluster_messages import Reassignment
from streaming.cluster.view.deletable_since import DeletableSince
from streaming.cluster.view.limiter import Limiter
from streaming.cluster.view.listed_segments import ListedMemory
from streaming.cluster.view.log_growth import LogGrowth
from streaming.cluster.view.other_space import OtherSpace
from streaming.cluster.view.static_configs import assumed_configs, static_configs, topic_patterns
from streaming.cluster.view.transaction_columns import READ_WITHIN_MS, TransactionJudge
from streaming.cluster.view.waiting_groups import WaitingGroups
from streaming.common.reloading import Reloading
from streaming.common.settings import Settings
from streaming.rules.copying import Paces


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PageContext:
    """``assume_replicated``: if no metadata is readable, a log is taken as replicated up to its end.

    ``coordinator_partitions`` is the number of partitions of `__transaction_state` by the metadata log: 0 if there is no such topic, None
    if it is not known. ``deletable`` and ``growth`` are None if a page is made only once: there is nothing to remember. ``fenced`` are the
    brokers that the controller has fenced off. ``topic_ids``: of all topics of the cluster, by name; "" for one whose id is not known, None
    if nothing is. ``metadata_ms`` is when the most advanced copy of the metadata log was last written to, in
    Unix milliseconds; None if that does not show whether the copy is old. ``clocks_ahead_ms``: by how much the clocks of brokers are ahead
    of the job's, where they are wrong. ``reassignments`` are those that are under way.
    ``away`` are the brokers that surely have no process, as far as agents that answer have asked: nothing is deleted in their log dirs.
    ``overdue_after_ms`` is the option of that name. ``waiting`` knows the groups that wait for hanging transactions, ``listed`` the
    segments of the last page or round, ``other_space`` what others take of the disks.
    """

    transactions: TransactionJudge
    limiter: Limiter
    deletable: DeletableSince | None = None
    growth: LogGrowth | None = None
    assume_replicated: bool = False
    coordinator_partitions: int | None = None
    fenced: frozenset[int] = frozenset()
    topic_ids: Mapping[str, str] | None = None
    away: frozenset[int] = frozenset()
    metadata_ms: int | None = None
    clocks_ahead_ms: Mapping[int, int] = field(default_factory=dict)
    overdue_after_ms: int = 1_800_000
    paces: Paces = field(default_factory=Paces)
    reassignments: tuple[Reassignment, ...] = ()
    waiting: WaitingGroups = field(default_factory=WaitingGroups)
    listed: ListedMemory = field(default_factory=ListedMemory)
    other_space: OtherSpace = field(default_factory=OtherSpace)


def context_of(settings: Settings, *, once: bool = False, list_all: bool = False) -> PageContext:
    """The context of a table's pages; ``once`` for a table that is read a single time.

    A changed ``server.properties`` is loaded again while the job runs.

    Args:
        list_all: list every open transaction, not only the late ones.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    transactions = TransactionJudge(
        hanging_after_ms=_milliseconds(settings.hanging_after),
        stuck_after_ms=_milliseconds(settings.stuck_after),
        late_after_ms=None if list_all else _milliseconds(settings.late_after),
        late_limit=settings.late_limit,
        read_within_ms=max(READ_WITHIN_MS, 3 * _milliseconds(settings.longest_pause)),
        once=once,
    )
    files = settings.server_properties
    static = Reloading(lambda: (static_configs(files, {}, None), files))
    limiter = Limiter(
        static.get,
        assumed_configs(settings.broker_config),
        topic_patterns(settings.topic_config),
    )
    return PageContext(
        transactions=transactions,
        limiter=limiter,
        deletable=None if once else DeletableSince(),
        growth=None if once else LogGrowth(),
        assume_replicated=settings.assume_replicated,
        overdue_after_ms=_milliseconds(settings.overdue_after),
    )


def _milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
