"""What consumer groups suffer from, and how bad it is: decided once, on the columns of a snapshot, for every face."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.group_json import GroupSummary, GroupUse, GroupVerdict
from streaming.broker.protocol.history_json import DeletedTopic
from streaming.broker.protocol.status_json import SEVERITIES
from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_rebalances import Lately, Restless
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.consumers.group_uncommitted import Uncommitted
from streaming.cluster.verdicts.conditions import (
    CommitVerdicts,
    FirstPending,
    commit_verdicts,
    rebalance_storms,
    restless_groups,
    waits_longer,
)
from streaming.cluster.verdicts.group_bounds import CALM, DEFAULT_BOUNDS, INFO, SEVERITY, GroupBounds, Usage, usages
from streaming.common.arrays import Longs
from streaming.kafka.groups.group_rows import GroupFacts, PendingCommit
from streaming.kafka.groups.group_states import GroupState

_NO_CODE = np.int16(32_767)
_ONLY_MARKERS, _FINE = (np.int16(CALM * len(GroupVerdict) + verdict) for verdict in (GroupVerdict.ONLY_MARKERS, GroupVerdict.FINE))
_FAR = np.iinfo(np.int64).max


def judge_groups(snapshot: GroupSnapshot, now_ms: int, bounds: GroupBounds = DEFAULT_BOUNDS) -> JudgedGroups:
    """Judge all groups."""
    rows, pending = snapshot.rows, _first_pending(_waiting_now(snapshot))
    usage = usages(snapshot, now_ms, bounds)
    restless = restless_groups(snapshot, now_ms)
    deserted = frozenset(
        name for name, facts in snapshot.groups.items() if had_members(facts) and not usage[name].between and name not in restless
    )
    commits = commit_verdicts(snapshot, now_ms, bounds, usage, deserted, pending)
    with_lag = {rows.group_names[group] for group in np.unique(rows.group[(commits.lag > 0) & ~snapshot.found.left_over]).tolist()}
    return JudgedGroups(
        snapshot=snapshot,
        now_ms=now_ms,
        bounds=bounds,
        usage=usage,
        commits=commits,
        worst=_worst(snapshot, commits),
        deserted=deserted & with_lag,
        storms=rebalance_storms(snapshot, now_ms),
        restless=restless,
        uncommitted=_uncommitted(snapshot, now_ms, bounds, usage, pending),
        deleted_topics={
            name: [*some] for name, some in groupby(sorted(snapshot.deleted_topics, key=attrgetter("group")), attrgetter("group"))
        },
    )


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, its severity as an index of `SEVERITIES` or `CALM`, and since when it is so, Unix milliseconds, -1 not known.

    Judgements are sorted by how bad they are, the worst first.
    """

    severity: int
    verdict: GroupVerdict
    since_ms: int = ABSENT

    def __lt__(self, other: Judgement) -> bool:
        return (self.severity, self.verdict) < (other.severity, other.verdict)

    @property
    def word(self) -> str:
        """The severity as a word, "" for none."""
        return SEVERITIES[self.severity] if self.severity < CALM else ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Worst:
    """The worst judgement of each group: its ``code`` (severity, then verdict), and since when the first of those is so."""

    code: NDArray[np.int16]
    since_ms: Longs
    of_row: NDArray[np.int16]  # the code of each commit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedGroups:
    """All groups of a snapshot, judged as of ``now_ms``."""

    snapshot: GroupSnapshot
    now_ms: int
    bounds: GroupBounds
    usage: Mapping[str, Usage]  # who uses each group, by its name
    commits: CommitVerdicts
    worst: Worst  # the worst judgement of each group's commits, by the group's number among the names of the snapshot
    deserted: frozenset[str]  # the groups that had members and have none, though something is left, and that are not between their runs
    storms: Mapping[str, Lately]  # the groups that rebalance all the time
    restless: Mapping[str, Restless]  # these, and those whose members come and go
    uncommitted: dict[str, dict[tuple[str, int], Judgement]]  # the judgements of partitions without a commit, by group
    deleted_topics: Mapping[str, Sequence[DeletedTopic]]  # by group, those of which it had records to read

    def of_row(self, row: int) -> list[Judgement]:
        """The judgements about a commit, the worst first; there is at least one."""
        codes = self.commits.severity[:, row].tolist()
        return sorted(self.judgement(GroupVerdict(verdict), row) for verdict, code in enumerate(codes) if code != ABSENT)

    def judgement(self, verdict: GroupVerdict, row: int) -> Judgement:
        """One of the judgements about a commit."""
        since = self.commits.since_ms.get(verdict)
        return Judgement(int(self.commits.severity[verdict, row]), verdict, ABSENT if since is None else int(since[row]))

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
        if deleted := self.deleted_topics.get(name):
            use = self.usage[name].use if name in self.usage else GroupUse.UNKNOWN
            yield Judgement(_for_use(SEVERITY[GroupVerdict.LOST], use), GroupVerdict.LOST, min(each.at_ms for each in deleted))
        if name in self.deserted and facts is not None:
            severity = _for_use(SEVERITY[GroupVerdict.NO_MEMBERS], self.usage[name].use)
            yield Judgement(severity, GroupVerdict.NO_MEMBERS, facts.state_ms)
        if name in self.storms:
            severity = _for_use(SEVERITY[GroupVerdict.REBALANCING], self.usage[name].use)
            yield Judgement(severity, GroupVerdict.REBALANCING, self.storms[name].first_ms)
        elif name in self.restless and self.restless[name].standing:
            yield Judgement(_for_use(INFO, self.usage[name].use), GroupVerdict.REBALANCING, self.restless[name].first_ms)
        if name in self.snapshot.queries and self.snapshot.queries[name].doubts:
            yield Judgement(CALM, GroupVerdict.UNKNOWN)


