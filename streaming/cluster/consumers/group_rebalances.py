"""How often groups have rebalanced: counters that hold over elections and restarts, and what of it is lately.

The kinds of a group together are its generation, or its epoch, as its coordinator has stored it. That is in the last record of the group,
which compaction keeps and every replica has. So a record that is replayed again, an election or another job changes nothing, and what
happened while no job polled is counted. How much of it is which kind is known of the records that are there, and then of what is added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streaming.cluster.consumers.commit_times import AHEAD_MS
from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.view.family import TEXT, Export, labels
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.group_rows import GroupFacts
from streaming.kafka.groups.group_states import GroupType
from streaming.kafka.groups.rebalance_log import (
    COUNTED,
    LEAST_OF_STORM,
    MINUTE_MS,
    PAUSE_MS,
    STORM_MINUTES,
    STORM_PAUSE_MINUTES,
    RebalanceKind,
    unpacked_rebalances,
)

_AHEAD_MINUTES = AHEAD_MS // MINUTE_MS

MOST_STANDING = 5
"""So many partitions of such a group are named, those with the lowest numbers first."""

TIMES = 2
"""A group whose members have left once was stopped, or started again."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupRebalances:
    """One item for each group of which that is known, in the order of ``names``.

    ``counts``: how many of each of `COUNTED`, shape (kinds, groups).
    """

    names: tuple[str, ...] = ()
    counts: Longs = field(default_factory=lambda: np.empty((len(COUNTED), 0), np.int64))
    possible: Flags = field(default_factory=lambda: np.empty((len(COUNTED), 0), np.bool_))  # whether a group of its type has such
    last_ms: Longs = field(default_factory=lambda: np.empty(0, np.int64))  # when the last one was, Unix milliseconds, -1 not known
    shown: Longs = field(default_factory=lambda: np.empty(0, np.int64))  # the groups that are exported, in the order of ``labels``
    labels: pa.LargeStringArray = field(default_factory=lambda: pa.array([], TEXT))

    def last_by(self, now_ms: int) -> Longs:
        """``last_ms`` as of a time: one that is dated ahead of it was at a time that is not known."""
        return np.where(self.last_ms > now_ms + AHEAD_MS, ABSENT, self.last_ms)


