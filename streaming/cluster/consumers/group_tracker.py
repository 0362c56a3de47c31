"""One poll after the other: from what agents say of groups and of positions to a `GroupSnapshot`. It asks no agent by itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streaming.broker.protocol.history_json import KeptGroups
from streaming.cluster.consumers.below_start import holders
from streaming.cluster.consumers.commit_history import CommitHistory, Invalid
from streaming.cluster.consumers.commit_times import (
    AHEAD_MS,
    DataAges,
    GroupPast,
    PendingTimes,
    believed,
    rhythm_ms,
    usual_intervals,
    watched,
)
from streaming.cluster.consumers.deleted_topics import DeletedTopics
from streaming.cluster.consumers.group_lag import (
    ABSENT,
    CODES,
    Codes,
    Committed,
    LagReason,
    Lags,
    NewerCommits,
    PlaceMemory,
    Places,
    carried,
    done_between,
    first_undone,
    lags,
    starts,
    unanswered,
)
from streaming.cluster.consumers.group_logs import (
    GroupLogs,
    LogNumbers,
    TopicPartition,
    commit_reasons,
    current_replicas,
    group_logs,
)
from streaming.cluster.consumers.group_memory import GroupMemory, LastKnown
from streaming.cluster.consumers.group_moves import MoveCounting
from streaming.cluster.consumers.group_questions import (
    MOST_ASKED,
    OF_DELETED,
    OF_PARTED,
    OF_START,
    EndMemory,
    Question,
    Wanted,
    about_commits,
    about_ends,
    distinct,
    part,
    read_answer,
)
from streaming.cluster.consumers.group_rebalances import RebalanceMemory
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.consumers.group_sums import CommitFacts, LabelMaker, pair_sums
from streaming.cluster.consumers.group_uncommitted import (
    ExistingTopics,
    Isolations,
    UncommittedFinder,
    expirations,
    left_over,
    offsets_retention_ms,
    with_logs,
)
from streaming.cluster.consumers.losses import limits_assumed, losses_of, lost_records, stopped_before, with_deletions
from streaming.cluster.consumers.query_groups import CHECKPOINTS, PastOfQueries, QueryGroups, of_queries
from streaming.cluster.view.exported import Observed, RetentionResults
from streaming.cluster.view.family import Export
from streaming.cluster.view.recalled import Recalled
from streaming.common.arrays import Flags, Longs
from streaming.common.query_checkpoints import QueryCheckpoint
from streaming.kafka.formats.names import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from streaming.kafka.groups.commit_store import CommitStore
from streaming.kafka.groups.commit_table import Commits, CoordinatorLog, Current, LogName
from streaming.kafka.groups.group_rows import GroupFacts
from streaming.kafka.groups.group_states import SIMPLE
from streaming.rules.group_loss import NOTHING, Losses

UNREAD_MS = 60_000
"""What an agent says counts when the data that it is held against has arrived too, so it may be some rounds old. An agent that is further
back is behind."""

_NONE = re.compile("")

_NOT_CURRENT = (CODES[LagReason.NOT_OBSERVED], CODES[LagReason.UNREAD], CODES[LagReason.TOPIC_GONE])

COORDINATORS = (OFFSETS_TOPIC, SHARE_STATE_TOPIC)


class GroupTracker:
    """Makes one snapshot after the other, and keeps what polls have to remember.

    A poll calls `begin`, then `answer` for each answer, then `ask` and the answers to that, the same for moves, then `finish`.

    Args:
        past: as for `GroupMemory`.
        throwaway: as in `GroupSnapshot`.
        checkpoints: those of streaming queries.

    Only the thread that polls uses it, but for `recall` and `kept`.
    """

    def __init__(
        self,
        export: Export,
        stopped_after_ms: int,
        past: GroupPast | None = None,
        throwaway: re.Pattern[str] = _NONE,
        checkpoints: Sequence[QueryCheckpoint] = (),
    ) -> None:
        self.store = CommitStore()
        self.queries = QueryGroups(self.store, checkpoints, once=past is not None)
        """Streaming queries; looks at their checkpoints are put in before `begin`."""
        self.left = 0
        """The positions of so many commits have to wait for the next round."""
        self._stopped_after_ms, self._throwaway = stopped_after_ms, throwaway
        self._numbers, self._labels = LogNumbers(), LabelMaker(export)
        past = None if past is None else PastOfQueries(past, self.queries)
        self._past = past
        self._ends, self._memory = EndMemory(), GroupMemory(past)
        self._newer, self._ages = NewerCommits(), DataAges()
        # of where commits are read from, of those below the log start, and of where those that are not valid have to go on
        self._places, self._deleted, self._parted = PlaceMemory(), PlaceMemory(), PlaceMemory()
        self._isolations, self._moved = Isolations(), MoveCounting(watches=past is None)
        self._unread: dict[LogName, _Unread] = {}
        self._rebalances, self._last_known = RebalanceMemory(export), LastKnown()
        self._uncommitted, self._pending = UncommittedFinder(), PendingTimes(watches=past is None)
        self._deleted_topics = DeletedTopics()

    def recall(self, kept: KeptGroups) -> None:
        """Go on with what the rounds of a job before have kept. From any thread, before the first round."""
        self._memory.recalled = Recalled({(each.group, each.topic, each.partition): each for each in kept.commits})
        self._deleted_topics.recalled = kept.deleted_topics

    def kept(self, last: GroupSnapshot | None) -> KeptGroups:
        """What the rounds of the next job go on with, by the last snapshot, and what was kept of commits that were not read yet.

        From any thread.
        """
        commits = [*(() if last is None else last.kept()), *self._memory.recalled.left.values()]
        return KeptGroups(commits=commits, deleted_topics=list(self._deleted_topics.recalled if last is None else last.deleted_topics))

    def begin(self, view: RoundView) -> list[Question]:
        """A round begins. Returns what agents have to be asked first: where logs end."""
        commits = self.store.table(currents(view) | self.queries.settle(view.steady_ms))
        rows = commits.rows
        logs = group_logs(
            rows,
            self._numbers.of(rows),
            view.observed,
            view.topic_ids,
            view.agents,
            heard=view.heard,
            cluster_topics=view.cluster_topics,
            topic_names=view.topic_names,
            damaged=view.damaged,
        )
        self._unread = {
            (log.topic, log.partition): self._wait_for(log, view.steady_ms) for log in commits.logs if log.upto < log.replicated
        }
        read_ms = {**view.read_ms, **self.queries.read_ms(view.now_ms, view.steady_ms)}
        self._ages.read(read_ms, view.now_ms, view.steady_ms)
        self._ends.begin(logs, view.steady_ms)
        self._places.begin(rows.key)
        self._deleted.begin(rows.key)
        self._parted.begin(rows.key)
        data_ms = np.where(logs.read_ms >= 0, logs.read_ms - view.now_ms + view.steady_ms, ABSENT)
        rows, beyond = self._newer.take(rows, logs.log_end[logs.of_row], data_ms[logs.of_row], view.steady_ms)
        commits = _with_late(replace(commits, rows=rows), self._late(view))
        self._memory.begin(rows, view.steady_ms)
        self._moved.begin(commits, logs, view.steady_ms)
        self._logs = logs
        history = CommitHistory.of(rows, logs)
        reason = _commit_reasons(commits, logs, history)
        proven = self._isolations.update(rows, logs, reason, data_ms, view.steady_ms, once=view.once)
        self._round = _Round(
            view=view,
            commits=commits,
            logs=logs,
            history=history,
            reason=reason,
            moved=self._ends.moved.copy(),
            beyond=beyond | np.bool_(view.once),
            reads_uncommitted=self.queries.read_uncommitted(rows, proven),
        )
        return list(about_ends(logs, self._ends.wanted(logs)))

    def ask(self, most: Callable[[str], int] = lambda _: MOST_ASKED) -> list[Question]:
        """What agents have to be asked then, each for so many positions of commits at most.

        Answers may show that logs begin later than their agents knew, so that there is more to ask in the same round.
        """
        rows, logs = self._round.commits.rows, self._round.logs
        self._logs, _ = self._with_deletions()
        ends = self._ends.ends(self._logs).take(logs.of_row)
        start = starts(rows, ends.log_start)
        none, reads_uncommitted = np.zeros(len(rows), np.bool_), self._round.reads_uncommitted
        here = self._places.wanted(start, ends, self._round.moved[logs.of_row], reads_uncommitted)
        undone, gets_all = first_undone(rows), reads_uncommitted | rows.share
        below = np.where((undone >= 0) & (undone < ends.log_start), undone, ABSENT)
        gone = self._deleted.wanted(below, ends, none, gets_all)
        go_on_at = self._round.history.go_on_at(rows, self._round.reason, ends, self._round.beyond)
        parted = self._parted.wanted(go_on_at, ends, none, reads_uncommitted)
        wanted = Wanted(
            rows=np.concatenate([here, gone, parted]),
            offset=np.concatenate([start[here], below[gone], go_on_at[parted]]),
            of=np.repeat([OF_START, OF_DELETED, OF_PARTED], [len(here), len(gone), len(parted)]),
            reads_uncommitted=np.concatenate([reads_uncommitted[here], gets_all[gone], reads_uncommitted[parted]]),
        )
        questions = list(about_commits(logs, rows.key, wanted, most))
        self.left = len(wanted) - sum(len(question.key) for question in questions)
        self._round = replace(self._round, moved=np.zeros(len(logs.code), np.bool_))  # what that makes old is asked once in a round
        return questions

    def ask_moves(self, most: int = MOST_ASKED) -> list[Question]:
        """What agents have to be asked at last: where offsets were moved from and to. Answered by `answer_moves`."""
        return self._moved.ask(self._round.logs, self._round.reads_uncommitted, most)

    def answer_moves(self, question: Question, positions: pa.Table) -> None:
        """Take an agent's answer. What comes in a later round is asked again."""
        if question.logs is self._round.logs:
            self._moved.answer(question, read_answer(question, positions))

    def _with_deletions(self) -> tuple[GroupLogs, Places]:
        """The logs, as far on as positions show that they begin, and the positions."""
        start = starts(self._round.commits.rows, self._logs.log_start[self._logs.of_row])
        return with_deletions(self._logs, self._places.places, start, self._round.view.retention, once=self._round.view.once)

    def answer(self, question: Question, positions: pa.Table) -> None:
        """Take an agent's answer. What comes in a later round still says where commits are, but not where logs end."""
        found, count = read_answer(question, positions), len(question.ends)
        key, current = self._round.commits.rows.key, question.logs is self._round.logs
        rows, there = carried(key, question.key)
        for of, memory in ((OF_START, self._places), (OF_DELETED, self._deleted), (OF_PARTED, self._parted)):
            those = there & (question.of == of)
            of_row = question.of_row[those]
            memory.answer(rows[those], question.offset[of_row], question.reads_uncommitted[of_row], part(found, of_row))
        if current and count:
            halves = part(found, np.arange(count)), part(found, np.arange(count, 2 * count))
            self._ends.answer(question.ends, self._round.logs, *halves, self._round.view.steady_ms)
        elif current:
            self._ends.doubt(question.log, found.edition)

    def _wait_for(self, log: CoordinatorLog, steady_ms: int) -> _Unread:
        """What is waited for of a coordinator's log: the high watermark of the round in which it was last read so far."""
        before = self._unread.get((log.topic, log.partition))
        if before is None or log.upto >= before.high_watermark:
            return _Unread(log.replicated, steady_ms)
        return before

    def _late(self, view: RoundView) -> set[LogName]:
        """The coordinators' logs of which a high watermark of long ago is not read yet. One that grows all the time is never read whole.

        A log that has lost its end is one of them: its high watermark is what its broker has noted before.
        """
        return {log for log, unread in self._unread.items() if view.steady_ms - unread.since_ms > UNREAD_MS} | {*view.cut}

    def _stopped_after(self, commits: Commits) -> Longs:
        """After how long without a move each partition has stopped: a group that pauses is between its runs."""
        rows = commits.rows
        return np.maximum(rhythm_ms(usual_intervals(rows.group_names, commits.groups)), self._stopped_after_ms)[rows.group]

    def finish(self) -> GroupSnapshot:
        """The round is over: what it has found out."""
        view, commits = self._round.view, self._round.commits
        rows, history, (logs, places) = commits.rows, self._round.history, self._with_deletions()
        ends = self._ends.ends(logs).take(logs.of_row)
        start = starts(rows, ends.log_start)
        done = done_between(rows, rows.offset, start)
        doubtful = self._ages.in_doubt(commits) & (ends.log_start > rows.offset)
        committed = Committed(
            offset=rows.offset,
            start=start,
            reason=self._round.reason,
            beyond=self._round.beyond,
            reads_uncommitted=self._round.reads_uncommitted,
            share=rows.share,
            delivered=rows.delivered,
            done_least=done.least,
            done_most=done.most,
            deleted_to=self._memory.deleted_to(rows, start, doubtful),
        )
        lag = lags(committed, ends, places)
        appended = watched(lag) if self._past is None else self._past.appended(logs, lag)
        after_ms = self._stopped_after(commits)
        progress = self._memory.update(
            rows,
            lag,
            appended,
            places,
            ends,
            holders=holders(rows, commits.groups, self.queries.facts),
            holds_ms=after_ms,
            now_ms=view.now_ms,
            steady_ms=view.steady_ms,
        )
        lost = lost_records(rows, lag, ends, places, deleted=self._deleted.places, watched=progress.lost_records)
        progress = progress if self._past is None else stopped_before(progress, lag, ends, places, lost)
        left = left_over(rows, logs, commits.groups) & ~np.isin(self._round.reason, _NOT_CURRENT)
        lag, progress = replace(lag, held=lag.held & ~left), replace(progress, lost_ms=np.where(left, ABSENT, progress.lost_ms))
        since, perhaps = progress.stopped_since_ms, progress.perhaps_since_ms
        data_age_ms = self._ages.data_age_ms(commits, logs, view.steady_ms)
        as_of_ms = view.now_ms - data_age_ms
        stopped = (since >= 0) & (as_of_ms - since >= after_ms) & ~left
        kept = _kept(view, commits, logs, lag)
        found = CommitFacts(
            lags=unanswered(lag, np.array([agent in view.silent for agent in logs.agents], np.bool_)[logs.of_row]) if view.silent else lag,
            appended=appended,
            stopped=stopped,
            perhaps_stopped=~stopped & ~left & (perhaps >= 0) & (as_of_ms - perhaps >= after_ms),
            lost_records=lost.records,
            buffered=progress.buffered & (lost.records != 0) & ~lost.doubtful & ~left,
            loss_doubtful=lost.doubtful,
            loss_ms=np.where(left, ABSENT, kept.losses.at_ms),
            loss_pace=kept.losses.pace,
            loss_start_of=kept.losses.start_of,
            loss_at_start=kept.losses.at_start & ~left,
            holding_ms=believed(_holding(view, logs), view.now_ms)[logs.of_row],
            assumed=(lag.next_offset >= 0) & kept.assumed,
            expiration_ms=kept.expiration_ms,
            data_age_ms=data_age_ms,
            invalid=Invalid.of(
                history, history.go_on_at(rows, self._round.reason, ends, self._round.beyond), lag, ends, places, self._parted.places
            ),
            left_over=left,
        )
        if self._past is None:
            found, since = self._last_known.within(rows, found, progress.stopped_since_ms)
            progress = replace(progress, stopped_since_ms=since)
        pairs = pair_sums(rows, found)
        beyond = lag.reason == CODES[LagReason.BEYOND]
        topics = ExistingTopics.known_to(view.observed, view.topic_ids, view.cluster_topics, view.topic_names)
        without = self._uncommitted.find(rows, logs, commits.groups, commits.pending, topics)
        return GroupSnapshot(
            at_ms=view.now_ms,
            rows=rows,
            logs=logs,
            found=found,
            progress=progress,
            pairs=pairs,
            coordinators=commits.logs,
            labels=self._labels.of(rows, logs, pairs),
            counters=self._memory.counters,
            deleted=self._memory.deleted(rows),
            groups=_as_of(_with_waiting(commits), view.now_ms),
            pending=self._pending.update(commits.pending, view.now_ms),
            uncommitted=with_logs(without, view.observed, view.topic_ids, _reasons_of_groups(commits)),
            unread=_unread(view, commits.logs),
            not_understood={
                topic: sum(log.unreadable for log in commits.logs if log.topic == topic)
                for topic in sorted({log.topic for log in commits.logs} - {CHECKPOINTS})
            },
            queries=self.queries.facts,
            omitted=sum(log.omitted for log in commits.logs),
            appended_rate=self._ends.rates(view.steady_ms),
            throwaway=self._throwaway,
            moved=self._moved.finish(rows, beyond, view.now_ms, view.steady_ms),
            rebalances=self._rebalances.update(commits.groups),
            deleted_topics=self._deleted_topics.update(rows, logs, lag, left, view.deletions, view.now_ms),
        )


