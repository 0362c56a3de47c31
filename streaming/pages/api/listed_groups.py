"""The messages about consumer groups, from judged columns: a page of all groups, and one group with its partitions."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from urllib.parse import parse_qsl

import numpy as np

from streaming.broker.protocol.group_json import GroupDetail, GroupPage, GroupSummary, GroupUse, GroupVerdict, ReadMoments
from streaming.broker.protocol.listing_json import TopicReader
from streaming.cluster.consumers.group_details import GroupDetails
from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_partitions import GroupPartitions, GroupTotals, group_totals
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.verdicts.admin_causes import NO_CAUSES, AdminCauses
from streaming.cluster.verdicts.commands import Commands
from streaming.cluster.verdicts.group_bounds import GroupBounds, order
from streaming.cluster.verdicts.group_findings import GroupFindings, JudgedPartition, with_damage, with_verdict, without_offsets
from streaming.cluster.verdicts.group_judge import FINE, JudgedGroups, Judgement, judge_groups
from streaming.cluster.verdicts.group_words import listed_rebalances, query_notes
from streaming.common.arrays import Longs, whole_sum
from streaming.common.short_names import possible_names
from streaming.kafka.formats.names import SHARE_STATE_TOPIC
from streaming.pages.api.paging import PageRequest, Sheet, cut, number_of, ranks
from streaming.pages.listings.declared_lists import GROUPS

MOST_PARTITIONS = 10_000
"""The most partitions of an answer: those with the largest lag."""

JUDGED_BY = ("at_ms", "fetch_bytes")
"""Parameters: as of when everything is judged, in Unix milliseconds, and what consumers fetch of a partition at once."""

_LARGEST = 2**62

MakeDetails = Callable[[GroupPartitions], GroupDetails | None]
"""Asks agents for what only they know of a group's partitions; its result is None if no agent is asked."""


