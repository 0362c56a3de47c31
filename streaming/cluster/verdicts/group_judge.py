"""What consumer groups suffer from, and how bad it is: decided once, on the columns of a snapshot, for every face.

The alerts of conf/alerts/Group*.yaml say the same of the metrics; `tests/alerts` holds their bounds and severities against these.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.group_verdicts import GroupVerdict
from streaming.broker.protocol.problem_json import SEVERITIES
from streaming.cluster.consumers.group_lag import ABSENT, CODES, KNOWN, LagReason
from streaming.cluster.consumers.group_partitions import pending_by_group, uncommitted
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.consumers.group_sums import UNTIMED
from streaming.cluster.verdicts import kinds
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.group_rows import GroupFacts, PendingCommit

Codes = NDArray[np.int8]

CRITICAL, WARNING, INFO, CALM = range(4)
"""Severities as numbers, the highest first: indexes of `SEVERITIES`; `CALM` is none."""

_EMPTY = "Empty"
_NO_CODE = np.int16(32_767)
_FAR = np.iinfo(np.int64).max
_CONSOLE = re.compile("console-consumer-.*")


PROBLEMS = {
    GroupVerdict.LOST: kinds.GROUP_LOST,
    GroupVerdict.WILL_LOSE: kinds.GROUP_WILL_LOSE,
    GroupVerdict.HELD: kinds.GROUP_HELD,
    GroupVerdict.PENDING: kinds.GROUP_PENDING,
    GroupVerdict.STOPPED: kinds.GROUP_STOPPED,
}
"""The problem that a verdict is, where an alert reports it."""

_SEVERITY = {verdict: SEVERITIES.index(kind.severity) for verdict, kind in PROBLEMS.items()} | {
    GroupVerdict.DAMAGED: CRITICAL,
    GroupVerdict.TOO_LARGE: WARNING,
    GroupVerdict.BEYOND_END: WARNING,
    GroupVerdict.SLOWER: INFO,
    GroupVerdict.SKEWED: INFO,
    GroupVerdict.NO_MEMBERS: INFO,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBounds:
    """From when on something is a verdict; times in milliseconds. What has not lasted for as long as an alert waits for has no severity.

    ``fetch_bytes``: what consumers fetch of a partition at once. ``loss_within_ms``: a loss that is further away is none yet, and one
    beyond ``loss_soon_ms`` is only `INFO`. ``held_after_ms``: for so long readers may wait for a transaction; ``pending_after_ms``,
    ``pending_long_ms``: its commits. ``lost_lately_ms``: a loss has a severity for so long after it was seen. ``slower_after_ms``: with a
    next record that is younger, a group keeps up, whatever its rate of the last minutes; ``slower_from_rate``: nor is a group slower than
    producers that append fewer records a second, as what fades after a burst. ``skewed_share``: of a group's lag of ``skewed_records`` or
    more, so much is most of it.
    """

    fetch_bytes: int = 1 << 20
    loss_within_ms: int = 24 * 3_600_000
    loss_soon_ms: int = 4 * 3_600_000
    held_after_ms: int = 900_000
    pending_after_ms: int = 60_000
    pending_long_ms: int = 600_000
    lost_lately_ms: int = 900_000
    slower_after_ms: int = 30_000
    slower_from_rate: float = 0.05
    skewed_share: float = 0.8
    skewed_records: int = 1000


DEFAULT_BOUNDS = GroupBounds()


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, its severity as an index of `SEVERITIES` or `CALM`, and since when it is so, Unix milliseconds, -1 not known.

    Judgements are sorted by how bad they are, the worst first.
    """

    severity: int
    verdict: GroupVerdict
    since_ms: int = ABSENT

    def __lt__(self, other: "Judgement") -> bool:
        return (self.severity, self.verdict) < (other.severity, other.verdict)

    @property
    def word(self) -> str:
        """The severity as a word, "" for none."""
        return SEVERITIES[self.severity] if self.severity < CALM else ""


