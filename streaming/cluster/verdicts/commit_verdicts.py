"""The verdicts about every commit of a snapshot, as columns: which are so, how severe they are, and since when."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.group_use import GroupUse
from streaming.broker.protocol.group_verdicts import GroupVerdict
from streaming.cluster.consumers.group_lag import ABSENT, CODES, KNOWN, Codes, LagReason
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.consumers.group_sums import earliest_of
from streaming.cluster.verdicts.group_bounds import CALM, INFO, SEVERITY, WARNING, GroupBounds
from streaming.cluster.verdicts.group_catching_up import falls_short, outruns, reads_too_little
from streaming.cluster.verdicts.group_danger import endangered_losses
from streaming.cluster.verdicts.group_held import held_up
from streaming.cluster.verdicts.group_moved import MovedRows
from streaming.cluster.verdicts.group_skew import Shares, shares, skewed
from streaming.cluster.verdicts.group_stands import stands_still
from streaming.cluster.verdicts.group_usage import Usage
from streaming.common.arrays import Flags, Longs

FirstPending = Mapping[tuple[str, str, int], int]
"""When the first commit was appended that waits for a transaction, Unix milliseconds: by group, topic and partition."""

_MISSED = (GroupUse.IN_USE, GroupUse.UNKNOWN)
"""Who may miss what is lost."""

_PAST = (GroupVerdict.PERHAPS_LOST, GroupVerdict.BUFFERED, GroupVerdict.LOST, GroupVerdict.SKIPPED, GroupVerdict.REWOUND)
"""Verdicts about what was."""

_BESIDE = (GroupVerdict.SKEWED, GroupVerdict.WILL_EXPIRE, *_PAST)
"""Verdicts that do not decide how the group goes on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommitVerdicts:
    """The verdicts about commits, which are the columns.

    ``severity``: of each verdict (a row), `ABSENT` where it is not so. ``since_ms``: since when, Unix milliseconds, for the verdicts of
    which that is known; `ABSENT` where it is not. ``lag``: what is left: records, or offsets where those are not known; `ABSENT` if neither
    is. It is no summand: ``shares`` has what is compared and added up.
    """

    severity: Codes
    since_ms: Mapping[GroupVerdict, Longs]
    lag: Longs
    shares: Shares


def commit_verdicts(
    snapshot: GroupSnapshot,
    now_ms: int,
    bounds: GroupBounds,
    usage: Mapping[str, Usage],
    deserted: frozenset[str],
    pending: FirstPending,
) -> CommitVerdicts:
    """Judge all commits as of ``now_ms``; ``deserted``: the groups that had members, and have none until now."""
    return _Judge(snapshot, now_ms, bounds, usage, deserted, pending).verdicts()


