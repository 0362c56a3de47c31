"""Problems of consumer groups: what their judgement weighs, one for each group, topic, verdict and severity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from streaming.broker.protocol.group_json import GroupPartition, GroupSummary, GroupUse, GroupVerdict
from streaming.cluster.consumers.group_lag import ABSENT, Lags
from streaming.cluster.consumers.group_partitions import GroupPartitions
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.circumstances import (
    NO_PRODUCER,
    Circumstances,
    LinkedProblem,
    Links,
    TopicPartition,
    found,
    only,
    partitions_named,
    partitions_of,
)
from streaming.cluster.verdicts.commands import NO_COMMAND, Command
from streaming.cluster.verdicts.conditions import certain_losses
from streaming.cluster.verdicts.group_bounds import CALM, PROBLEMS, order
from streaming.cluster.verdicts.group_findings import GroupFindings
from streaming.cluster.verdicts.group_judge import FINE, JudgedGroups
from streaming.cluster.verdicts.group_words import deleted_topic_text, listed_rebalances, restless_text
from streaming.cluster.verdicts.transaction_problems import TransactionCauses, transaction_causes
from streaming.cluster.view.family import Export
from streaming.common.units import format_be, format_count, format_list, format_name
from streaming.kafka.groups.group_rows import GroupFacts
from streaming.kafka.groups.group_states import GroupType

_FAR = np.iinfo(np.int64).max

MOST_PROBLEMS = 10_000
"""So many are put into words, the most severe ones with the largest lags."""

_MOST_NAMED = 5

_LOSING_MS = 600_000
"""Who lost records within so long, two of Kafka's usual checks, and will lose more, is losing them."""

_LOSSES = (GroupVerdict.LOST, GroupVerdict.WILL_LOSE)

_OWN = (False, NO_PRODUCER)
"""What waits for no transaction."""


