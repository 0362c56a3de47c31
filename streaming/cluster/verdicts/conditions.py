"""What is the matter with each partition of each group: every condition of a verdict, for all commits at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.group_json import GroupUse, GroupVerdict
from streaming.cluster.consumers.commit_times import WITHIN_TIMES, is_ahead
from streaming.cluster.consumers.group_lag import ABSENT, CODES, KNOWN, Codes, LagReason
from streaming.cluster.consumers.group_rebalances import MOST_STANDING, Lately, Restless, StandingAt, all_lately, comes_and_goes
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.consumers.group_sums import CommitFacts, earliest_of
from streaming.cluster.verdicts.group_bounds import CALM, DEFAULT_BOUNDS, INFO, SEVERITY, WARNING, GroupBounds, Usage
from streaming.cluster.view.fading_rates import Rates
from streaming.common.arrays import Flags, Longs

PART_OF_LEFT = 10
"""What stands for less than this part of the time that is left is no sign of a loss: a pause of minutes is nothing where hours are left."""

_SPARE = 1.15
"""A group is faster than deletion if it is so much faster than it has to be: rates are measured."""

_NEVER_MS = np.iinfo(np.int64).max

_PAUSES_MS, _OLD_DATA_MS = 30_000, 10_000
"""The rate of a group that has read nothing for longer fades, and shows no more how fast it reads; nor does what is known of long ago."""

_TOO_SLOW = 2.0
"""A group is certainly too slow if it had to be so much faster."""

TRANSACTION, GROUP = "transaction", "group"
"""Why the next record is in danger: an open transaction keeps the group from it, or the group itself is behind."""

FirstPending = Mapping[tuple[str, str, int], int]
"""When the first commit was appended that waits for a transaction, Unix milliseconds: by group, topic and partition."""

_MISSED = (GroupUse.IN_USE, GroupUse.UNKNOWN)
"""Who may miss what is lost."""

_PAST = (GroupVerdict.PERHAPS_LOST, GroupVerdict.BUFFERED, GroupVerdict.LOST, GroupVerdict.SKIPPED, GroupVerdict.REWOUND)
"""Verdicts about what was."""

_BESIDE = (GroupVerdict.SKEWED, GroupVerdict.WILL_EXPIRE, *_PAST)
"""Verdicts that do not decide how the group goes on."""

STORM_RATIO = 3
"""So many generations a member are none yet."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeLag:
    """The lag of a group, `ABSENT` where that of some partition is not known: in records, or ``in_offsets``."""

    total: int = ABSENT
    in_offsets: bool = False