FINE = Judgement(CALM, GroupVerdict.FINE)


def _for_use(severity: int, use: GroupUse) -> int:
    """How severe something is for a group of that use."""
    return CALM if use is GroupUse.THROW_AWAY else max(severity, INFO) if use is GroupUse.ABANDONED else severity


def _first_pending(pending: Iterable[PendingCommit]) -> FirstPending:
    first: dict[tuple[str, str, int], int] = {}
    for each in pending:
        if each.commit_ms >= 0:
            partition = each.group, each.topic, each.partition
            first[partition] = min(first.get(partition, each.commit_ms), each.commit_ms)
    return first


def _waiting_now(snapshot: GroupSnapshot) -> Iterator[PendingCommit]:
    """The commits that wait, but not where the marker of their transaction may be in what is not read."""
    stale = snapshot.coordinators_not_current
    return (each for each in snapshot.pending if each.coordinator not in stale)


def had_members(facts: GroupFacts | GroupSummary) -> bool:
    """Whether a group had members and has none."""
    return facts.members == 0 and facts.epoch > 0 and facts.state == GroupState.EMPTY


def _worst(snapshot: GroupSnapshot, commits: CommitVerdicts) -> Worst:
    rows, groups = snapshot.rows, len(snapshot.rows.group_names)
    code = np.full(len(rows), _NO_CODE, np.int16)
    for verdict, severity in zip(GroupVerdict, commits.severity, strict=True):
        np.minimum(code, np.where(severity == ABSENT, _NO_CODE, severity.astype(np.int16) * len(GroupVerdict) + verdict), out=code)
    worst = np.full(groups, _NO_CODE, np.int16)
    np.minimum.at(worst, rows.group, code)
    has_left = np.zeros(groups, np.bool_)
    has_left[rows.group[commits.lag > 0]] = True
    worst[has_left & (worst == _ONLY_MARKERS)] = _FINE  # markers in some partitions are nothing beside records left in others
    since = np.full(len(rows), ABSENT, np.int64)
    for verdict, times in commits.since_ms.items():
        since = np.where(code % len(GroupVerdict) == verdict, times, since)
    first = np.full(groups, _FAR, np.int64)
    some = np.flatnonzero((code == worst[rows.group]) & (since >= 0))
    np.minimum.at(first, rows.group[some], since[some])
    return Worst(code=worst, since_ms=np.where(first == _FAR, ABSENT, first), of_row=code)


def _uncommitted(
    snapshot: GroupSnapshot, now_ms: int, bounds: GroupBounds, usage: Mapping[str, Usage], pending: FirstPending
) -> dict[str, dict[tuple[str, int], Judgement]]:
    """The partitions of each group that have no offset, or only offsets of open transactions."""
    judged: dict[str, dict[tuple[str, int], Judgement]] = {}
    for group, partitions in snapshot.uncommitted.items():
        stopped = _stopped_topics(snapshot, group) if pending else frozenset()
        since_ms = np.array([pending.get((group, each.topic, each.partition), ABSENT) for each in partitions], np.int64)
        late, long = (waits_longer(since_ms, now_ms, after) for after in (bounds.pending_after_ms, bounds.pending_long_ms))
        judged[group] = {
            (each.topic, each.partition): _waiting(since, usage[group].use, severe=long_too and each.topic in stopped)
            if is_late
            else _unread(each)
            for each, since, is_late, long_too in zip(partitions, since_ms.tolist(), late.tolist(), long.tolist(), strict=True)
        }
    return judged


def _stopped_topics(snapshot: GroupSnapshot, group: str) -> frozenset[str]:
    """The topics of which a group has stopped in some partition."""
    logs = snapshot.logs
    return frozenset(logs.topics[logs.of_row[row]] for row in snapshot.rows_of(group) if snapshot.found.stopped[row])


def _waiting(since_ms: int, use: GroupUse, *, severe: bool) -> Judgement:
    return Judgement(_for_use(SEVERITY[GroupVerdict.PENDING], use) if severe else CALM, GroupVerdict.PENDING, since_ms)


def _unread(partition: Uncommitted) -> Judgement:
    """What its consumers have read is on no disk, unless there is no record that they may have to read."""
    if partition.reason is None and partition.records == 0:
        return FINE
    unknown = partition.reason is not None or partition.records == ABSENT
    return Judgement(CALM, GroupVerdict.UNKNOWN if unknown else GroupVerdict.NOT_COMMITTED)
