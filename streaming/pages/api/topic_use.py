"""Who uses each topic: when a client last appended or committed, who reads it, and whether a use would have been seen.

A commit shows a reader; that there is none does not show that no client reads. And a commit that has expired is gone: so for how long no
client has committed is known only as far back as each commit would still be there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl

import numpy as np

from streaming.broker.protocol.group_json import GroupUse
from streaming.broker.protocol.listing_json import NO, NOT_YET, UNKNOWN, YES, TopicRow
from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.view.broker_status import away_brokers
from streaming.cluster.view.host_families import last_written
from streaming.common.arrays import Flags, Longs
from streaming.common.units import format_count, format_list, format_name, format_time
from streaming.errors import UsageError
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.pages.api.judged_look import JudgedLook
from streaming.pages.api.paging import flag_of, number_of

_DAY_MS = 86_400_000
_LARGEST = 2**62
_LONGEST_SEPARATOR = 10

ASKED_BY = ("unused_ms", "tiny_bytes", "internal", "by_prefix")
"""Parameters."""

_READERS = (GroupUse.IN_USE, GroupUse.UNATTENDED)

_UNDATED = "nothing shows when it was last appended to"

_SUMMED = ("partitions", "bytes_rate", "records_rate", "size_bytes", "replica_bytes", "growth_day", "out_of_sync")
_LATEST = ("last_append_ms", "last_commit_ms", "quiet_ms")


def topic_uses(judged: JudgedLook, topic: Longs, question: TopicQuestion) -> TopicUses:
    """Who uses each topic.

    Args:
        topic: the item of the topic of each partition, in the order of `Look.one_of_each`.
    """
    look, commits = judged.look, topic_commits(judged)
    names, logs, shown = look.view.skews.names, look.view.logs, look.one_of_each
    count = len(names)
    last_ms, made_ms = logs["last_append_ms"][shown], logs["active_created_ms"][shown]
    at_ms = np.where(last_ms >= 0, last_ms, made_ms)  # to an empty segment no client has appended
    used_ms = np.where(logs["log_end_offset"][shown] != 0, at_ms, ABSENT)  # and if its log never had a record, to the log
    seen = _until(judged)
    until_ms = np.fromiter((seen.get(broker, look.now_ms) for broker in look.brokers[shown].tolist()), np.int64, len(shown))
    old = _number(topic, look.view.observed.read_ms[logs.items[shown]] < 0, count)
    undated = _number(topic, (at_ms < 0) | (until_ms < 0), count)
    appended, newest = (_last(topic, each, count) for each in (last_ms, used_ms))
    until, first = np.full(count, look.now_ms), np.full(count, look.now_ms)
    np.minimum.at(until, topic, until_ms)
    np.minimum.at(first, topic, at_ms)
    made = np.where(newest < 0, first, ABSENT)  # of a topic without a record
    newest = np.maximum(newest, made)
    whole = look.view.skews.whole
    known = whole & (old == 0) & (undated == 0)
    committed = np.fromiter((commits.last_ms.get(name, ABSENT) for name in names), np.int64, count)
    since_ms = look.now_ms - question.unused_ms
    active = np.maximum(appended, committed) > since_ms
    since_of_commits = np.maximum(commits.until_ms - question.unused_ms, made).tolist()
    lately = {
        item: _why_not(commits, since_of_commits[item], name)
        for item, name in enumerate(names)
        if not active[item] and not commits.readers.get(name)
    }
    why = [""] * count
    for item, of_commits in lately.items():
        if not known[item]:
            why[item] = _unseen(judged, bool(whole[item]), int(old[item]))
        elif made[item] > since_ms:
            why[item] = of_commits
        elif newest[item] > since_ms:
            why[item] = _UNDATED
        elif newest[item] > until[item] - question.unused_ms:
            why[item] = f"the files of its broker are as of {format_time(int(until[item]))}"
        else:
            why[item] = of_commits
    exported = set() if judged.groups is None else {*judged.groups.totals.names}
    return TopicUses(
        last_commit_ms=committed,
        quiet_ms=np.where(known, np.maximum(newest, committed), ABSENT),
        readers=[sorted(exported.intersection(commits.readers.get(name, ()))) for name in names],
        used=[YES if item not in lately else UNKNOWN if why[item] else NOT_YET if made[item] > since_ms else NO for item in range(count)],
        why=why,
        commits_from_ms=commits.from_ms,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicQuestion:
    """What is unused and what is tiny. ``internal``: Kafka's own are listed, too. ``by_prefix``: what ends a prefix, "" for no sums."""

    unused_ms: int = 30 * _DAY_MS
    tiny_bytes: int = 1 << 20
    internal: bool = True
    by_prefix: str = ""