class _Unread(NamedTuple):
    """A high watermark that an agent has not read up to, and the round in which it was first so."""

    high_watermark: int
    since_ms: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoundView:
    """What a round knows of the logs at its beginning.

    ``topic_names``, ``damaged``: as in `group_logs`. ``holding``: since when the first open transaction of logs is open, where that is
    certain. ``read_ms``: up to when what each agent says is processed, by the clock of ``now_ms``; only of those of which that is known.
    ``deletions``: as for `DeletedTopics`.
    """

    observed: Observed
    retention: Callable[[], RetentionResults]  # gives its results, always the same. They take most of a round, and only commits need them
    topic_ids: list[str]  # of the observed logs
    agents: list[str]  # names, by the number in these
    heard: Collection[str]  # the agents whose answers count
    now_ms: int
    steady_ms: int  # of a monotonic clock
    silent: Collection[str] = ()  # those of them that have given none in this round
    reading: Collection[tuple[str, int, str, int]] = ()  # the coordinators' logs, by agent and broker, that they have not read to the end
    cluster_topics: Mapping[str, int] | None = None  # how many partitions each topic has, None if that is not known
    topic_names: Mapping[str, str] = field(default_factory=dict)
    damaged: Collection[int] = ()
    cut: Collection[LogName] = ()  # the coordinators' logs that have certainly lost their ends
    coordinators: Collection[int] | None = None  # the partitions of `__consumer_offsets` that are asked about, None for all
    once: bool = False  # there is no round before it
    holding: Mapping[TopicPartition, int] = field(default_factory=dict)
    read_ms: Mapping[str, int] = field(default_factory=dict)
    deletions: Mapping[str, int] = field(default_factory=dict)


