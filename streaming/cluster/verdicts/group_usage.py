"""Who uses each group: decided once, for verdicts, lists, metrics and alerts.

A loss matters to those who read. So what is said of a group depends on whether anybody is there, and on whether anybody comes back: its
members, its own rhythm and its name show that.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from streaming.broker.protocol.group_json import GroupUse
from streaming.cluster.consumers.commit_times import WITHIN_TIMES, last_commits, usual_intervals
from streaming.cluster.consumers.group_lag import ABSENT, CODES, LagReason
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.verdicts.group_bounds import GroupBounds
from streaming.common.arrays import Flags
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.kafka.groups.group_rows import GroupFacts
from streaming.kafka.groups.group_states import GroupState
from streaming.kafka.groups.rhythm import SHORT_MS

_THROW_AWAY = re.compile(
    r"console-consumer-\d+"  # kafka-console-consumer without --group
    r"|anonymous\.([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\w-]{22})",  # Spring Cloud Stream without a group
    re.ASCII | re.IGNORECASE,
)
"""Names that are made anew at each start."""

_STALE = (CODES[LagReason.NOT_OBSERVED], CODES[LagReason.UNREAD], CODES[LagReason.CHECKPOINT])


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Who uses a group.

    ``between``: nobody is there, and its next run is not overdue. ``alive_ms``: when it was last
    seen to be used, and ``interval_ms``: its usual interval between two commits; `ABSENT` where that is not known.
    """

    use: GroupUse
    between: bool
    alive_ms: int
    interval_ms: int


def usages(snapshot: GroupSnapshot, now_ms: int, bounds: GroupBounds) -> dict[str, Usage]:
    """Who uses each group, by its name."""
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
        elif query:  # nothing shows whether it runs, and somebody has named it
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


def _is_idle(facts: GroupFacts | None) -> bool:
    """Whether it is a streaming query that has no micro-batch under way."""
    return facts is not None and facts.state == GroupState.COMMITTED


def _data_ages(snapshot: GroupSnapshot) -> dict[str, int]:
    """How old the oldest is of what is known of each group."""
    rows = snapshot.rows
    most = np.zeros(len(rows.group_names), np.int64)
    np.maximum.at(most, rows.group, snapshot.found.data_age_ms)
    return dict(zip(rows.group_names, most.tolist(), strict=True))


def _alive_ms(facts: GroupFacts | None, committed_ms: int) -> int:
    """When a group was last seen to be used. An offset that is committed after its last member has left is set by hand, for a group that
    has ever had any: consumers that assign partitions to themselves are no members, and their group never has one.
    """
    if facts is None or facts.members != 0 or facts.state_ms < 0:
        return committed_ms
    return facts.state_ms if facts.epoch > 0 and facts.state == GroupState.EMPTY else max(committed_ms, facts.state_ms)


def _stale(snapshot: GroupSnapshot) -> frozenset[str]:
    """The groups of which only what was known earlier is known: no agent has read their coordinator's log to its end."""
    stale = np.isin(snapshot.found.lags.reason, _STALE) & ~snapshot.rows.share
    unread = {log.partition for log in snapshot.coordinators if log.topic == OFFSETS_TOPIC and not log.is_current}
    return frozenset(_names_of(snapshot, stale)) | {name for name, facts in snapshot.groups.items() if facts.coordinator in unread}


def _expire_first(snapshot: GroupSnapshot, now_ms: int, bounds: GroupBounds) -> frozenset[str]:
    """The groups that lose nothing soon, because their coordinators delete their offsets before."""
    found = snapshot.found
    soon = (found.loss_ms >= 0) & (found.loss_ms - now_ms <= bounds.loss_within_ms)
    expires = soon & (found.expiration_ms >= 0) & (found.expiration_ms <= found.loss_ms)
    return frozenset(_names_of(snapshot, expires)) - frozenset(_names_of(snapshot, soon & ~expires))


def _names_of(snapshot: GroupSnapshot, rows: Flags) -> Iterable[str]:
    names = snapshot.rows.group_names
    return (names[group] for group in np.unique(snapshot.rows.group[rows]).tolist())