def by_prefix(rows: Iterable[TopicRow], separator: str) -> list[TopicRow]:
    """A row for all topics with the same beginning, up to the first separator and with it; "" for those without one.

    The sums of topics with the same prefix.
    """
    groups: dict[str, list[TopicRow]] = defaultdict(list)
    for row in rows:
        first, found, _ = row.topic.partition(separator)
        groups[first + found if found else ""].append(row)
    return [_summed(prefix, some) for prefix, some in sorted(groups.items())]


def _summed(prefix: str, rows: Sequence[TopicRow]) -> TopicRow:
    def sum_of(name: str) -> float:
        values = [getattr(row, name) for row in rows]
        return -1 if min(values) < 0 else sum(values)

    latest = {name: max(getattr(row, name) for row in rows) for name in _LATEST}
    latest["quiet_ms"] = -1 if min(row.quiet_ms for row in rows) < 0 else latest["quiet_ms"]
    summed = replace(TopicRow(topic=prefix), **{name: sum_of(name) for name in _SUMMED}, **latest)  # type: ignore[arg-type]
    uses = {row.used for row in rows}
    return replace(
        summed,
        topics=len(rows),
        replica_more=any(row.replica_more for row in rows),
        partition_bytes=-1 if summed.size_bytes < 0 else summed.size_bytes // max(summed.partitions, 1),
        codecs=list(dict.fromkeys(codec for row in rows for codec in row.codecs)),
        readers=sorted({reader for row in rows for reader in row.readers}),
        used=next(each for each in (YES, UNKNOWN, NOT_YET, NO) if each in uses),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopicUses:
    """Items are topics, in the order of the names. ``quiet_ms``: when a client last appended or committed; `ABSENT` if not known.

    Appends, and what both come to.
    """

    last_commit_ms: Longs
    quiet_ms: Longs
    readers: list[list[str]]
    used: list[str]  # `YES`, `NO`, `UNKNOWN` or `NOT_YET`
    why: list[str]  # it is not known
    commits_from_ms: int  # as in `TopicCommits`


def topic_commits(judged: JudgedLook) -> TopicCommits:
    """What is known of the commits of all topics.

    Commits, by topic: the last one, who reads, and since when none is missing.
    """
    listed = judged.groups
    if listed is None:
        return TopicCommits(why="no commits are read")
    snapshot, seen = listed.snapshot, listed.commits_seen
    last_ms = defaultdict(lambda: ABSENT, {} if seen is None else seen.last_ms)
    topics, committed_ms = snapshot.logs.topics, snapshot.progress.committed_ms
    for topic, at_ms in zip((topics[log] for log in snapshot.logs.of_row.tolist()), committed_ms.tolist(), strict=True):
        last_ms[topic] = max(last_ms[topic], at_ms)
    for each in snapshot.pending:
        last_ms[each.topic] = max(last_ms[each.topic], each.commit_ms)
    there = np.flatnonzero(~snapshot.found.left_over)
    pairs = {
        (topics[log], snapshot.rows.group_names[group])
        for log, group in zip(snapshot.logs.of_row[there].tolist(), snapshot.rows.group[there].tolist(), strict=True)
    }
    pairs |= {(each.topic, group) for group, some in snapshot.uncommitted.items() for each in some}
    readers, perhaps = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for topic, group in pairs:
        use = listed.judged.usage[group].use
        if use in _READERS:
            readers[topic].add(group)
        elif use is GroupUse.UNKNOWN:
            perhaps[topic].add(group)
    until, now_ms = _until(judged), listed.judged.now_ms
    coordinators = (log.broker for log in snapshot.coordinators if log.topic == OFFSETS_TOPIC and log.observed)
    until_ms = min((until.get(broker, now_ms) for broker in coordinators), default=now_ms)
    from_ms, why = _since(judged, until_ms)
    return TopicCommits(from_ms=from_ms, until_ms=until_ms, why=why, last_ms=dict(last_ms), readers=readers, perhaps=perhaps)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCommits:
    """``from_ms``: since when each commit is seen, 0 for ever, `ABSENT` if unknown: ``why``. ``until_ms``: up to then.

    ``readers``: the groups in use that have offsets of a topic, or are assigned some. ``perhaps``: those of which the use is not known.
    """

    from_ms: int = ABSENT
    until_ms: int = ABSENT
    why: str = ""
    last_ms: Mapping[str, int] = field(default_factory=dict)
    readers: Mapping[str, Collection[str]] = field(default_factory=dict)
    perhaps: Mapping[str, Collection[str]] = field(default_factory=dict)


def _until(judged: JudgedLook) -> dict[int, int]:
    """Until when the files of brokers are known, Unix milliseconds, of those of which it is not now; -1 if that is not known.

    Log dirs show it until their broker last wrote: it may be gone, or they may be a copy. A job sees that a broker has no process.
    """
    of, now_ms = judged.circumstances, judged.look.now_ms
    away = {each.broker: each.last_ms for each in away_brokers(of.processes)}
    written = {} if of.live else last_written(of.brokers, [each for agent in of.agents for each in agent.log_dirs])
    return {broker: min(at_ms, now_ms) for broker, at_ms in {**away, **written}.items()}


def _since(judged: JudgedLook, until_ms: int) -> tuple[int, str]:
    """Since when each commit is seen, as `TopicCommits` has it."""
    assert judged.groups is not None
    snapshot, partitions = judged.groups.snapshot, judged.look.snapshot.context.topic_partitions
    if partitions is None:
        return ABSENT, f"how many partitions {OFFSETS_TOPIC} has is not known"
    if not partitions.get(OFFSETS_TOPIC):
        return 0, ""  # it is made at the first commit
    unread = sum(snapshot.unread.values())
    if unread or sum(log.observed for log in snapshot.coordinators if log.topic == OFFSETS_TOPIC) < partitions[OFFSETS_TOPIC]:
        return ABSENT, "not all coordinators' logs are read from a current replica, so commits are not known"
    if snapshot.omitted or any(snapshot.not_understood.values()):
        return ABSENT, "not all that coordinators' logs hold is read, so commits are not known"
    if until_ms < 0:
        return ABSENT, "as of when the coordinators' logs are is not known"
    seen = judged.groups.commits_seen
    kept_ms = _kept_ms(judged)
    since = [until_ms - kept_ms] if kept_ms >= 0 else []
    since += [seen.since_ms] if seen is not None and seen.since_ms >= 0 else []
    if not since:
        return ABSENT, "for how long commits are kept is not known (offsets.retention.minutes)"
    return min(since), ""


def _kept_ms(judged: JudgedLook) -> int:
    """For how long coordinators keep a commit, at least; `ABSENT` where that is not known of one."""
    view = judged.look.view
    rows = zip(view.retention.items.tolist(), view.retention.limits, strict=True)
    limits = [each for item, each in rows if view.observed.names[item] == OFFSETS_TOPIC]
    known = [each.offsets_retention_ms for each in limits if each is not None and each.offsets_retention_known]
    return min(known, default=ABSENT) if len(known) == len(limits) else ABSENT


def _number(topic: Longs, flags: Flags, count: int) -> Longs:
    return np.bincount(topic[flags], minlength=count)


def _last(topic: Longs, times: Longs, count: int) -> Longs:
    last = np.full(count, ABSENT)
    np.maximum.at(last, topic, times)
    return last


def _why_not(commits: TopicCommits, since_ms: int, name: str) -> str:
    """Why it is not known whether a client has committed since then, "" if none has."""
    if commits.why:
        return commits.why
    if commits.from_ms > since_ms:
        return f"a commit from before {format_time(commits.from_ms)} may be gone"
    perhaps = sorted(commits.perhaps.get(name, ()))
    return f"whether {format_list([format_name(each) for each in perhaps], 3)} still reads it is not known" if perhaps else ""


def _unseen(judged: JudgedLook, whole: bool, old: int) -> str:
    if judged.look.snapshot.context.topic_partitions is None:
        return "no metadata log can be read here, so nothing shows how many partitions it has"
    if not whole:
        return "not all of its partitions are seen"
    return f"the current replica of {format_count(old, 'partition')} is not seen" if old else _UNDATED


def question_of(query: str) -> TopicQuestion:
    """The parameters `ASKED_BY` of a query string.

    By what topics are judged, and the parameters of a query that say it.

    Raises:
        UsageError: one of them is not understood.
    """
    given = {name: value for name, value in parse_qsl(query, keep_blank_values=True) if name in ASKED_BY}
    if "by_prefix" in given and not 0 < len(given["by_prefix"]) <= _LONGEST_SEPARATOR:
        raise UsageError(f"by_prefix is no separator: 1 to {_LONGEST_SEPARATOR} characters")
    return TopicQuestion(
        unused_ms=number_of(given, "unused_ms", USUAL.unused_ms, 0, _LARGEST),
        tiny_bytes=number_of(given, "tiny_bytes", USUAL.tiny_bytes, 0, _LARGEST),
        internal=flag_of(given, "internal", default=True),
        by_prefix=given.get("by_prefix", ""),
    )


USUAL = TopicQuestion()
