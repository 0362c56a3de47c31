"""Problems of consumer groups: the verdicts of `streaming.verdicts.group_verdicts` that an alert reports, one for each topic of a group."""

import re
from collections.abc import Iterator
from dataclasses import replace

from streaming.formatting import format_count
from streaming.protocol.group_json import GroupDetail, GroupPartition
from streaming.protocol.problem_json import Problem
from streaming.verdicts import group_verdicts, kinds
from streaming.verdicts.circumstances import Circumstances, found, only, partitions_named
from streaming.verdicts.commands import Command
from streaming.verdicts.group_verdicts import Bounds, GroupVerdict

LOSS_WITHIN_MS = 4 * 3_600_000
HELD_AFTER_MS = 900_000
PENDING_AFTER_MS = 600_000
"""As in the alerts GroupWillLoseData, GroupHeldUp and GroupPendingCommits. A transaction that hangs holds a group up at once."""

KINDS = {
    group_verdicts.Kind.LOST: kinds.GROUP_LOST,
    group_verdicts.Kind.WILL_LOSE: kinds.GROUP_WILL_LOSE,
    group_verdicts.Kind.HELD: kinds.GROUP_HELD,
    group_verdicts.Kind.PENDING: kinds.GROUP_PENDING,
    group_verdicts.Kind.STOPPED: kinds.GROUP_STOPPED,
}

_CONSOLE = re.compile("console-consumer-.*")
_MINDED = (kinds.GROUP_HELD, kinds.GROUP_PENDING)
"""Kinds that matter for console consumers, too: somebody waits in front of them."""

_BOUNDS = Bounds(loss_within_ms=LOSS_WITHIN_MS, pending_after_ms=0)
_NEVER_ENDS = ("hanging", "overdue")


def group_problems(of: Circumstances) -> Iterator[Problem]:
    """Problems of consumer groups."""
    for group in of.groups:
        yield from _of_group(of, group)


def _of_group(of: Circumstances, group: GroupDetail) -> Iterator[Problem]:
    name = group.summary.group
    partitions = {(each.topic, each.partition): each for each in group.partitions}
    of_topics: dict[tuple[kinds.Kind, str], list[GroupVerdict]] = {}
    whole = replace(group, redacted=group.redacted or of.commands.redacted, server=group.server or of.commands.server)
    for verdict in group_verdicts.judge(whole, of.now_ms, _BOUNDS):
        kind = KINDS.get(verdict.kind)
        if kind is None or (_CONSOLE.fullmatch(name) and kind not in _MINDED):
            continue
        if _matters(kind, partitions[verdict.topic, verdict.partition], of.now_ms):
            of_topics.setdefault((kind, verdict.topic), []).append(verdict)
    for (kind, topic), verdicts in of_topics.items():
        first = verdicts[0]  # the largest lag
        of_partition = partitions[topic, first.partition]
        others = sorted(each.partition for each in verdicts[1:])
        more = f"; likewise {partitions_named(others)}" if others else ""
        yield found(
            kind,
            f"{partitions_named([first.partition])}, {first.text.rstrip('.')}{more}",
            broker=of_partition.broker,
            topic=topic,
            partition=only([each.partition for each in verdicts]),
            group=name,
            since_ms=_since_ms(kind, of_partition),
            holds_back=kind.costs or _unread(verdicts),
            command=first.command if first.command != Command() else of.commands.why(name),
        )


def _matters(kind: kinds.Kind, of: GroupPartition, now_ms: int) -> bool:
    """Whether it lasts, so that somebody should know: each transaction holds readers up for a moment."""
    if kind is kinds.GROUP_HELD:
        if of.held_by is not None and of.held_by.verdict in _NEVER_ENDS:
            return True
        since = of.next_append_ms if of.next_append_ms >= 0 else of.next_timestamp_ms
        if since < 0 and of.held_by is not None:
            since = of.held_by.start_ms
        return since >= 0 and now_ms - since > HELD_AFTER_MS
    if kind is kinds.GROUP_PENDING:
        return any(each.verdict in _NEVER_ENDS or 0 <= each.since_ms < now_ms - PENDING_AFTER_MS for each in of.pending)
    return True


def _since_ms(kind: kinds.Kind, of: GroupPartition) -> int:
    if kind is kinds.GROUP_STOPPED:
        return of.stopped_since_ms
    if kind is kinds.GROUP_HELD and of.held_by is not None:
        return of.held_by.start_ms
    if kind is kinds.GROUP_PENDING:
        return min((each.since_ms for each in of.pending if each.since_ms >= 0), default=-1)
    return -1


def _unread(verdicts: list[GroupVerdict]) -> str:
    lag = sum(max(each.lag, 0) for each in verdicts)
    return f"{format_count(lag, 'record')} still to be read there." if lag else ""