class GroupResults:
    """What is computed once for a snapshot, however many looks and requests show it: pages of one command share it. Thread-safe.

    Of judgements by parameters the last one stays: it is as large as the snapshot's own.
    """

    def __init__(self, snapshot: GroupSnapshot, is_exported: Callable[[str], bool]) -> None:
        self.snapshot = snapshot
        self._is_exported = is_exported
        self._lock = Lock()  # protects what follows
        self._totals: GroupTotals | None = None
        self._rejudged: JudgedGroups | None = None

    @property
    def totals(self) -> GroupTotals:
        """The sums of all groups that are exported, which do not depend on how they are judged."""
        with self._lock:
            if self._totals is None:
                self._totals = group_totals(self.snapshot, self._is_exported)
            return self._totals

    def rejudged(self, at_ms: int, bounds: GroupBounds) -> JudgedGroups:
        """The groups, judged as of another time or by other bounds."""
        with self._lock:
            if self._rejudged is None or (self._rejudged.now_ms, self._rejudged.bounds) != (at_ms, bounds):
                self._rejudged = judge_groups(self.snapshot, at_ms, bounds)
            return self._rejudged


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitsSeen:
    """When groups last committed in each topic, also those whose commits were deleted since; from ``since_ms`` on none is missing, -1 for
    not known."""

    last_ms: Mapping[str, int]
    since_ms: int


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: what follows from the fields is computed once
class ListedGroups:
    """Makes the messages about the groups of one snapshot."""

    judged: JudgedGroups
    results: GroupResults  # shared by all that are about the snapshot
    messages: Callable[[], GroupPartitions]  # those of partitions
    details: MakeDetails = lambda _: None
    commands: Callable[[GroupSummary], Commands] = lambda _: Commands()  # for the cluster of a group
    read: ReadMoments | None = None  # when log dirs were read
    away: Collection[int] = ()  # the brokers that surely have no process
    causes: AdminCauses = NO_CAUSES  # what admins did that may have begun something
    commits_seen: CommitsSeen | None = None  # by log dirs; a job keeps the commits that are there

    def rejudged(self, query: str) -> "ListedGroups":
        """The same, judged by the parameters of a query that are named in `JUDGED_BY`.

        Raises:
            UsageError: one of them is not understood.
        """
        given = {name: value for name, value in parse_qsl(query, keep_blank_values=True) if name in JUDGED_BY}
        present = self.judged
        at_ms = number_of(given, "at_ms", present.now_ms, 0, _LARGEST)
        bounds = replace(present.bounds, fetch_bytes=number_of(given, "fetch_bytes", present.bounds.fetch_bytes, 1, _LARGEST))
        if (at_ms, bounds) == (present.now_ms, present.bounds):
            return self
        return replace(self, judged=self.results.rejudged(at_ms, bounds))

    @property
    def snapshot(self) -> GroupSnapshot:
        """What it is about."""
        return self.judged.snapshot

    @property
    def totals(self) -> GroupTotals:
        """The sums of all groups."""
        return self.results.totals

    @cached_property
    def _worst(self) -> list[Judgement]:
        """The worst judgement about each group."""
        totals = self.totals
        worst = [self.judged.of_group(name, number) for name, number in zip(totals.names, totals.number.tolist(), strict=True)]
        empty = np.flatnonzero(totals.columns["partitions"] == 0).tolist()
        for item in empty:
            if worst[item] == FINE:
                worst[item] = without_offsets(totals.summary(item), shares_unread=self._shares_unread)
        return worst

    def summary(self, item: int) -> GroupSummary:
        """One group, by its place among the names."""
        summary = replace(self.totals.summary(item), use=self._uses[item], held=int(self._held[item]))
        return with_verdict(summary, self._worst[item])

    @cached_property
    def _held(self) -> Longs:
        """How many partitions of each group are held up, as they are judged."""
        group, flags = self.snapshot.rows.group, self.judged.commits.severity[GroupVerdict.HELD] != ABSENT
        counts = np.bincount(group[flags], minlength=len(self.snapshot.rows.group_names) + 1)  # the last one of groups without an offset
        return counts[self.totals.number]

    @cached_property
    def _uses(self) -> list[GroupUse]:
        """Who uses each group."""
        return [self.judged.usage[name].use for name in self.totals.names]

    def page(self, request: PageRequest) -> GroupPage:
        """Some groups. By ``verdict`` the worst come first; of those the next loss, or else the largest lag."""
        some = cut(self._sheet, request)
        rows = [self.summary(item) for item in some.items]
        unread, data_age_ms = sum(self.snapshot.unread.values()), int(self.snapshot.found.data_age_ms.max(initial=0))
        return some.page(
            GroupPage,
            self.judged.now_ms,
            rows,
            omitted=self.snapshot.omitted,
            unread=unread,
            coordinators=self.snapshot.coordinators_read,
            read=self.read,
            data_age_ms=data_age_ms,
        )

    @cached_property
    def _sheet(self) -> Sheet:
        totals = self.totals
        columns = {name: totals.columns[name] for name in GROUPS.sortable if name in totals.columns} | {"held": self._held}
        columns |= {"group": np.arange(len(totals.names)), "type": ranks(totals.types), "state": ranks(totals.states)}
        columns["use"] = ranks(self._uses)
        columns["verdict"] = np.array([_rank(each) for each in self._worst], np.int64)
        lag = totals.lag
        loses = np.array([each.verdict is GroupVerdict.WILL_LOSE for each in self._worst], np.bool_)
        deadline = np.where(loses, totals.columns["loss_ms"], 0)
        natural = np.lexsort((np.arange(len(lag)), -lag, deadline))
        return Sheet(columns=columns, texts=totals.names, natural=natural, words={"use": self._uses})

    def named(self, given: str) -> GroupDetail | None:
        """One group by its whole name or by the short form that is shown; None if there is none with this name, or it is not exported."""
        items = self._items
        return next((self.detail(items[name]) for name in possible_names(given) if name in items), None)

    @cached_property
    def _items(self) -> dict[str, int]:
        """The place of each group among the names."""
        return {name: item for item, name in enumerate(self.totals.names)}

    @cached_property
    def _messages(self) -> GroupPartitions:
        """Those of all groups: what they look up is indexed once, however many groups are asked for."""
        return self.messages()

    def detail(self, item: int) -> GroupDetail:
        """One group with its partitions, by its place among the names."""
        snapshot, name, summary = self.snapshot, self.totals.names[item], self.summary(item)
        rows, messages = self._largest(name), self._messages
        committed = messages.committed(rows)
        details = self.details(messages)
        if details is not None:
            committed = details.checked(details.staked(committed))
        judged = [with_damage((of, self.judged.of_row(row))) for row, of in zip(rows, committed, strict=True)]
        waiting = self.judged.uncommitted.get(name, {})
        judged += [(of, [waiting[of.topic, of.partition]]) for of in messages.uncommitted(name)]
        about, facts = list(self.judged.about(name)), snapshot.groups.get(name)
        words = self.findings(summary, int(self.totals.number[item]))
        worst = min((*about, *(judgements[0] for _, judgements in judged)), default=self._worst[item])
        return GroupDetail(
            at_ms=self.judged.now_ms,
            summary=with_verdict(summary, worst) if worst.verdict.is_finding and worst < self._worst[item] else summary,
            partitions=[with_verdict(of, judgements[0]) for of, judgements in sorted(judged, key=_place)],
            findings=words.all_of(judged, about),
            omitted=max(len(snapshot.rows_of(name)) - MOST_PARTITIONS, 0),
            unread=sum(snapshot.unread.values()),
            data_age_ms=int(snapshot.found.data_age_ms[snapshot.rows_of(name)].max(initial=0)),
            clients=[] if facts is None else list(facts.clients),
            hosts=[] if facts is None else list(facts.hosts),
            rebalances=list(words.rebalances),
            notes=list(query_notes(snapshot.queries.get(name), self.judged.now_ms)),
        )

    def findings(self, summary: GroupSummary, number: int) -> GroupFindings:
        """Makes the findings about one group; ``number``: its number among the names of the snapshot, `ABSENT` without a commit."""
        commands = self.commands(summary)
        return GroupFindings(
            summary=summary,
            commands=commands.of_group(summary.group, summary.type),
            bounds=self.judged.bounds,
            now_ms=self.judged.now_ms,
            whole=self.judged.commits.shares.of(number),
            shares_unread=self._shares_unread,
            rebalances=listed_rebalances(self.snapshot.groups.get(summary.group)),
            storm=self.judged.storms.get(summary.group),
            restless=self.judged.restless.get(summary.group),
            doubts=self._query_doubts(summary.group),
            away=self.away,
            causes=self.causes,
            deleted_topics=self.judged.deleted_topics.get(summary.group, ()),
        )

    def _query_doubts(self, name: str) -> tuple[str, ...]:
        """What is not known of a streaming query, none of any other group."""
        facts = self.snapshot.queries.get(name)
        return () if facts is None else facts.doubts

    @property
    def _shares_unread(self) -> bool:
        """Whether some log that may have the offsets of share groups is not read."""
        return self.snapshot.unread.get(SHARE_STATE_TOPIC, 0) > 0

    def _largest(self, name: str) -> list[int]:
        rows, lags = np.array(self.snapshot.rows_of(name), np.int64), self.snapshot.found.lags
        order = np.argsort(-np.maximum(lags.left[rows], lags.offsets[rows]), kind="stable")[:MOST_PARTITIONS]
        return np.sort(rows[order]).tolist()  # type: ignore[no-any-return]


