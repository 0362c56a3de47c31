"""How severe each verdict about a consumer group is, and from when on something is a verdict.

The alerts of conf/alerts/Group*.yaml have the same numbers; `tests/alerts` holds their bounds and severities against these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from streaming.broker.protocol.group_json import GroupUse, GroupVerdict
from streaming.broker.protocol.status_json import SEVERITIES
from streaming.cluster.consumers.commit_times import WITHIN_TIMES, last_commits, usual_intervals
from streaming.cluster.consumers.group_counting import LOST_LATELY_MS
from streaming.cluster.consumers.group_lag import ABSENT, CODES, LagReason
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.verdicts import kinds
from streaming.common.arrays import Flags
from streaming.common.settings import Settings
from streaming.kafka.groups.group_rows import GroupFacts
from streaming.kafka.groups.group_states import GroupState
from streaming.kafka.groups.membership import SHORT_MS

CRITICAL, WARNING, INFO, CALM = range(4)
"""Severities as numbers, the highest first: indexes of `SEVERITIES`; `CALM` is none."""

PROBLEMS = {
    GroupVerdict.LOST: kinds.GROUP_LOST,
    GroupVerdict.WILL_LOSE: kinds.GROUP_WILL_LOSE,
    GroupVerdict.HELD: kinds.GROUP_HELD,
    GroupVerdict.BEYOND_END: kinds.GROUP_OFFSET_INVALID,
    GroupVerdict.OTHER_HISTORY: kinds.GROUP_OFFSET_INVALID,
    GroupVerdict.PENDING: kinds.GROUP_PENDING,
    GroupVerdict.DAMAGED: kinds.GROUP_STOPPED,
    GroupVerdict.STOPPED: kinds.GROUP_STOPPED,
    GroupVerdict.SKIPPED: kinds.GROUP_SKIPPED,
    GroupVerdict.REBALANCING: kinds.GROUP_REBALANCING,
    GroupVerdict.WILL_EXPIRE: kinds.GROUP_OFFSETS_EXPIRE,
}
"""The problem that a verdict is, where an alert reports it."""

SEVERITY = {verdict: SEVERITIES.index(kind.severity) for verdict, kind in PROBLEMS.items()} | {
    GroupVerdict.BUFFERED: INFO,
    GroupVerdict.TOO_LARGE: INFO,
    GroupVerdict.SLOWER: INFO,
    GroupVerdict.REWOUND: INFO,
    GroupVerdict.SKEWED: INFO,
    GroupVerdict.NO_MEMBERS: INFO,
    GroupVerdict.PERHAPS_LOST: CALM,
}
"""The severity of a verdict that has lasted for long enough."""

_THROW_AWAY = re.compile(
    r"console-consumer-\d+"  # kafka-console-consumer without --group
    r"|anonymous\.([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\w-]{22})",  # Spring Cloud Stream without a group
    re.ASCII | re.IGNORECASE,
)
"""Names that are new at each start."""

_STALE = (CODES[LagReason.NOT_OBSERVED], CODES[LagReason.UNREAD], CODES[LagReason.CHECKPOINT])


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBounds:
    """From when on something is a verdict; times in milliseconds. A verdict that has not lasted as long as an alert waits has no severity.

    ``loss_within_ms``: a loss that is further away is none yet, and one beyond ``loss_soon_ms``, or of a partition that is not in danger,
    is only `INFO`. ``held_cause_ms``: before, what a group will lose is its own doing: one that waits for another transaction each minute
    is in the same danger all the time, and its alert waits for two minutes. ``pending_after_ms``, ``pending_long_ms``: its commits.
    ``abandoned_after_ms``: after so long without members or a commit a group is abandoned, and not before ``abandoned_times`` its usual
    interval.
    """

    fetch_bytes: int = 1 << 20  # what consumers fetch of a partition at once
    loss_within_ms: int = 24 * 3_600_000
    loss_soon_ms: int = 4 * 3_600_000
    expire_within_ms: int = 24 * 3_600_000  # likewise for the end of the committed offset itself
    held_from_ms: int = 10_000  # a next record that is younger waits for a transaction as each does for a moment
    held_cause_ms: int = 90_000
    held_after_ms: int = 900_000  # for so long readers may wait for one
    pending_after_ms: int = 60_000
    pending_long_ms: int = 600_000
    lost_lately_ms: int = LOST_LATELY_MS  # a loss is a warning for so long after it was seen, also after the group has gone on
    slower_after_ms: int = 30_000  # with a next record that is younger, a group keeps up, whatever its rate of the last minutes
    slower_from_rate: float = 0.05  # producers that append fewer records a second, as what fades after a burst, are never faster
    skewed_share: float = 0.8  # of a group's lag of ``skewed_records`` or more, so much is most of it
    skewed_records: int = 1000
    abandoned_after_ms: int = 24 * 3_600_000
    abandoned_times: int = 10


DEFAULT_BOUNDS = GroupBounds()


def bounds_of(settings: Settings) -> GroupBounds:
    """The bounds by the settings."""
    millisecond = timedelta(milliseconds=1)
    return GroupBounds(loss_soon_ms=settings.group_loss_within // millisecond, held_after_ms=settings.group_held_after // millisecond)


def order(verdict: GroupVerdict, lag: int, loss_ms: int) -> int:
    """What comes first of partitions with the same verdict: the next loss where records are about to be deleted, else the largest lag."""
    return loss_ms if verdict is GroupVerdict.WILL_LOSE else -lag


def usages(snapshot: GroupSnapshot, now_ms: int, bounds: GroupBounds) -> dict[str, Usage]:
    """Who uses each group, by its name.

    Who uses each group: decided once, for verdicts, lists, metrics and alerts. A loss matters to those who read. So what is said of a
    group depends on whether a member is there, and on whether one comes back: its members, its own rhythm and its name show that.
    """
    rows, groups = snapshot.rows, snapshot.groups
    committed_ms = dict(zip(rows.group_names, last_commits(rows, snapshot.progress.committed_ms).tolist(), strict=True))
    for each in snapshot.pending:
        committed_ms[each.group] = max(committed_ms.get(each.group, ABSENT), each.commit_ms)
    names = list(committed_ms.keys() | groups.keys())
    intervals, data_age_ms = usual_intervals(names, groups), _data_ages(snapshot)
    stale, gone, share = _stale(snapshot), _expire_first(snapshot, now_ms, bounds), {*_names_of(snapshot, rows.share)}
    found = {}
    for name, interval in zip(names, intervals.tolist(), strict=True):
        facts = groups.get(name)
        members = (ABSENT if name in share else 0) if facts is None else facts.members
        alive_ms = _alive_ms(facts, committed_ms.get(name, ABSENT))
        idle_ms = now_ms - data_age_ms.get(name, 0) - alive_ms
        query = name in snapshot.queries
        use = GroupUse.UNATTENDED
        if _THROW_AWAY.fullmatch(name) or (snapshot.throwaway.pattern and snapshot.throwaway.fullmatch(name)):
            use = GroupUse.THROW_AWAY
        elif name in stale or (members < 0 and not query) or (members <= 0 and alive_ms < 0):
            use = GroupUse.UNKNOWN
        elif members > 0 or idle_ms <= WITHIN_TIMES * interval:
            use = GroupUse.IN_USE
        elif query:  # nothing shows whether it runs, and an operator has named it
            use = GroupUse.UNKNOWN
        elif name in gone or idle_ms > max(bounds.abandoned_times * interval, bounds.abandoned_after_ms):
            use = GroupUse.ABANDONED
        found[name] = Usage(
            use=use,
            between=use is GroupUse.IN_USE and interval > SHORT_MS and (members == 0 or _is_idle(facts)),
            alive_ms=alive_ms,
            interval_ms=interval,
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Who uses a group.

    ``between``: no member is there, and its next run is not overdue. ``alive_ms``: when it was last
    seen to be used, and ``interval_ms``: its usual interval between two commits; `ABSENT` where that is not known.
    """

    use: GroupUse
    between: bool
    alive_ms: int
    interval_ms: int