class _Judge:
    """The flags and the times that several verdicts depend on, one item for each commit."""

    def __init__(
        self,
        snapshot: GroupSnapshot,
        now_ms: int,
        bounds: GroupBounds,
        usage: Mapping[str, Usage],
        deserted: frozenset[str],
        pending: FirstPending,
    ) -> None:
        self._snapshot, self._now_ms, self._bounds = snapshot, now_ms, bounds
        pairs, lags = snapshot.pairs, snapshot.found.lags
        self._lag = np.where(lags.left >= 0, lags.left, lags.offsets_there)
        self._shares = shares(snapshot)
        pair = np.repeat(np.arange(len(pairs)), pairs.partitions)
        self._pair_held_ms = earliest_of(snapshot.progress.held_since_ms, pairs.first)[pair]
        self._pair_stopped = (pairs.stopped > 0)[pair]
        self._deserted = _of_groups(snapshot, deserted)
        self._missed, self._between, self._abandoned, self._throw_away = _by_use(snapshot, usage)
        appended = snapshot.found.appended
        self._next_ms = appended.latest_ms
        self._pending_ms = _pending_ms(snapshot, pending)
        as_of_ms = now_ms - snapshot.found.data_age_ms
        self._age, self._most_age = (
            np.where(ms >= 0, np.maximum(as_of_ms - ms, 0), ABSENT) for ms in (self._next_ms, appended.earliest_ms)
        )
        self._held = held_up(snapshot, now_ms, bounds.held_from_ms)
        self._keeps_up = (self._next_ms >= 0) & (self._age < bounds.slower_after_ms)
        self._appended = snapshot.appended_rate[snapshot.logs.of_row]
        lost_ms = snapshot.progress.lost_ms
        self._lately = (lost_ms >= 0) & (now_ms - lost_ms <= bounds.lost_lately_ms)
        progress = snapshot.progress
        self._skipped, self._rewound = (MovedRows.of(snapshot, now_ms, forwards=forwards) for forwards in (True, False))
        self._stands, self._perhaps_stands = (
            stands_still(snapshot, usage, since_ms, now_ms) for since_ms in (progress.stopped_since_ms, progress.perhaps_since_ms)
        )
        self._outruns, self._short = outruns(snapshot, usage), falls_short(snapshot, now_ms)
        self._left_ms = snapshot.found.loss_ms - as_of_ms
        self._goes_soon = (snapshot.found.loss_ms >= 0) & (snapshot.found.loss_ms - now_ms <= bounds.loss_within_ms)
        endangered_ms = endangered_losses(snapshot, usage, now_ms)
        self._soon = (endangered_ms >= 0) & (endangered_ms - now_ms < bounds.loss_soon_ms)
        # it has no time, and once the broker is started it is too late to raise the limit
        self._goes_at_start = snapshot.found.loss_at_start & ~snapshot.found.assumed

    def verdicts(self) -> CommitVerdicts:
        """All of them."""
        progress, holds = self._snapshot.progress, self._findings()
        severity = np.full((len(GroupVerdict), len(self._lag)), ABSENT, np.int8)
        for verdict, flags in holds.items():
            severity[verdict, flags] = SEVERITY[verdict]
        self._lower(severity)
        calmest = self._calm()
        calm = self._is_reported(holds, calmest == GroupVerdict.UNKNOWN)
        severity[calmest[calm], calm] = CALM
        left = self._snapshot.found.left_over  # nobody is there who could do anything, or would miss anything
        severity[:, left] = ABSENT
        severity[GroupVerdict.LEFT_OVER, left] = CALM
        return CommitVerdicts(
            severity=severity,
            since_ms={
                GroupVerdict.STOPPED: progress.stopped_since_ms,
                GroupVerdict.HELD: self._held.since_ms,
                GroupVerdict.LOST: progress.losing_since_ms,
                GroupVerdict.PENDING: self._pending_ms,
                GroupVerdict.SKIPPED: self._skipped.at_ms,
                GroupVerdict.REWOUND: self._rewound.at_ms,
            },
            lag=self._lag,
            shares=self._shares,
        )

    def _is_reported(self, holds: Mapping[GroupVerdict, Flags], unknown: Flags) -> Flags:
        """Where the calm verdict is said too. Why a lag is not known is said beside whatever was found; a finding decides all else, but
        what was lost does not show what is not known of the rest.
        """
        reason = self._snapshot.found.lags.reason
        told = (reason == CODES[LagReason.BEYOND]) | ((reason == CODES[LagReason.MADE_ANEW]) & holds[GroupVerdict.OTHER_HISTORY])
        uncounted = unknown & (reason != KNOWN) & ~told
        decides = np.logical_or.reduce([flags for verdict, flags in holds.items() if verdict not in _BESIDE])
        past = np.logical_or.reduce([holds[verdict] for verdict in _PAST])
        reported: Flags = uncounted | (~decides & (unknown | ~past))
        return reported

    def _findings(self) -> dict[GroupVerdict, Flags]:
        """Where each verdict is so that somebody should look at."""
        found, lags, bounds = self._snapshot.found, self._snapshot.found.lags, self._bounds
        lost = (lags.below > 0) & (found.lost_records != 0) & ~found.loss_doubtful & ~found.buffered
        pending = waits_longer(self._pending_ms, self._now_ms, bounds.pending_after_ms)
        return {
            GroupVerdict.LOST: lost | self._lately,
            GroupVerdict.BUFFERED: found.buffered,
            GroupVerdict.PERHAPS_LOST: found.loss_doubtful & ~self._lately,
            GroupVerdict.WILL_LOSE: self._will_lose(self._age) | found.loss_at_start,
            GroupVerdict.TOO_LARGE: lags.next_batch_bytes > bounds.fetch_bytes,
            GroupVerdict.HELD: self._held.certain,
            GroupVerdict.BEYOND_END: lags.reason == CODES[LagReason.BEYOND],
            GroupVerdict.OTHER_HISTORY: found.invalid.skips(lags),
            GroupVerdict.PENDING: pending,
            GroupVerdict.STOPPED: found.stopped,
            GroupVerdict.SKIPPED: self._skipped.at_ms != ABSENT,
            GroupVerdict.REWOUND: self._rewound.at_ms != ABSENT,
            GroupVerdict.WILL_EXPIRE: self._will_expire(),
            GroupVerdict.SKEWED: skewed(self._snapshot, self._shares, bounds),
            GroupVerdict.SLOWER: self._slower() & ~self._deserted & ~self._between & ~found.stopped & ~pending,  # what waits has been read
        }

    def _lower(self, severity: Codes) -> None:
        """What no alert reports yet, or of groups of which none does, is only for whoever looks at the group."""
        bounds = self._bounds
        waits_long = waits_longer(self._pending_ms, self._now_ms, bounds.pending_long_ms)
        lasts = {
            GroupVerdict.HELD: waits_longer(self._pair_held_ms, self._now_ms, bounds.held_after_ms),
            GroupVerdict.PENDING: waits_long & self._pair_stopped,
        }
        lost = severity[GroupVerdict.LOST]
        lost[(lost != ABSENT) & ~self._lately] = INFO
        skipped = severity[GroupVerdict.SKIPPED]
        skipped[(skipped != ABSENT) & ~self._skipped.settled] = INFO
        for verdict, long in lasts.items():
            severity[verdict, (severity[verdict] != ABSENT) & ~long] = CALM
        will_expire = severity[GroupVerdict.WILL_EXPIRE]
        will_expire[(will_expire != ABSENT) & ~self._missed] = INFO
        will_lose = severity[GroupVerdict.WILL_LOSE]
        will_lose[(will_lose != ABSENT) & ~self._missed] = WARNING
        will_lose[(will_lose != ABSENT) & ~self._soon] = INFO
        will_lose[self._goes_at_start] = WARNING
        severity[(severity != ABSENT) & (severity < INFO) & self._abandoned] = INFO
        severity[(severity != ABSENT) & self._throw_away] = CALM

    def _calm(self) -> NDArray[np.int64]:
        """The verdict about each commit if nothing is the matter with it."""
        lags, lag, rate = self._snapshot.found.lags, self._lag, self._snapshot.progress.rate
        gone = lags.reason == CODES[LagReason.TOPIC_GONE]
        unknown = ~gone & (
            (lags.reason != KNOWN) | (lag < 0) | self._snapshot.found.perhaps_stopped | self._perhaps_loses() | self._held.perhaps
        )
        markers = ~gone & (lag == 0) & (lags.offsets > 0) & ~self._snapshot.rows.share & ~lags.held
        catches_up = ~gone & (lag > 0) & (self._appended >= 0) & (self._appended < rate) & ~self._keeps_up
        catches_up &= ~reads_too_little(self._snapshot) & ~self._deserted
        between = ~gone & (lag > 0) & self._between
        verdicts = GroupVerdict.UNKNOWN, GroupVerdict.ONLY_MARKERS, GroupVerdict.BETWEEN_RUNS, GroupVerdict.CATCHING_UP
        return np.select((unknown, markers, between, catches_up), verdicts, GroupVerdict.FINE)

    def _perhaps_loses(self) -> Flags:
        """Whether that depends on when the next record was appended, and nothing shows it."""
        perhaps = self._will_lose(self._most_age) | (self._goes_soon & self._perhaps_stands & ~self._outruns)
        return perhaps & ~self._will_lose(self._age) & self._snapshot.found.appended.undated

    def _will_lose(self, age: Longs) -> Flags:
        """Whether the next unread record, of that age, is deleted soon, and nothing shows that it is read before.

        A consumer that keeps up also has a next record, which retention will delete one day: more time is left then than the record is
        old. One that moves too slowly for what it has left does not, and a group that stands still reads nothing before, whatever its age.
        What is in danger is among these.
        """
        stands = self._deserted | self._snapshot.found.stopped | self._stands
        keeps_up = (age >= 0) & (age < self._left_ms) & ~self._short
        return self._goes_soon & (stands | ~keeps_up) & ~self._outruns

    def _will_expire(self) -> Flags:
        """Whether the committed offset is deleted soon, and somebody may come back to it."""
        expiration_ms, within_ms = self._snapshot.found.expiration_ms, self._bounds.expire_within_ms
        soon: Flags = (expiration_ms >= 0) & (expiration_ms - self._now_ms < within_ms)
        return soon & ~self._abandoned & ~self._throw_away

    def _slower(self) -> Flags:
        rate, bounds = self._snapshot.progress.rate, self._bounds
        falls_back = (rate >= 0) & (rate < self._appended) & (self._appended >= bounds.slower_from_rate)
        slower: Flags = falls_back & (self._lag > 0) & (self._snapshot.found.lags.reason == KNOWN) & ~self._keeps_up
        return slower