def all_lately(rebalances: GroupRebalances, groups: Mapping[str, GroupFacts], now_ms: int) -> dict[str, Lately]:
    """What those groups have of late that have something, by name."""
    some = np.flatnonzero(rebalances.last_ms > now_ms - (STORM_MINUTES + 1) * MINUTE_MS).tolist()
    found = ((name, lately(groups[name], now_ms)) for name in (rebalances.names[item] for item in some) if name in groups)
    return {name: each for name, each in found if each is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lately:
    """How members have interrupted each other by rebalances within the last half an hour."""

    generations: int  # how many
    members: int  # the most that it had in that time
    in_a_row: int  # how many since the last pause of `STORM_PAUSE_MINUTES`, 0 in such a pause
    first_ms: int  # when the first of those was, to the minute
    last_ms: int  # when the last one was, Unix milliseconds

    @property
    def ratio(self) -> float:
        """How many in a row for each member; 0 of so few that they are no storm."""
        return self.in_a_row / max(self.members, 1) if self.in_a_row >= LEAST_OF_STORM else 0.0


def lately(facts: GroupFacts, now_ms: int) -> Lately | None:
    """What a group has of late; None for nothing."""
    flat, now = facts.rebalance_minutes, now_ms // MINUTE_MS
    minutes = zip(flat[0::3], flat[1::3], flat[2::3], strict=False)
    some = [each for each in minutes if now - STORM_MINUTES < each[0] <= now + _AHEAD_MINUTES]
    if not some:
        return None
    first = max((at for at in range(1, len(some)) if some[at][0] - some[at - 1][0] >= STORM_PAUSE_MINUTES), default=0)
    last_minute_ms = some[-1][0] * MINUTE_MS
    last_ms = facts.rebalance_ms if facts.rebalance_ms < last_minute_ms + MINUTE_MS else last_minute_ms  # metadata has raised it since
    goes_on = now_ms - last_ms < STORM_PAUSE_MINUTES * MINUTE_MS
    return Lately(
        generations=sum(count for _, count, _ in some),
        members=max(facts.members, *(members for _, _, members in some)),
        in_a_row=sum(count for _, count, _ in some[first:]) if goes_on else 0,
        first_ms=some[first][0] * MINUTE_MS,
        last_ms=last_ms,
    )


class RebalanceMemory:
    """Counts the rebalances of groups, from poll to poll. Only the thread that polls uses it."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self._counted: dict[str, _Counted] = {}
        self._groups: Mapping[str, GroupFacts] | None = None
        self._found = GroupRebalances()

    def update(self, groups: Mapping[str, GroupFacts]) -> GroupRebalances:
        """The groups as they are now; the same mapping holds the same groups."""
        if groups is self._groups:
            return self._found
        before, counted = self._counted, ((name, _count(self._counted.get(name), facts)) for name, facts in groups.items())
        self._groups, self._counted = groups, {name: each for name, each in counted if each is not None}
        same = len(before) == len(self._counted) and all(before.get(name) is each for name, each in self._counted.items())
        self._found = self._found if same else self._columns()
        return self._found

    def _columns(self) -> GroupRebalances:
        every, names = self._counted.values(), tuple(self._counted)
        counts = np.array([each.counts for each in every], np.int64).reshape(-1, len(COUNTED)).T
        classic = np.array([each.facts.type == GroupType.CLASSIC for each in every], np.bool_)
        shown, spelled = (self._found.shown, self._found.labels) if names == self._found.names else self._labels(names)
        return GroupRebalances(
            names=names,
            counts=counts,
            possible=np.stack([np.ones_like(classic), ~classic, classic]) | (counts > 0),
            last_ms=np.array([each.facts.rebalance_ms for each in every], np.int64),
            shown=shown,
            labels=spelled,
        )

    def _labels(self, names: Sequence[str]) -> tuple[Longs, pa.LargeStringArray]:
        found = sorted((labels(group=name), item) for item, name in enumerate(names) if self._export.has_consumer(name))
        return np.array([item for _, item in found], np.int64), pa.array([spelled for spelled, _ in found], TEXT)


@dataclass(slots=True)
class _Counted:
    """The rebalances of one group as they were last counted, by ``facts``."""

    facts: GroupFacts
    raised: int
    metadata: int
    unfinished: int

    def is_as(self, facts: GroupFacts) -> bool:
        """Whether nothing that is shown has changed."""
        known = self.facts
        return (self.raised, known.rebalance_ms, known.type) == (facts.raised, facts.rebalance_ms, facts.type)

    @property
    def counts(self) -> tuple[int, ...]:
        """The counts in the order of `COUNTED`."""
        return self.raised - self.metadata - self.unfinished, self.metadata, self.unfinished


def _count(before: _Counted | None, facts: GroupFacts) -> _Counted | None:
    if before is not None and before.facts is facts:
        return before
    if facts.raised < 0 or facts.raised_by_metadata < 0:
        return before  # its last records are not understood, or not replicated
    known = None if before is None else before.facts
    if known is not None and facts.coordinator == known.coordinator and facts.effective_offset < known.effective_offset:
        return before  # another replica, which is not that far yet
    if before is not None and before.is_as(facts):
        before.facts = facts
        return before
    if before is None or facts.raised < before.raised:
        return _Counted(facts, facts.raised, facts.raised_by_metadata, max(facts.raised_unfinished, 0))
    since = [
        each
        for each in unpacked_rebalances(facts.rebalances, facts.rebalance_clients, facts.rebalance_hosts)
        if each.raised > before.raised
    ]
    metadata = sum(each.generations for each in since if each.kind is RebalanceKind.METADATA)
    unfinished = sum(each.unfinished for each in since)
    return _Counted(facts, facts.raised, before.metadata + metadata, before.unfinished + unfinished)


def comes_and_goes(facts: GroupFacts, now_ms: int) -> Restless | None:
    """How members come and go, None if they do not.

    Groups whose members come and go: a consumer that fails at a record leaves, comes again, reads from the committed offset, and
    fails again. In between the group is empty, for seconds or minutes: that is not why it stands, and to start its consumers helps
    nothing. What proves that it goes on so: members left twice within half an hour, came back, and are away for no longer than they
    usually are. The offset at which it stands was committed before they first left, and the next record was there when they came
    back. That they fail at that record is likely; they may also fail before they read, or at what comes after it and is not
    committed.
    """
    left_ms, absences = ABSENT, []
    for each in unpacked_rebalances(facts.rebalances, facts.rebalance_clients, facts.rebalance_hosts):
        if each.kind is RebalanceKind.REJOINED or not now_ms - STORM_MINUTES * MINUTE_MS < each.at_ms <= now_ms + AHEAD_MS:
            continue
        if not each.members:
            left_ms = each.at_ms if left_ms == ABSENT else left_ms
        elif left_ms != ABSENT:
            absences.append((left_ms, each.at_ms))
            left_ms = ABSENT
    if not absences or len(absences) + (left_ms != ABSENT) < TIMES:
        return None
    usual_ms = max(PAUSE_MS, 2 * max(back - left for left, back in absences))
    away_ms = now_ms - max(facts.state_ms, left_ms) if not facts.members else now_ms - facts.rebalance_ms - STORM_PAUSE_MINUTES * MINUTE_MS
    return Restless(returns=len(absences), first_ms=absences[0][0], back_ms=absences[-1][1]) if away_ms <= usual_ms else None


@dataclass(frozen=True, slots=True)
class StandingAt:
    """A partition at whose next record consumers perhaps fail. ``since_ms``: when its offset was committed."""

    topic: str
    partition: int
    offset: int
    since_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restless:
    """How often members have come back to an empty group since ``first_ms``, when they first left, and last at ``back_ms``; 0 times if it
    was never empty, and rebalances all the time.
    """

    returns: int
    first_ms: int
    back_ms: int
    standing: tuple[StandingAt, ...] = ()