def _rank(judgement: Judgement) -> int:
    """How bad it is, for sorting; a group or partition without a finding is sorted by its lag alone."""
    return judgement.severity * len(GroupVerdict) + min(judgement.verdict, GroupVerdict.CATCHING_UP)


def _place(judged: JudgedPartition) -> tuple[int, int, str, int]:
    """The worst first, of those that are as bad as `order` says."""
    of, judgements = judged
    return _rank(judgements[0]), order(judgements[0].verdict, of.lag, of.loss_ms), of.topic, of.partition


def groups_by_topic(listed: ListedGroups) -> Mapping[str, int]:
    """How many groups that are shown have committed offsets in each topic that has any."""
    rows, logs = listed.snapshot.rows, listed.snapshot.logs
    names = {name: number for number, name in enumerate(dict.fromkeys(logs.topics))}
    topic_of_log = np.array([names[name] for name in logs.topics], np.int64)
    shown = np.zeros(len(rows.group_names) + 1, np.bool_)
    shown[listed.totals.number] = True  # the last one for groups without a committed offset
    some = np.flatnonzero(shown[rows.group])
    pairs = np.unique(topic_of_log[logs.of_row[some]] * (len(rows.group_names) + 1) + rows.group[some])
    counts = np.bincount(pairs // (len(rows.group_names) + 1), minlength=len(names)).tolist()
    return {name: counts[number] for name, number in names.items()}


def readers_of(listed: ListedGroups, topic: str) -> list[TopicReader]:
    """The groups that read a topic, the worst first, of these the one with the largest lag."""
    rows, logs, lags = listed.snapshot.rows, listed.snapshot.logs, listed.snapshot.found.lags
    its = np.array([name == topic for name in logs.topics], np.bool_)
    some = np.flatnonzero(its[logs.of_row]) if len(its) else np.empty(0, np.int64)
    codes, left = listed.judged.worst.of_row[some], lags.left
    names = {number: name for name, number in zip(listed.totals.names, listed.totals.number.tolist(), strict=True) if number != ABSENT}
    found = []
    for number in np.unique(rows.group[some]).tolist():
        if number not in names:
            continue
        own = rows.group[some] == number
        of_group = some[own]
        place = int(codes[own].argmin())
        worst = listed.judged.judgement(GroupVerdict(int(codes[own][place]) % len(GroupVerdict)), int(of_group[place]))
        reader = TopicReader(
            group=names[number],
            partitions=len(of_group),
            lag_records=whole_sum(left[of_group]),
            lag_offsets=whole_sum(lags.offsets[of_group]),
            verdict=worst.verdict.label,
            severity=worst.word,
            since_ms=worst.since_ms,
        )
        found.append((worst.severity, worst.verdict, -reader.lag_records, reader.group, reader))
    return [reader for *_, reader in sorted(found, key=lambda each: each[:-1])]