def waits_longer(since_ms: Longs, now_ms: int, after_ms: int) -> Flags:
    """Whether what waits since then waits for longer."""
    longer: Flags = (since_ms >= 0) & (since_ms < now_ms - after_ms)
    return longer


def _pending_ms(snapshot: GroupSnapshot, pending: FirstPending) -> Longs:
    """When the first commit of each partition was appended that waits for a transaction, `ABSENT` if none does."""
    rows, logs = snapshot.rows, snapshot.logs
    first = np.full(len(rows), ABSENT, np.int64)
    for row in np.flatnonzero(_of_groups(snapshot, {group for group, _, _ in pending})).tolist():
        log = int(logs.of_row[row])
        first[row] = pending.get((rows.group_names[rows.group[row]], logs.topics[log], int(rows.partition[row])), ABSENT)
    return first


def _by_use(snapshot: GroupSnapshot, usage: Mapping[str, Usage]) -> tuple[Flags, Flags, Flags, Flags]:
    """Of each commit's group: whether somebody may miss what it loses, whether it is between its runs, abandoned, or to be thrown away."""
    of = [usage[name] for name in snapshot.rows.group_names]
    flags = [
        [each.use in _MISSED for each in of],
        [each.between for each in of],
        [each.use is GroupUse.ABANDONED for each in of],
        [each.use is GroupUse.THROW_AWAY for each in of],
    ]
    missed, between, abandoned, throw_away = np.array(flags, np.bool_).reshape(4, len(of))[:, snapshot.rows.group]
    return missed, between, abandoned, throw_away


def _of_groups(snapshot: GroupSnapshot, names: Collection[str]) -> Flags:
    """The commits of some groups."""
    flags: Flags = np.array([name in names for name in snapshot.rows.group_names], np.bool_)[snapshot.rows.group]
    return flags