UNKNOWN_LAG = WholeLag()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """``total``, ``in_offsets``: of each group, as in `WholeLag`. ``part``: that of each commit, `ABSENT` where its topic is gone, or where
    the agent of its leader does not answer: its offsets are of the last moment in which it did."""

    total: Longs
    in_offsets: Flags
    part: Longs

    def of(self, number: int) -> WholeLag:
        """The whole lag of a group, by its number among the names of the snapshot; `ABSENT` for one without a commit."""
        return UNKNOWN_LAG if number == ABSENT else WholeLag(total=int(self.total[number]), in_offsets=bool(self.in_offsets[number]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommitVerdicts:
    """The verdicts about commits, which are the columns.

    The verdicts about every commit of a snapshot, as columns: which are so, how severe they are, and since when.

    ``since_ms``: since when, Unix milliseconds, for the verdicts of which that is known; `ABSENT` where it is not. ``lag``: what is left:
    records, or offsets where those are not known; `ABSENT` if neither is. It is no summand: ``shares`` has what is compared and added up.
    """

    severity: Codes  # of each verdict (a row), `ABSENT` where it is not so
    since_ms: Mapping[GroupVerdict, Longs]
    lag: Longs
    shares: Shares


def shares(snapshot: GroupSnapshot) -> Shares:
    """What each partition has of its group's lag.

    Which partition of a group has most of its lag: records are held against records, or else offsets against offsets. Offsets are no
    records: markers have some, and compaction leaves gaps. So where the records of one partition are not counted, those of the others
    are no measure of it, and offsets are compared of all of them.
    """
    rows, lags = snapshot.rows, snapshot.found.lags
    there = lags.reason != CODES[LagReason.TOPIC_GONE]
    groups = len(rows.group_names)
    in_offsets = _some(rows.group[there & (lags.left < 0)], groups)
    heard = lags.reason != CODES[LagReason.LEADER]
    part = np.where(there & heard, np.where(in_offsets[rows.group], lags.offsets, lags.left), ABSENT)
    total = np.zeros(groups, np.int64)
    np.add.at(total, rows.group, np.maximum(part, 0))
    total[_some(rows.group[there & (part < 0)], groups)] = ABSENT
    return Shares(total=total, in_offsets=in_offsets, part=part)


def _some(groups: Longs, count: int) -> Flags:
    """Which of the groups are among these."""
    flags: Flags = np.zeros(count, np.bool_)
    flags[groups] = True
    return flags


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
        left = self._snapshot.found.left_over  # no member is there that could do anything, or would miss anything
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
        """The commits that each verdict is about, of the verdicts that an operator should look at."""
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
            GroupVerdict.OTHER_HISTORY: found.invalid.skips,
            GroupVerdict.PENDING: pending,
            GroupVerdict.STOPPED: found.stopped,
            GroupVerdict.SKIPPED: self._skipped.at_ms != ABSENT,
            GroupVerdict.REWOUND: self._rewound.at_ms != ABSENT,
            GroupVerdict.WILL_EXPIRE: self._will_expire(),
            GroupVerdict.SKEWED: skewed(self._snapshot, self._shares, bounds),
            GroupVerdict.SLOWER: self._slower() & ~self._deserted & ~self._between & ~found.stopped & ~pending,  # what waits has been read
        }

    def _lower(self, severity: Codes) -> None:
        """Lower what no alert reports yet, or of groups of which none does: it is only for an operator who looks at the group."""
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
        other_history = severity[GroupVerdict.OTHER_HISTORY]
        other_history[(other_history != ABSENT) & self._snapshot.found.invalid.doubted] = INFO
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
        Commits in danger are among these.
        """
        stands = self._deserted | self._snapshot.found.stopped | self._stands
        keeps_up = (age >= 0) & (age < self._left_ms) & ~self._short
        return self._goes_soon & (stands | ~keeps_up) & ~self._outruns

    def _will_expire(self) -> Flags:
        """Whether the committed offset is deleted soon, and a consumer may come back to it."""
        expiration_ms, within_ms = self._snapshot.found.expiration_ms, self._bounds.expire_within_ms
        soon: Flags = (expiration_ms >= 0) & (expiration_ms - self._now_ms < within_ms)
        return soon & ~self._abandoned & ~self._throw_away

    def _slower(self) -> Flags:
        rate, bounds = self._snapshot.progress.rate, self._bounds
        falls_back = (rate >= 0) & (rate < self._appended) & (self._appended >= bounds.slower_from_rate)
        slower: Flags = falls_back & (self._lag > 0) & (self._snapshot.found.lags.reason == KNOWN) & ~self._keeps_up
        return slower


def _of_groups(snapshot: GroupSnapshot, names: Collection[str]) -> Flags:
    """The commits of some groups."""
    flags: Flags = np.array([name in names for name in snapshot.rows.group_names], np.bool_)[snapshot.rows.group]
    return flags


def _by_use(snapshot: GroupSnapshot, usage: Mapping[str, Usage]) -> tuple[Flags, Flags, Flags, Flags]:
    """Flags of each commit's group: whether its users may miss what it loses, whether it is between its runs, abandoned, or a throwaway."""
    of = [usage[name] for name in snapshot.rows.group_names]
    flags = [
        [each.use in _MISSED for each in of],
        [each.between for each in of],
        [each.use is GroupUse.ABANDONED for each in of],
        [each.use is GroupUse.THROW_AWAY for each in of],
    ]
    missed, between, abandoned, throw_away = np.array(flags, np.bool_).reshape(4, len(of))[:, snapshot.rows.group]
    return missed, between, abandoned, throw_away


def _pending_ms(snapshot: GroupSnapshot, pending: FirstPending) -> Longs:
    """When the first commit of each partition was appended that waits for a transaction, `ABSENT` if none does."""
    rows, logs = snapshot.rows, snapshot.logs
    first = np.full(len(rows), ABSENT, np.int64)
    for row in np.flatnonzero(_of_groups(snapshot, {group for group, _, _ in pending})).tolist():
        log = int(logs.of_row[row])
        first[row] = pending.get((rows.group_names[rows.group[row]], logs.topics[log], int(rows.partition[row])), ABSENT)
    return first


def held_up(snapshot: GroupSnapshot, now_ms: int, from_ms: int) -> HeldUp:
    """What waits for a transaction for ``from_ms`` or longer. It was appended after its transaction had begun, and between its bounds."""
    held, appended = snapshot.found.lags.held, snapshot.found.appended
    since_ms, open_ms = snapshot.progress.held_since_ms, snapshot.found.holding_ms
    begun_ms, as_of_ms = np.maximum(open_ms, appended.earliest_ms), now_ms - snapshot.found.data_age_ms
    watched = (since_ms >= 0) & (as_of_ms - since_ms >= from_ms)
    brief = ~watched & (begun_ms >= 0) & (as_of_ms - begun_ms < from_ms) & (appended.latest_ms <= now_ms) & ~is_ahead(begun_ms, now_ms)
    waits = (appended.latest_ms < 0) | (appended.latest_ms > now_ms) | watched
    lasts = waits | ((open_ms >= 0) & (as_of_ms - open_ms >= from_ms))
    return HeldUp(
        certain=held & lasts & ~brief,
        perhaps=held & ~lasts & ~brief,
        since_ms=np.where(held & waits, since_ms, ABSENT),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldUp:
    """One item for each commit."""

    certain: Flags  # its next record waits for longer than a moment
    perhaps: Flags  # nothing shows whether it does
    since_ms: Longs  # since when it certainly does, `ABSENT` where only the transaction shows that it does, or nothing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MovedRows:
    """One item for each commit."""

    at_ms: Longs  # when it was last moved in one direction, Unix milliseconds, `ABSENT` if it was not
    settled: Flags  # whether that is certain for one of these moves, because no program has gone on with it

    @classmethod
    def of(cls, snapshot: GroupSnapshot, now_ms: int, *, forwards: bool) -> Self:
        """The moves that an operator should know of, of a snapshot as it is judged at some time."""
        at_ms, settled = np.full(len(snapshot.rows), ABSENT, np.int64), np.zeros(len(snapshot.rows), np.bool_)
        for each in snapshot.moved.shown:
            if each.move.forwards == forwards and not snapshot.found.left_over[each.row]:
                at_ms[each.row] = max(int(at_ms[each.row]), each.move.at_ms)
                settled[each.row] |= each.is_settled(now_ms)
        return cls(at_ms=at_ms, settled=settled)


def stands_still(snapshot: GroupSnapshot, usage: Mapping[str, Usage], since_ms: Longs, now_ms: int) -> Flags:
    """Whether commits stand for longer than their groups usually pause, and for a good part of the time until the next record is deleted.

    Which partitions stand still, by their groups' own rhythm: long before they count as stopped, where a loss is near. Whoever looks
    once sees no rates, and a rate of the last minutes fades slowly. Both know since when a commit stands.

    Args:
        since_ms: since when each stands although a record is readable, `ABSENT` for those that do not.
    """
    loss_ms, as_of_ms = snapshot.found.loss_ms, now_ms - snapshot.found.data_age_ms
    interval_ms = np.array([usage[name].interval_ms for name in snapshot.rows.group_names], np.int64)[snapshot.rows.group]
    stood_ms = np.where(since_ms != ABSENT, as_of_ms - since_ms, ABSENT)
    overdue = (interval_ms != ABSENT) & (stood_ms > WITHIN_TIMES * interval_ms)
    stands: Flags = overdue & (loss_ms != ABSENT) & (stood_ms * PART_OF_LEFT >= loss_ms - as_of_ms)
    return stands


def outruns(snapshot: GroupSnapshot, usage: Mapping[str, Usage]) -> Flags:
    """Whether each commit's group reads before deletion follows."""
    return _reads_before(snapshot) | _runs_before(snapshot, usage)


def _reads_before(snapshot: GroupSnapshot) -> Flags:
    """Where a group at its rate has read each segment before that goes, and reads more than is appended, so that this stays so."""
    rate, needed = snapshot.progress.lasting_rate, _needed(snapshot)
    appended = snapshot.appended_rate[snapshot.logs.of_row]
    known = (needed >= 0) & (appended >= 0)
    reads: Flags = known & ~snapshot.found.stopped & (rate > appended) & (rate >= _SPARE * needed)
    return reads


def _needed(snapshot: GroupSnapshot) -> Rates:
    """Records a second that each commit's group has to read to be before deletion, `ABSENT` where nothing is foretold."""
    found, lags, logs = snapshot.found, snapshot.found.lags, snapshot.logs
    upto = np.where(lags.reads_uncommitted, logs.high_watermark[logs.of_row], logs.last_stable[logs.of_row])
    dense = np.minimum(np.maximum(lags.left, 0) / np.maximum(upto - lags.next_offset, 1), 1.0)  # a pace counts markers and gaps, too
    known = (found.loss_ms >= 0) & (found.loss_pace >= 0) & (lags.left > 0)
    return np.where(known, found.loss_pace * dense, float(ABSENT))


def _runs_before(snapshot: GroupSnapshot, usage: Mapping[str, Usage]) -> Flags:
    """Where a group is between its runs, and the next one is due before records are deleted."""
    of = [usage[name] for name in snapshot.rows.group_names]
    run_ms = np.array([each.alive_ms + each.interval_ms if each.between else _NEVER_MS for each in of], np.int64)[snapshot.rows.group]
    runs: Flags = (snapshot.found.loss_ms >= 0) & (run_ms < snapshot.found.loss_ms)
    return runs


def falls_short(snapshot: GroupSnapshot, now_ms: int) -> Flags:
    """The same of groups that move, and certainly: rates are measured."""
    since_ms, age_ms, rate = snapshot.progress.stopped_since_ms, snapshot.found.data_age_ms, snapshot.progress.settled_rate
    moves = (rate > 0) & ((since_ms < 0) | (now_ms - age_ms - since_ms < _PAUSES_MS)) & (age_ms <= _OLD_DATA_MS)
    short: Flags = moves & (rate * _TOO_SLOW < _needed(snapshot))
    return short


def endangered_losses(snapshot: GroupSnapshot, usage: Mapping[str, Usage], now_ms: int) -> Longs:
    """The same of the commits that are in danger, `ABSENT` for the others.

    Which partitions are read before retention deletes what comes next there, although that is near: of groups that move, or that will
    run. A new group that begins at the earliest record, and one that was reset to it, always have a next record that is among the
    first to be deleted. So has a group that reads on in what was appended in one burst, until it is through. They lose nothing if
    they are faster than deletion.

    Where retention is short, every group is close to it, and one that keeps up is in no danger: less time has to be left than the next
    record is old, or the group stands still at it, and it must not outrun deletion
    at its rate. This is what the judge calls soon, and what the alert's metric shows.
    """
    found = snapshot.found
    loss_ms, next_ms = certain_losses(found), found.appended.latest_ms
    as_of_ms = now_ms - found.data_age_ms
    age = np.where(next_ms >= 0, np.maximum(as_of_ms - next_ms, 0), 0)
    endangered = (loss_ms >= 0) & ((loss_ms - as_of_ms < age) | found.stopped) & ~outruns(snapshot, usage)
    return np.where(endangered, loss_ms, ABSENT)


def certain_losses(facts: CommitFacts) -> Longs:
    """When retention deletes the next record of each commit; `ABSENT` also where its limits are assumed: no alert fires by a guess."""
    return np.where(facts.assumed, ABSENT, facts.loss_ms)


def waits_longer(since_ms: Longs, now_ms: int, after_ms: int) -> Flags:
    """Whether what waits since then waits for longer."""
    longer: Flags = (since_ms >= 0) & (since_ms < now_ms - after_ms)
    return longer


def skewed(snapshot: GroupSnapshot, of_groups: Shares, bounds: GroupBounds) -> Flags:
    """The partition that has most of its group's lag, if there are others."""
    rows, part = snapshot.rows, of_groups.part
    most, count = (np.zeros(len(of_groups.total), np.int64) for _ in range(2))
    np.maximum.at(most, rows.group, part)
    np.add.at(count, rows.group, part != ABSENT)
    skew = (count > 1) & (of_groups.total >= bounds.skewed_records) & (most >= bounds.skewed_share * of_groups.total)
    flags: Flags = skew[rows.group] & (part == most[rows.group])
    return flags


def reads_too_little(snapshot: GroupSnapshot) -> Flags:
    """Whether at the rate of each commit's group some segment is deleted before it has read that."""
    too_little: Flags = snapshot.progress.rate < _needed(snapshot)
    return too_little


def last_skips(snapshot: GroupSnapshot, now_ms: int) -> Longs:
    """When records were last skipped by hand, of each pair of group and topic, Unix milliseconds; `ABSENT` where none were."""
    at_ms = np.full(len(snapshot.pairs), ABSENT, np.int64)
    for each in snapshot.moved.shown:
        if each.move.forwards and each.is_settled(now_ms) and not snapshot.found.left_over[each.row]:
            pair = int(np.searchsorted(snapshot.pairs.first, each.row, side="right")) - 1
            at_ms[pair] = max(int(at_ms[pair]), each.move.at_ms)
    return at_ms


def losses_by_cause(snapshot: GroupSnapshot, loss_ms: Longs, bounds: GroupBounds = DEFAULT_BOUNDS) -> dict[str, Longs]:
    """The earliest of some losses of each pair, by what causes them, as of the snapshot: to end the transaction mends one of the two."""
    held = held_up(snapshot, snapshot.at_ms, bounds.held_cause_ms).certain
    return {
        TRANSACTION: pair_losses(snapshot, np.where(held, loss_ms, ABSENT)),
        GROUP: pair_losses(snapshot, np.where(held, ABSENT, loss_ms)),
    }


def pair_losses(snapshot: GroupSnapshot, loss_ms: Longs) -> Longs:
    """The earliest of some losses over the partitions of each pair of group and topic."""
    return earliest_of(loss_ms, snapshot.pairs.first)


def restless_groups(snapshot: GroupSnapshot, now_ms: int) -> Mapping[str, Restless]:
    """The groups that rebalance all the time, or whose members come and go, with the partitions that stand meanwhile; by name.

    Which groups rebalance all the time: more often than a deployment makes them, and still. A member that is replaced makes two
    generations, one when it leaves and one when it comes; with a cooperative assignor three, for members give back what it is to get,
    and join once more. So a deployment of any size has at most `STORM_RATIO` generations for each member. What was before a pause,
    and a few, do not count: see `Lately.ratio`, which the alert goes by, too.
    """
    storms, found = rebalance_storms(snapshot, now_ms), {}
    for name in all_lately(snapshot.rebalances, snapshot.groups, now_ms):
        goes, storm = comes_and_goes(snapshot.groups[name], now_ms), storms.get(name)
        if goes is None and storm is not None:
            goes = Restless(returns=0, first_ms=storm.first_ms, back_ms=storm.last_ms)
        standing = tuple(_standing(snapshot, name, goes))[:MOST_STANDING] if goes is not None else ()
        if goes is not None and (standing or goes.returns != 1):  # who came back once, and read on, was started again
            found[name] = replace(goes, standing=standing)
    return found


def rebalance_storms(snapshot: GroupSnapshot, now_ms: int) -> Mapping[str, Lately]:
    """What those groups have of late that rebalance all the time, by name."""
    found = all_lately(snapshot.rebalances, snapshot.groups, now_ms)
    return {name: each for name, each in found.items() if each.ratio > STORM_RATIO}


def _standing(snapshot: GroupSnapshot, name: str, goes: Restless) -> Iterator[StandingAt]:
    """The partitions whose offset has not moved since, though a record was there when members came back."""
    rows, logs, found = snapshot.rows, snapshot.logs, snapshot.found
    for row in snapshot.rows_of(name):
        moved_ms, appended_ms = int(rows.moved_ms[row]), int(found.appended.latest_ms[row])
        waits = found.lags.left[row] > 0 and not found.left_over[row] and not found.lags.held[row] and not rows.share[row]
        if waits and 0 <= moved_ms <= goes.first_ms and 0 <= appended_ms <= goes.back_ms:
            next_offset = max(int(found.lags.next_offset[row]), int(rows.offset[row]))
            yield StandingAt(logs.topics[logs.of_row[row]], int(rows.partition[row]), next_offset, moved_ms)