def currents(view: RoundView) -> dict[LogName, Current]:
    """The replicas of the coordinators' logs that count, as far as agents that answer have read them."""
    observed, found = view.observed, {}
    for item in current_replicas(view.observed, COORDINATORS).values():
        agent, partition = view.agents[int(observed.columns["agent"][item])], int(observed.columns["partition"][item])
        high_watermark = int(observed.replica_offsets["high_watermark"][item])
        log = (observed.names[item], partition)
        broker = int(observed.columns["broker"][item])
        if agent in view.heard and high_watermark >= 0 and (agent, broker, *log) not in view.reading:
            found[log] = Current(agent, high_watermark, broker, int(observed.replica_offsets["high_watermark_checkpoint"][item]))
    return found


def _with_late(commits: Commits, late: Collection[LogName]) -> Commits:
    """The same, with these logs marked as late."""
    if not late:
        return commits
    return replace(commits, logs=tuple(replace(log, late=(log.topic, log.partition) in late) for log in commits.logs))


def _commit_reasons(commits: Commits, logs: GroupLogs, history: CommitHistory) -> Codes:
    """The code of why each commit cannot count."""
    observed = np.array([log.observed for log in commits.logs], np.bool_)
    unread = np.array([log.late for log in commits.logs], np.bool_)
    return commit_reasons(commits.rows, logs, observed, unread, of_queries(commits.rows, commits.logs), history.made_anew)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Round:
    view: RoundView
    commits: Commits
    logs: GroupLogs
    history: CommitHistory
    reason: Codes  # why each commit cannot count
    moved: Flags  # whether the end of each log is another one than in the round before
    beyond: Flags  # what is after the end of its log is known to be so
    reads_uncommitted: Flags


