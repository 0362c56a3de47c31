"""Which replicas have which kind of problem, and since when: decided once, in columns, for the problems and for the rows of every listing.

Only what is shown of it gets words, in `streaming.cluster.verdicts.log_problems` and `streaming.cluster.verdicts.transaction_problems`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.status_json import SEVERITIES
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.cluster_problems import REPLICATION, counts_of, lacking_partitions
from streaming.cluster.verdicts.kinds import KINDS, ORDER, ProblemKind
from streaming.cluster.view.elections import Elected
from streaming.cluster.view.replica_health import ACTIVE, limits_known, perhaps_overdue_replicas
from streaming.cluster.view.table import Replica
from streaming.cluster.view.transaction_columns import Late
from streaming.cluster.view.view import View
from streaming.common.arrays import Flags, Longs
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.rules.partition_values import LEADER_UNKNOWN
from streaming.rules.retention_rule import BLOCKED
from streaming.rules.transaction_verdicts import TransactionVerdict

RECENT_MS = 3_600_000
"""An unclean election is a problem of now for so long."""

_PASSES = ("high_watermark", "remote_copy", "moving")
"""Reasons that are there for a moment at most rolls of a segment, or in every move between log dirs."""

_UNKNOWN, _NONE = -1, -1

RETENTION_KINDS = frozenset(
    {
        kinds.RETENTION_OVERDUE,
        kinds.RETENTION_BLOCKED,
        kinds.IN_FUTURE,
        kinds.ARRIVES_EXPIRED,
        kinds.COMPACTION_STALLED,
        kinds.LIMITS_ASSUMED,
    }
)
"""Kinds that are about what is kept of a log."""


def all_cases(circumstances: Circumstances) -> tuple[Cases, ...]:
    """Everything that is wrong with replicas."""
    every = (
        *_damaged(circumstances),
        _elected(circumstances),
        *_blocked(circumstances),
        _overdue(circumstances),
        _uncompacted(circumstances),
        _ahead(circumstances),
        _expired(circumstances),
        _assumed(circumstances),
        *_transactions(circumstances),
        *_lacking(circumstances),
        _unreadable(circumstances),
    )
    return tuple(each for each in every if len(each.items))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cases:
    """The replicas with one kind of problem."""

    kind: ProblemKind
    items: Longs  # their indexes in `streaming.cluster.view.exported.Observed`
    since_ms: Longs  # since when each has it, -1 if that is not known
    reason: str = ""  # a word that tells the problem from others of its kind, "" for none


def _damaged(circumstances: Circumstances) -> Iterator[Cases]:
    """Damaged replicas: any that the tail has found, and of those that the scrub has found none that follows: its log dir has a problem."""
    observed = circumstances.view.observed
    damaged: Flags = observed.columns["corrupt_batches"] > 0
    follows: Flags = ~observed.roles.leads & (observed.roles.leader != LEADER_UNKNOWN)
    for replica in circumstances.view.scrubbed:
        items = circumstances.items_of(replica)
        damaged[items] |= ~follows[items]
    topics = [observed.names[item] for item in np.flatnonzero(damaged).tolist()]
    damaged[damaged] = np.fromiter(map(circumstances.export.has_topic, topics), np.bool_, len(topics))
    yield _cases(kinds.LOG_CORRUPT, np.flatnonzero(damaged & ~follows))
    yield _cases(kinds.REPLICA_CORRUPT, np.flatnonzero(damaged & follows))


def _cases(kind: ProblemKind, items: Longs | NDArray[np.intp], since_ms: Longs | None = None, reason: str = "") -> Cases:
    unknown = np.full(len(items), _UNKNOWN, np.int64)
    return Cases(kind=kind, items=items.astype(np.int64), since_ms=unknown if since_ms is None else since_ms, reason=reason)


def _elected(circumstances: Circumstances) -> Cases:
    since = {(each.topic, each.partition): each.last_ms for each in recent_elections(circumstances)}
    items = _of_partitions(circumstances, since)
    return _cases(kinds.UNCLEAN, np.array([*items], np.int64), np.array([since[each] for each in items.values()], np.int64))


def recent_elections(circumstances: Circumstances) -> list[Elected]:
    """The partitions that an unclean election of now concerns."""
    return [each for each in circumstances.view.elected if circumstances.now_ms - each.last_ms < RECENT_MS]


def _of_partitions(circumstances: Circumstances, partitions: dict[tuple[str, int], int]) -> dict[int, tuple[str, int]]:
    """The exported logs of some partitions."""
    if not partitions:
        return {}
    columns, names = circumstances.view.observed.columns, circumstances.view.observed.names
    numbered = np.isin(columns["partition"], [partition for _, partition in partitions])
    exported = circumstances.view.logs.items
    named = {item: (names[item], int(columns["partition"][item])) for item in exported[numbered[exported]].tolist()}
    return {item: each for item, each in named.items() if each in partitions}


def _blocked(circumstances: Circumstances) -> Iterator[Cases]:
    logs = circumstances.view.logs
    known = _current(circumstances, logs["broker"]) & limits_known(logs.limits)
    lag, patience, items = logs["retention_lag_ms"], 2 * logs["check_interval_ms"], logs.items
    for code, reason in enumerate(BLOCKED):
        some = known & (logs["retention_blocked"] == code)
        if reason in _PASSES:
            some &= lag > patience
        if reason != ACTIVE:
            since_ms = np.where(lag[some] > 0, circumstances.now_ms - lag[some], _UNKNOWN)
            yield _cases(kinds.RETENTION_BLOCKED, items[some], since_ms, reason)


def _current(circumstances: Circumstances, brokers: Longs) -> Flags:
    """Which logs are on brokers whose numbers are current."""
    current: Flags = ~np.isin(brokers, list(circumstances.not_current))
    return current


def _overdue(circumstances: Circumstances) -> Cases:
    retention = circumstances.view.retention
    some = _long_overdue(circumstances) & limits_known(retention.limits)
    return _cases(kinds.RETENTION_OVERDUE, retention.items[some], circumstances.now_ms - retention.columns["retention_overdue_ms"][some])


def _long_overdue(circumstances: Circumstances) -> Flags:
    retention = circumstances.view.retention
    long = retention.columns["retention_overdue_ms"] > circumstances.thresholds.overdue_after_ms
    current = _current(circumstances, circumstances.view.observed.columns["broker"][retention.items])
    return perhaps_overdue_replicas(retention) & long & current


def _uncompacted(circumstances: Circumstances) -> Cases:
    """Logs whose dirty part was above the limit three hours ago: what was closed since then does not count here."""
    retention = circumstances.view.retention
    columns, limit = retention.columns, retention.columns["dirty_limit_millionths"]
    some = (limit >= 0) & (columns["dirty_millionths"] > limit) & (columns["long_dirty_millionths"] > limit)
    some &= _current(circumstances, circumstances.view.observed.columns["broker"][retention.items])
    return _cases(kinds.COMPACTION_STALLED, retention.items[some])


def _ahead(circumstances: Circumstances) -> Cases:
    some = circumstances.view.logs["max_timestamp_ahead_ms"] > circumstances.thresholds.ahead_limit_ms
    return _cases(kinds.IN_FUTURE, circumstances.view.logs.items[some])


def _expired(circumstances: Circumstances) -> Cases:
    late = circumstances.view.late
    items, since_ms = (np.array(values, np.int64) for values in ([each.item for each in late], [each.since_ms for each in late]))
    some = _current(circumstances, circumstances.view.observed.columns["broker"][items])
    return _cases(kinds.ARRIVES_EXPIRED, items[some], since_ms[some])


def _assumed(circumstances: Circumstances) -> Cases:
    limits = circumstances.view.logs.limits
    assumed = np.fromiter((each is not None and each.deletes and each.assumed for each in limits), np.bool_, len(limits))
    return _cases(kinds.LIMITS_ASSUMED, circumstances.view.logs.items[assumed])


def _transactions(circumstances: Circumstances) -> Iterator[Cases]:
    """Logs with such transactions, however many of these are listed; what was certain of them counts where they are not current."""
    logs, items = circumstances.view.logs, circumstances.view.logs.items
    current = _current(circumstances, logs["broker"])
    as_seen_last = np.isin(logs["broker"], list(circumstances.unseen))
    for kind, column in ((kinds.HANGING, "hanging_transactions"), (kinds.STUCK, "stuck_transactions"), (kinds.STALLED, "stalled")):
        some = (current if kind is kinds.STALLED else current | as_seen_last) & (logs[column] > 0)
        if kind is kinds.STALLED:  # only their coordinator reads commits: what waits there are commits of groups
            some &= ~np.isin(logs["topic"], [number for number, name in enumerate(circumstances.topics) if name == OFFSETS_TOPIC])
        start = logs["oldest_open_start_ms"][some]
        yield _cases(kind, items[some], np.where(start >= 0, start, _UNKNOWN))
    if overdue_coordinators(circumstances):
        open_list = logs.open
        late = np.unique(open_list.owner[open_list.verdict == TransactionVerdict.OVERDUE])
        late = late[current[late]]
        yield _cases(kinds.OVERDUE, items[late], logs["oldest_open_start_ms"][late])


def overdue_coordinators(circumstances: Circumstances) -> dict[int, int]:
    """How many transactions each coordinator should have ended, for brokers whose numbers are current."""
    overdue = circumstances.view.observed.coordinators.overdue
    return {broker: count for broker, count in sorted(overdue.items()) if count and broker not in circumstances.not_current}


def _lacking(circumstances: Circumstances) -> Iterator[Cases]:
    """Partitions without a leader or with too few replicas, as far as the metadata names them."""
    counts = counts_of(circumstances)
    if counts is None:
        return
    for kind, name in REPLICATION:
        lacking = lacking_partitions(circumstances, counts, name)
        named = {(each.topic, number): _UNKNOWN for each in lacking for number in each.partitions}
        yield _cases(kind, np.array([*_of_partitions(circumstances, named)], np.int64))


def _unreadable(circumstances: Circumstances) -> Cases:
    named = [log for agent in circumstances.up for log in agent.unreadable_keys if circumstances.export.has_topic(log.topic)]
    items = [item for log in named for item in circumstances.items_of(Replica(log.broker, log.topic, log.partition)).tolist()]
    return _cases(kinds.LOG_UNREADABLE, np.unique(np.array(items, np.int64)))


def row_verdicts(view: View, cases: Sequence[Cases], only: frozenset[ProblemKind] = frozenset(KINDS)) -> RowVerdicts:
    """The worst of some kinds for each exported log; of one kind the oldest."""
    count = len(view.observed.names)
    place, since_ms = np.full(count, _NONE, np.int64), np.full(count, _UNKNOWN, np.int64)
    for each in sorted(cases, key=lambda one: ORDER[one.kind.name], reverse=True):
        if each.kind not in only:
            continue
        own = ORDER[each.kind.name]
        again = place[each.items] == own
        before = since_ms[each.items]
        older = np.where(before < 0, each.since_ms, np.where(each.since_ms < 0, before, np.minimum(before, each.since_ms)))
        since_ms[each.items] = np.where(again, older, each.since_ms)
        place[each.items] = own
    return RowVerdicts(place=place[view.logs.items], since_ms=since_ms[view.logs.items])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowVerdicts:
    """The worst verdict of each exported log, in the order of `streaming.cluster.view.exported.Logs`."""

    place: Longs  # the place of its kind in `streaming.cluster.verdicts.kinds.KINDS`, -1 where nothing is wrong
    since_ms: Longs

    def of_rows(self, rows: Sequence[int]) -> list[Verdict]:
        """The verdicts of some logs."""
        some = list(rows)
        both = zip(self.place[some].tolist(), self.since_ms[some].tolist(), strict=True)
        return [NOTHING if place == _NONE else Verdict(kind=KINDS[place], since_ms=since_ms) for place, since_ms in both]

    @property
    def severity(self) -> Longs:
        """How severe each is, to sort by: the place in `streaming.broker.protocol.status_json.SEVERITIES`, -1 where nothing is wrong."""
        places = np.array([*(SEVERITIES.index(each.severity) for each in KINDS), _NONE], np.int64)
        return places[self.place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The worst that is wrong with one thing, None if nothing is; and since when, -1 if that is not known."""

    kind: ProblemKind | None = None
    since_ms: int = -1

    @property
    def name(self) -> str:
        """The name of the kind, "" for none."""
        return "" if self.kind is None else self.kind.name

    @property
    def severity(self) -> str:
        """The severity of the problem that is about the same thing, "" if there is none."""
        return "" if self.kind is None else self.kind.severity


NOTHING = Verdict()
"""Nothing is wrong."""


def transaction_verdict(circumstances: Circumstances, late: Late) -> Verdict:
    """The verdict of one open transaction."""
    broker = int(circumstances.view.logs["broker"][late.log])
    if late.verdict == TransactionVerdict.OVERDUE.label:
        kind = kinds.OVERDUE if overdue_coordinators(circumstances) else None
    elif late.verdict == TransactionVerdict.HANGING.label:
        kind = kinds.HANGING
    else:
        kind = kinds.STUCK if late.stuck and circumstances.view.logs["stuck_transactions"][late.log] > 0 else None
    old = broker in circumstances.not_current and (kind is kinds.OVERDUE or broker not in circumstances.unseen)
    return NOTHING if kind is None or old else Verdict(kind=kind, since_ms=late.start_ms)


def overdue_logs(circumstances: Circumstances) -> Flags:
    """The exported logs whose deletion is overdue for long enough to be a problem, if their limits are not only assumed."""
    found: Flags = np.isin(circumstances.view.logs.items, circumstances.view.retention.items[_long_overdue(circumstances)])
    return found