def group_problems(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    """Problems of consumer groups."""
    judged = circumstances.groups
    if judged is None:
        return
    chosen = sorted(_subjects(judged, circumstances), key=lambda each: (each.about.severity, -each.lag, each.about))[:MOST_PROBLEMS]
    messages = GroupPartitions(judged.snapshot, circumstances.view, circumstances.topics)
    late = {each.topic for each in circumstances.view.late}
    firsts = iter(messages.committed([each.rows[0] for each in chosen if each.rows]))
    yield from _abandoned(judged, circumstances.export)
    yield from _storms(judged, circumstances)
    yield from _deleted_topics(judged, circumstances)
    for each in chosen:
        first = next(firsts) if each.rows else _without_commit(messages, each)
        yield _problem(circumstances, judged, each, first, came_late=each.about.topic in late and _came_late(messages, each))


def _subjects(judged: JudgedGroups, circumstances: Circumstances) -> Iterator[_Rows]:
    rows, logs = judged.snapshot.rows, judged.snapshot.logs
    lags, loss_ms, waits = judged.commits.lag, judged.snapshot.found.loss_ms, _Waits(judged, transaction_causes(circumstances))
    for verdict in PROBLEMS:
        codes = judged.commits.severity[verdict]
        by_subject: dict[_Subject, list[int]] = {}
        for row in np.flatnonzero((codes >= 0) & (codes < CALM)).tolist():
            about = _Subject(
                int(codes[row]), verdict, rows.group_names[rows.group[row]], logs.topics[logs.of_row[row]], *waits.of_row(row, verdict)
            )
            by_subject.setdefault(about, []).append(row)
        without = _uncommitted(judged, verdict, waits)
        for about in by_subject.keys() | without.keys():
            if circumstances.export.has_consumer(about.group) and not _is_abandoned(judged, about.group):
                those = sorted(
                    by_subject.get(about, ()), key=lambda row: (order(verdict, int(lags[row]), int(loss_ms[row])), rows.partition[row])
                )
                yield _rows(judged.snapshot.found.lags, about, those, without.get(about, ()))


class _Subject(NamedTuple):
    """What a problem is about; severities and verdicts are sorted as they stand here.

    ``waits``: for an open transaction. ``producer``: whose it is, if that transaction is a problem. What waits and what does not, and what
    waits for different ones, are problems of their own: they have different causes.
    """

    severity: int
    verdict: GroupVerdict
    group: str
    topic: str
    waits: bool = False
    producer: int = NO_PRODUCER


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The commits that a problem is about, that with the largest lag first, and partitions without a commit."""

    about: _Subject
    rows: Sequence[int]
    uncommitted: Sequence[int]
    records: int  # what is left of the partitions whose records are counted, `ABSENT` if none is
    uncounted: int  # how many are not
    offsets: int  # those of the commits, as far as they are known

    @property
    def lag(self) -> int:
        """The lag by which the largest come first: in records, else in offsets."""
        return self.records if self.records >= 0 else self.offsets

    @property
    def left(self) -> str:
        """What is left, in words: records are added up alone."""
        if self.records < 0:
            offsets = format_count(self.offsets, "offset")
            return f"{offsets} still to be read there, of which the records are not counted." if self.offsets else ""
        if self.uncounted:
            count, be = format_count(self.uncounted, "partition"), format_be(self.uncounted)
            return f"At least {format_count(self.records, 'record')} still to be read there; {count} {be} not counted."
        return f"{format_count(self.records, 'record')} still to be read there." if self.records else ""


class _Waits:
    """The open transaction that commits, or the records that come next, wait for: whether they do, and its producer if it is a problem."""

    def __init__(self, judged: JudgedGroups, causes: TransactionCauses) -> None:
        self._judged, self._causes = judged, causes
        self._pending: dict[tuple[str, TopicPartition], list[int]] = {}
        for each in judged.snapshot.pending:
            self._pending.setdefault((each.group, (each.topic, each.partition)), []).append(each.producer_id)

    def of_row(self, row: int, verdict: GroupVerdict) -> tuple[bool, int]:
        """What a commit waits for, by what is wrong with it. What it lost before it went on was not lost because it waits now."""
        found = self._judged.snapshot.found
        if verdict is GroupVerdict.LOST and (found.lags.below[row] <= 0 or found.buffered[row]):
            return _OWN
        rows, logs, severity = self._judged.snapshot.rows, self._judged.snapshot.logs, self._judged.commits.severity
        partition = logs.topics[logs.of_row[row]], int(rows.partition[row])
        if severity[GroupVerdict.HELD, row] != ABSENT:
            return True, self._causes.of_held(partition)
        return self.of_commits(rows.group_names[rows.group[row]], partition) if severity[GroupVerdict.PENDING, row] != ABSENT else _OWN

    def of_commits(self, group: str, partition: TopicPartition) -> tuple[bool, int]:
        """What the commits of a partition wait for."""
        return True, self._causes.of_pending(self._pending.get((group, partition), ()))


def _uncommitted(judged: JudgedGroups, verdict: GroupVerdict, waits: _Waits) -> dict[_Subject, list[int]]:
    partitions: dict[_Subject, list[int]] = {}
    for group, logs in judged.uncommitted.items():
        for (topic, partition), judgement in logs.items():
            if judgement.verdict is verdict and judgement.severity < CALM:
                about = _Subject(judgement.severity, verdict, group, topic, *waits.of_commits(group, (topic, partition)))
                partitions.setdefault(about, []).append(partition)
    return partitions


def _is_abandoned(judged: JudgedGroups, group: str) -> bool:
    return group in judged.usage and judged.usage[group].use is GroupUse.ABANDONED


def _rows(lags: Lags, about: _Subject, rows: Sequence[int], uncommitted: Sequence[int]) -> _Rows:
    left, offsets = lags.left[list(rows)], lags.offsets_there[list(rows)]
    counted = left >= 0
    return _Rows(
        about=about,
        rows=rows,
        uncommitted=uncommitted,
        records=int(left[counted].sum()) if counted.any() else ABSENT,
        uncounted=int((~counted).sum()) + len(uncommitted),
        offsets=int(np.maximum(offsets, 0).sum()),
    )


def _abandoned(judged: JudgedGroups, export: Export) -> Iterator[LinkedProblem]:
    """One problem for all abandoned groups: no consumer misses what they lose. Each group's own page tells what it suffers from."""
    names = sorted(name for name in judged.usage if _is_abandoned(judged, name) and export.has_consumer(name))
    if names:
        yield found(kinds.GROUPS_ABANDONED, format_list([format_name(each) for each in names], _MOST_NAMED), value=len(names))


def _storms(judged: JudgedGroups, circumstances: Circumstances) -> Iterator[LinkedProblem]:
    """Groups that rebalance all the time."""
    for name, restless in judged.restless.items():
        judgement = next((each for each in judged.about(name) if each.verdict is GroupVerdict.REBALANCING), FINE)
        if judgement.severity < CALM and circumstances.export.has_consumer(name) and not _is_abandoned(judged, name):
            times, rebalances = replace(circumstances.times, now_ms=judged.now_ms), listed_rebalances(judged.snapshot.groups[name])
            text = restless_text(judged.storms.get(name), restless, rebalances, times)
            yield found(
                kinds.GROUP_REBALANCING,
                text,
                severity=judgement.word,
                group=name,
                since_ms=judgement.since_ms,
                command=circumstances.commands.why(name),
            )


def _deleted_topics(judged: JudgedGroups, circumstances: Circumstances) -> Iterator[LinkedProblem]:
    """Topics that were deleted with records that groups had to read. The group may be gone, too."""
    times, export = replace(circumstances.times, now_ms=judged.now_ms), circumstances.export
    for name, some in judged.deleted_topics.items():
        judgement = next(each for each in judged.about(name) if each.verdict is GroupVerdict.LOST)
        if judgement.severity < CALM and export.has_consumer(name) and not _is_abandoned(judged, name):
            there = name in judged.usage
            for each in some:
                if export.has_topic(each.topic):
                    yield found(
                        kinds.GROUP_LOST,
                        deleted_topic_text(each, times),
                        severity=judgement.word,
                        topic=each.topic,
                        group=name,
                        since_ms=each.at_ms,
                        command=circumstances.commands.why(name) if there else Command(reason="the group is gone, too"),
                    )


def _without_commit(messages: GroupPartitions, each: _Rows) -> GroupPartition:
    log = each.about.topic, each.uncommitted[0]
    return next(of for of in messages.uncommitted(each.about.group) if (of.topic, of.partition) == log)


def _problem(circumstances: Circumstances, judged: JudgedGroups, each: _Rows, first: GroupPartition, *, came_late: bool) -> LinkedProblem:
    about, rows = each.about, judged.snapshot.rows
    kind, facts = PROBLEMS[about.verdict], judged.snapshot.groups.get(about.group)
    waiting = judged.uncommitted.get(about.group, {})
    judgements = [judged.judgement(about.verdict, row) for row in each.rows]
    judgements += [waiting[about.topic, partition] for partition in each.uncommitted]
    words = GroupFindings(
        summary=_summary(about.group, facts),
        commands=circumstances.commands.of_group(about.group, facts.type if facts is not None else ""),
        bounds=judged.bounds,
        now_ms=judged.now_ms,
        away=circumstances.away,
        lasting=circumstances.lasting,
        causes=circumstances.causes,
    )
    finding = words.of_partition(first, judgements[0])
    partitions = [*(int(rows.partition[row]) for row in each.rows), *each.uncommitted]
    more = f" (likewise {partitions_named(sorted(partitions[1:]))})" if len(partitions) > 1 else ""
    command = Command(finding.command, finding.no_command)
    losing = _losing(circumstances, judged, each) if about.verdict is GroupVerdict.WILL_LOSE else ""
    deadline_ms = _deadline_ms(judged, each) if about.verdict is GroupVerdict.WILL_LOSE else -1
    return found(
        kind,
        f"{losing}{partitions_named(partitions[:1])}{more}, {finding.text.rstrip('.')}",
        summary=f"Group {format_name(about.group)} is losing records of topic {format_name(about.topic)}" if losing else "",
        severity=judgements[0].word,
        broker=first.broker,
        topic=about.topic,
        partition=only(partitions),
        group=about.group,
        since_ms=min((known.since_ms for known in judgements if known.since_ms >= 0), default=-1),
        holds_back=kind.costs or each.left,
        deadline_ms=judged.now_ms if losing else deadline_ms,
        command=command if command != NO_COMMAND else circumstances.commands.why(about.group),
        links=Links(
            partitions=partitions_of(about.topic, partitions),
            producer=about.producer,
            waits=about.waits,
            came_late=came_late,
            awaited=_awaited(judged, each) if about.verdict is GroupVerdict.WILL_LOSE else -1,
        ),
    )


def _summary(group: str, facts: GroupFacts | None) -> GroupSummary:
    if facts is None:
        return GroupSummary(group=group, type=GroupType.CLASSIC)
    return GroupSummary(
        group=group,
        type=facts.type,
        protocol=facts.protocol,
        members=facts.members,
        state=facts.state,
        state_ms=facts.state_ms,
        epoch=facts.epoch,
    )


def _losing(circumstances: Circumstances, judged: JudgedGroups, each: _Rows) -> str:
    """What was lost within the last 24 hours if that goes on: a check of retention comes every few minutes. "" if it does not."""
    lately, rows = judged.snapshot.progress.lost_lately, list(each.rows)
    last_ms = int(lately.last_ms[rows].max(initial=ABSENT))
    records, offsets = (int(np.maximum(column[rows], 0).sum()) for column in (lately.records, lately.offsets))
    if last_ms < judged.now_ms - _LOSING_MS or records + offsets <= 0:
        return ""
    last = circumstances.times.at(min(last_ms, circumstances.now_ms))
    return f"{'up to ' if offsets else ''}{records + offsets:,} so far, the last at {last}; "


def _deadline_ms(judged: JudgedGroups, each: _Rows) -> int:
    """When the first of its records is lost, by limits that are known."""
    losses = certain_losses(judged.snapshot.found)[list(each.rows)]
    return int(losses[losses >= 0].min(initial=_FAR)) if (losses >= 0).any() else ABSENT


def _awaited(judged: JudgedGroups, each: _Rows) -> int:
    """The broker whose start lets all of its records be lost."""
    brokers = set(judged.snapshot.found.loss_start_of[list(each.rows)].tolist())
    return brokers.pop() if len(brokers) == 1 else -1


def _came_late(messages: GroupPartitions, each: _Rows) -> bool:
    """Whether it is a loss, and its cause is that all of these records came past their retention."""
    if each.about.verdict not in _LOSSES or each.uncommitted:
        return False
    return all(of.next_expired_ms >= 0 or of.lost_expired for of in messages.committed(each.rows))