def _kept(view: RoundView, commits: Commits, logs: GroupLogs, lag: Lags) -> _Kept:
    rows = commits.rows
    if not len(rows):
        return _Kept(losses=NOTHING, assumed=np.empty(0, np.bool_), expiration_ms=np.empty(0, np.int64))
    retention = view.retention()
    unread = np.flatnonzero((lag.next_offset >= 0) & (logs.item[logs.of_row] >= 0))
    items, offsets, of_row = distinct(logs.item[logs.of_row[unread]], lag.next_offset[unread])
    return _Kept(
        losses=losses_of(view.observed, retention, items, offsets, view.now_ms).take(of_row).spread(unread, len(rows)),
        assumed=limits_assumed(retention, logs.item)[logs.of_row],
        expiration_ms=expirations(rows, commits.groups, offsets_retention_ms(view.observed, retention)),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Kept:
    """How long the next unread record of each commit is kept: ``losses``; ``assumed``: by limits that are; and the commit itself."""

    losses: Losses
    assumed: Flags
    expiration_ms: Longs


def _holding(view: RoundView, logs: GroupLogs) -> Longs:
    """Since when the first open transaction of each log is open, `ABSENT` where that is not certain."""
    named = zip(logs.topics, logs.partition.tolist(), strict=True)
    return np.array([view.holding.get(log, ABSENT) for log in named], np.int64)


def _as_of(groups: Mapping[str, GroupFacts], now_ms: int) -> Mapping[str, GroupFacts]:
    """The groups; that one is in its state since a time to come is not known."""
    ahead = {name: replace(facts, state_ms=ABSENT) for name, facts in groups.items() if facts.state_ms > now_ms + AHEAD_MS}
    return {**groups, **ahead} if ahead else groups


def _with_waiting(commits: Commits) -> Mapping[str, GroupFacts]:
    """The groups; one that was deleted while commits of it wait for a transaction is what it will be when these count."""
    waiting = {each.group: each.coordinator for each in commits.pending if each.group not in commits.groups}
    simple = {name: SIMPLE.facts(name, coordinator, -1) for name, coordinator in waiting.items()}
    return {**commits.groups, **simple} if simple else commits.groups


def _reasons_of_groups(commits: Commits) -> dict[str, LagReason]:
    """Why it is not known what groups have committed, of those whose coordinator's log is not read to its end."""
    reasons = {
        log.partition: LagReason.UNREAD if log.observed else LagReason.NOT_OBSERVED
        for log in commits.logs
        if log.topic == OFFSETS_TOPIC and not log.is_current
    }
    coordinators = {each.group: each.coordinator for each in commits.pending} | {
        name: facts.coordinator for name, facts in commits.groups.items()
    }
    return {name: reasons[of] for name, of in coordinators.items() if of in reasons} if reasons else {}


def _unread(view: RoundView, logs: Collection[CoordinatorLog]) -> dict[str, int]:
    """By topic of the coordinators, how many partitions are not read to the high watermark from a current replica."""
    read = {(log.topic, log.partition) for log in logs if log.is_current}
    columns, known = view.observed.columns, view.cluster_topics or {}
    there = {
        (name, partition)
        for name, partition in zip(view.observed.names, columns["partition"].tolist(), strict=True)
        if name in COORDINATORS
    }
    there |= {(topic, partition) for topic in COORDINATORS for partition in range(known.get(topic, 0))}
    if view.coordinators is not None:
        there = {(name, partition) for name, partition in there if name != OFFSETS_TOPIC or partition in view.coordinators}
    return {topic: sum(name == topic for name, _ in there - read) for topic in sorted({name for name, _ in there})}