def _data_ages(snapshot: GroupSnapshot) -> dict[str, int]:
    """How old the oldest is of what is known of each group."""
    rows = snapshot.rows
    most = np.zeros(len(rows.group_names), np.int64)
    np.maximum.at(most, rows.group, snapshot.found.data_age_ms)
    return dict(zip(rows.group_names, most.tolist(), strict=True))


def _stale(snapshot: GroupSnapshot) -> frozenset[str]:
    """The groups of which only what was known earlier is known: no agent has read their coordinator's log to its end."""
    stale = np.isin(snapshot.found.lags.reason, _STALE) & ~snapshot.rows.share
    unread = snapshot.coordinators_not_current
    return frozenset(_names_of(snapshot, stale)) | {name for name, facts in snapshot.groups.items() if facts.coordinator in unread}


def _names_of(snapshot: GroupSnapshot, rows: Flags) -> Iterable[str]:
    names = snapshot.rows.group_names
    return (names[group] for group in np.unique(snapshot.rows.group[rows]).tolist())


def _expire_first(snapshot: GroupSnapshot, now_ms: int, bounds: GroupBounds) -> frozenset[str]:
    """The groups that lose nothing soon, because their coordinators delete their offsets before."""
    found = snapshot.found
    soon = (found.loss_ms >= 0) & (found.loss_ms - now_ms <= bounds.loss_within_ms)
    expires = soon & (found.expiration_ms >= 0) & (found.expiration_ms <= found.loss_ms)
    return frozenset(_names_of(snapshot, expires)) - frozenset(_names_of(snapshot, soon & ~expires))


def _alive_ms(facts: GroupFacts | None, committed_ms: int) -> int:
    """When a group was last seen to be used. An offset that is committed after its last member has left is set by hand, for a group that
    has ever had any: consumers that assign partitions to themselves are no members, and their group never has one.
    """
    if facts is None or facts.members != 0 or facts.state_ms < 0:
        return committed_ms
    return facts.state_ms if facts.epoch > 0 and facts.state == GroupState.EMPTY else max(committed_ms, facts.state_ms)


def _is_idle(facts: GroupFacts | None) -> bool:
    """Whether it is a streaming query that has no micro-batch under way."""
    return facts is not None and facts.state == GroupState.COMMITTED