FINE = Judgement(CALM, GroupVerdict.FINE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Worst:
    """The worst judgement of each group: its ``code`` (severity, then verdict), and since when the first of those is so."""

    code: NDArray[np.int16]
    since_ms: Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedGroups:
    """All groups of a snapshot, judged as of ``now_ms``.

    ``severity``: of each verdict (a row) about each commit (a column), `ABSENT` where it is not so. ``worst``: of each group's commits, by
    the group's number among the names of the snapshot. ``uncommitted``: likewise of partitions
    without a commit, by group. ``deserted``: the groups that had members and have none, though something is left.
    """

    snapshot: GroupSnapshot
    now_ms: int
    bounds: GroupBounds
    severity: Codes
    worst: Worst
    deserted: frozenset[str]
    uncommitted: dict[str, dict[tuple[str, int], Judgement]]

    @property
    def lag(self) -> Longs:
        """What is left of each commit: records, or offsets where those are not known; `ABSENT` if neither is."""
        return _lag(self.snapshot)

    def of_row(self, row: int) -> list[Judgement]:
        """The judgements about a commit, the worst first; there is at least one."""
        codes = self.severity[:, row].tolist()
        return sorted(self.judgement(GroupVerdict(verdict), row) for verdict, code in enumerate(codes) if code != ABSENT)

    def judgement(self, verdict: GroupVerdict, row: int) -> Judgement:
        """One of the judgements about a commit."""
        return Judgement(int(self.severity[verdict, row]), verdict, self._since_ms(verdict, row))

    def of_group(self, name: str, number: int) -> Judgement:
        """The worst judgement about a group; ``number``: its number among the names of the snapshot, `ABSENT` without a commit."""
        every = [*self.about(name), *self.uncommitted.get(name, {}).values()]
        if number != ABSENT and (code := int(self.worst.code[number])) != _NO_CODE:
            severity, verdict = divmod(code, len(GroupVerdict))
            every.append(Judgement(severity, GroupVerdict(verdict), int(self.worst.since_ms[number])))
        return min(every, default=FINE)

    def about(self, name: str) -> Iterator[Judgement]:
        """What is to be said of a group as a whole."""
        facts = self.snapshot.groups.get(name)
        if name in self.deserted and facts is not None:
            yield Judgement(_SEVERITY[GroupVerdict.NO_MEMBERS], GroupVerdict.NO_MEMBERS, facts.state_ms)

    def _since_ms(self, verdict: GroupVerdict, row: int) -> int:
        if verdict is GroupVerdict.PENDING:
            return _pending_since(self.snapshot, row)
        if verdict is GroupVerdict.HELD:
            lags = self.snapshot.found.lags
            append_ms = int(lags.next_append_ms[row])
            return append_ms if append_ms >= 0 else int(lags.next_timestamp_ms[row])
        dated = verdict in (GroupVerdict.STOPPED, GroupVerdict.LOST)
        return int(_since(self.snapshot, verdict)[row]) if dated else ABSENT


def judge_groups(snapshot: GroupSnapshot, now_ms: int, bounds: GroupBounds = DEFAULT_BOUNDS) -> JudgedGroups:
    """Judge all groups."""
    rows = snapshot.rows
    severity = np.full((len(GroupVerdict), len(rows)), ABSENT, np.int8)
    deserted = _deserted(snapshot)
    if len(rows):
        _Rows(snapshot, now_ms, bounds, deserted).judge(severity)
    left = np.zeros(len(rows.group_names), np.bool_)
    left[rows.group[_lag(snapshot) > 0]] = True
    names_left = {name for name, some in zip(rows.group_names, left.tolist(), strict=True) if some}
    return JudgedGroups(
        snapshot=snapshot,
        now_ms=now_ms,
        bounds=bounds,
        severity=severity,
        worst=_worst(snapshot, severity),
        deserted=deserted & names_left,
        uncommitted=_uncommitted(snapshot, now_ms, bounds),
    )


def _worst(snapshot: GroupSnapshot, severity: Codes) -> Worst:
    rows, groups = snapshot.rows, len(snapshot.rows.group_names)
    code = np.full(len(rows), _NO_CODE, np.int16)
    for verdict in GroupVerdict:
        of = severity[verdict]
        np.minimum(code, np.where(of == ABSENT, _NO_CODE, of.astype(np.int16) * len(GroupVerdict) + verdict), out=code)
    worst = np.full(groups, _NO_CODE, np.int16)
    np.minimum.at(worst, rows.group, code)
    first = np.full(groups, _FAR, np.int64)
    verdict_of = code % len(GroupVerdict)
    since = np.full(len(rows), ABSENT, np.int64)
    for verdict in (GroupVerdict.STOPPED, GroupVerdict.HELD, GroupVerdict.LOST):
        since = np.where(verdict_of == verdict, _since(snapshot, verdict), since)
    for row in np.flatnonzero(verdict_of == GroupVerdict.PENDING).tolist():
        since[row] = _pending_since(snapshot, row)
    some = np.flatnonzero((code == worst[rows.group]) & (since >= 0))
    np.minimum.at(first, rows.group[some], since[some])
    return Worst(code=worst, since_ms=np.where(first == _FAR, ABSENT, first))


def _since(snapshot: GroupSnapshot, verdict: GroupVerdict) -> Longs:
    """Since when a verdict is so about each commit, where one column shows that."""
    if verdict is GroupVerdict.STOPPED:
        return snapshot.progress.stopped_since_ms
    return snapshot.progress.lost_ms if verdict is GroupVerdict.LOST else _next_ms(snapshot)


def _pending_since(snapshot: GroupSnapshot, row: int) -> int:
    rows, logs = snapshot.rows, snapshot.logs
    where = rows.group_names[rows.group[row]], logs.topics[logs.of_row[row]], int(rows.partition[row])
    return _first(each for each in snapshot.pending if (each.group, each.topic, each.partition) == where)


class _Rows:
    """The judgements about commits, one column for each."""

    def __init__(self, snapshot: GroupSnapshot, now_ms: int, bounds: GroupBounds, deserted: frozenset[str]) -> None:
        self._snapshot, self._now_ms, self._bounds = snapshot, now_ms, bounds
        rows, pairs = snapshot.rows, snapshot.pairs
        self._pair = np.repeat(np.arange(len(pairs)), pairs.partitions)
        self._deserted = _of_groups(snapshot, deserted)
        self._console = _of_groups(snapshot, [name for name in rows.group_names if _CONSOLE.fullmatch(name)])
        self._next_ms = _next_ms(snapshot)
        self._age = np.where(self._next_ms >= 0, now_ms - self._next_ms, ABSENT)
        self._pair_age = _pair_ages(snapshot, now_ms)[self._pair]
        lost_ms = snapshot.progress.lost_ms
        self._lately = (lost_ms >= 0) & (now_ms - lost_ms <= bounds.lost_lately_ms)
        left = snapshot.found.loss_ms - now_ms
        stands = (pairs.stopped > 0)[self._pair]
        self._soon = (snapshot.found.loss_ms >= 0) & (left < bounds.loss_soon_ms) & ((left < self._pair_age) | stands)

    def judge(self, severity: Codes) -> None:
        """Fill in what is so."""
        snapshot, bounds = self._snapshot, self._bounds
        found, lags, lag = snapshot.found, snapshot.found.lags, _lag(snapshot)
        alone = ~self._deserted
        verdicts = {
            GroupVerdict.LOST: ((lags.below > 0) & (found.lost_records != 0)) | self._lately,
            GroupVerdict.WILL_LOSE: self._will_lose(lag),
            GroupVerdict.TOO_LARGE: lags.next_batch_bytes > bounds.fetch_bytes,
            GroupVerdict.HELD: lags.held,
            GroupVerdict.BEYOND_END: lags.reason == CODES[LagReason.BEYOND],
            GroupVerdict.PENDING: self._pending(bounds.pending_after_ms),
            GroupVerdict.STOPPED: found.stopped,
            GroupVerdict.SKEWED: self._skewed(lag),
        }
        verdicts[GroupVerdict.SLOWER] = self._slower(lag) & alone & ~verdicts[GroupVerdict.STOPPED]
        for verdict, holds in verdicts.items():
            severity[verdict, holds] = _SEVERITY[verdict]
        self._judge_severity(severity)
        calm = ~np.logical_or.reduce([holds for verdict, holds in verdicts.items() if verdict is not GroupVerdict.SKEWED])
        gone = lags.reason == CODES[LagReason.TOPIC_GONE]
        unknown = ~gone & ((lags.reason != KNOWN) | (lag < 0))
        markers = ~unknown & ~gone & (lag == 0) & (lags.offsets > 0) & ~snapshot.rows.share
        catches_up = ~unknown & ~gone & (lag > 0) & (self._appended() >= 0) & (self._appended() < snapshot.progress.rate)
        verdict_of = np.select(
            (unknown, markers, catches_up), (GroupVerdict.UNKNOWN, GroupVerdict.ONLY_MARKERS, GroupVerdict.CATCHING_UP), GroupVerdict.FINE
        )
        some = np.flatnonzero(calm)
        severity[verdict_of[some], some] = CALM

    def _judge_severity(self, severity: Codes) -> None:
        """What no alert reports yet, or of groups of which none does, is only for whoever looks at the group."""
        pairs, bounds = self._snapshot.pairs, self._bounds
        lasts = {
            GroupVerdict.HELD: self._pair_age > bounds.held_after_ms,
            GroupVerdict.PENDING: self._pending(bounds.pending_long_ms) & (pairs.stopped > 0)[self._pair],
            GroupVerdict.STOPPED: ~self._console,
            GroupVerdict.LOST: ~self._console,
        }
        lost = severity[GroupVerdict.LOST]
        lost[(lost != ABSENT) & ~self._lately] = INFO
        for verdict, long in lasts.items():
            severity[verdict, (severity[verdict] != ABSENT) & ~long] = CALM
        will_lose = severity[GroupVerdict.WILL_LOSE]
        will_lose[(will_lose != ABSENT) & ~self._soon] = INFO
        will_lose[(will_lose != ABSENT) & self._console] = CALM

    def _will_lose(self, lag: Longs) -> Flags:
        """Whether the next unread record is deleted soon, and nothing shows that it is read before.

        A consumer that keeps up also has a next record, which retention will delete one day: more time is left then than the record is
        old. A group that stands still reads nothing before, whatever its age.
        """
        found, progress = self._snapshot.found, self._snapshot.progress
        left = found.loss_ms - self._now_ms
        soon = (found.loss_ms >= 0) & (left <= self._bounds.loss_within_ms)
        stands = self._deserted | found.stopped
        keeps_up = (self._age >= 0) & (self._age < left)
        faster = progress.rate - np.maximum(self._appended(), 0.0)
        needs_ms = 1000 * np.maximum(lag, 0) / np.where(faster > 0, faster, 1.0)
        in_time = (faster > 0) & (needs_ms < left)
        return soon & (stands | self._soon | ~(keeps_up | in_time))

    def _slower(self, lag: Longs) -> Flags:
        rate, appended, bounds = self._snapshot.progress.rate, self._appended(), self._bounds
        falls_back = (rate >= 0) & (rate < appended) & (appended >= bounds.slower_from_rate)
        slower: Flags = falls_back & (lag > 0) & (self._now_ms - self._next_ms >= bounds.slower_after_ms)
        return slower

    def _appended(self) -> NDArray[np.float64]:
        return self._snapshot.appended_rate[self._snapshot.logs.of_row]

    def _skewed(self, lag: Longs) -> Flags:
        """The partition that has most of its group's lag, if there are others."""
        rows, bounds, left = self._snapshot.rows, self._bounds, np.maximum(lag, 0)
        total, most, count = (np.zeros(len(rows.group_names), np.int64) for _ in range(3))
        np.add.at(total, rows.group, left)
        np.maximum.at(most, rows.group, left)
        np.add.at(count, rows.group, 1)
        skewed = (count > 1) & (total >= bounds.skewed_records) & (most >= bounds.skewed_share * total)
        flags: Flags = skewed[rows.group] & (left == most[rows.group])
        return flags

    def _pending(self, after_ms: int) -> Flags:
        """The partitions of which commits of a transaction wait for longer. There are few of those."""
        rows, logs = self._snapshot.rows, self._snapshot.logs
        flags = np.zeros(len(rows), np.bool_)
        late = {(each.group, each.topic, each.partition) for each in self._snapshot.pending if _waits(each, self._now_ms, after_ms)}
        for group in {name for name, _, _ in late}:
            for row in self._snapshot.rows_of(group):
                flags[row] = (group, logs.topics[logs.of_row[row]], int(rows.partition[row])) in late
        return flags


def _waits(pending: PendingCommit, now_ms: int, after_ms: int) -> bool:
    return 0 <= pending.commit_ms < now_ms - after_ms


def _first(pending: Iterator[PendingCommit]) -> int:
    return min((each.commit_ms for each in pending if each.commit_ms >= 0), default=ABSENT)


def _uncommitted(snapshot: GroupSnapshot, now_ms: int, bounds: GroupBounds) -> dict[str, dict[tuple[str, int], Judgement]]:
    """Of each group the partitions that have no offset but those of open transactions."""
    judged: dict[str, dict[tuple[str, int], Judgement]] = {}
    for group, waiting in pending_by_group(snapshot.pending).items():
        stopped = _stopped_topics(snapshot, group)
        for log in uncommitted(snapshot, group, waiting):
            those = [each for each in waiting if (each.topic, each.partition) == log]
            late, long = (any(_waits(each, now_ms, after) for each in those) for after in (bounds.pending_after_ms, bounds.pending_long_ms))
            severity = _SEVERITY[GroupVerdict.PENDING] if long and log[0] in stopped else CALM
            judged.setdefault(group, {})[log] = Judgement(severity, GroupVerdict.PENDING, _first(iter(those))) if late else FINE
    return judged


def _stopped_topics(snapshot: GroupSnapshot, group: str) -> frozenset[str]:
    """The topics of which a group has stopped in some partition."""
    logs = snapshot.logs
    return frozenset(logs.topics[logs.of_row[row]] for row in snapshot.rows_of(group) if snapshot.found.stopped[row])


def _lag(snapshot: GroupSnapshot) -> Longs:
    """What is left of each partition: records, or offsets where those are not known."""
    lags = snapshot.found.lags
    return np.where(lags.read_committed >= 0, lags.read_committed, lags.offsets)


def _next_ms(snapshot: GroupSnapshot) -> Longs:
    """Since when the next record of each partition is there, `ABSENT` if that is not known."""
    lags = snapshot.found.lags
    return np.where(lags.next_append_ms >= 0, lags.next_append_ms, lags.next_timestamp_ms)


def _pair_ages(snapshot: GroupSnapshot, now_ms: int) -> Longs:
    """How old the oldest unread record of each pair of group and topic is, by the clock that shows it; `ABSENT` if none does."""
    pairs = snapshot.pairs

    def ages(times: Longs) -> Longs:
        return np.where(times == ABSENT, 0, np.maximum(now_ms - times, 0))

    known, append, record = pairs.known > 0, pairs.oldest_append_ms, pairs.oldest_timestamp_ms
    return np.where(known & (append != UNTIMED), ages(append), np.where(known & (record != UNTIMED), ages(record), ABSENT))


def is_deserted(facts: GroupFacts | None) -> bool:
    """Whether a group had members and has none."""
    return facts is not None and facts.members == 0 and facts.epoch > 0 and facts.state == _EMPTY


def _deserted(snapshot: GroupSnapshot) -> frozenset[str]:
    return frozenset(name for name, facts in snapshot.groups.items() if is_deserted(facts))


def _of_groups(snapshot: GroupSnapshot, names: "frozenset[str] | list[str]") -> Flags:
    """The commits of some groups."""
    some = {*names}
    flags: Flags = np.array([name in some for name in snapshot.rows.group_names], np.bool_)[snapshot.rows.group]
    return flags
