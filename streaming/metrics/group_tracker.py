"""One round after the other: from what agents say of groups and of positions to a `GroupSnapshot`. It asks nobody by itself."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streaming.groups.commit_store import CommitStore
from streaming.groups.commit_table import Commits, CoordinatorLog, Current, LogName
from streaming.groups.group_rows import NOT_UNDERSTOOD
from streaming.kafka.names import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from streaming.metrics.export import Export
from streaming.metrics.exported import Kept, Observed
from streaming.metrics.group_ends import EndMemory
from streaming.metrics.group_expiration import expirations, offsets_retention_ms
from streaming.metrics.group_labels import LabelMaker
from streaming.metrics.group_lag import KNOWN, Committed, Ends, Flags, Lags, Longs, Reason, lags, starts
from streaming.metrics.group_logs import GroupLogs, LogNumbers, commit_reasons, group_logs, observed_rates
from streaming.metrics.group_losses import limits_assumed, losses_of
from streaming.metrics.group_memory import GroupMemory
from streaming.metrics.group_places import PlaceMemory, carried
from streaming.metrics.group_questions import MOST_ASKED, Question, about_commits, about_ends, distinct, part, read_answer
from streaming.metrics.group_rates import Rates
from streaming.metrics.group_snapshot import GroupSnapshot
from streaming.metrics.group_sums import Found, pair_sums

UNREAD_MS = 60_000
"""What an agent says counts when the data that it is held against has arrived too, so it may be some rounds old. An agent that is further
back is behind."""

COORDINATORS = (OFFSETS_TOPIC, SHARE_STATE_TOPIC)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoundView:
    """What a round knows of the logs at its beginning.

    ``kept``: what retention leaves of them. ``topic_ids``: of the observed logs. ``agents``: names, by the number in these. ``heard``: the
    agents that answer; ``reading``: the coordinators' logs, by agent and broker, that they have not read to the end. ``cluster_topics``:
    how many partitions each topic has, None if that is not known.
    """

    observed: Observed
    kept: Kept
    topic_ids: list[str]
    agents: list[str]
    heard: Collection[str]
    now_ms: int
    steady_ms: int  # of a clock that nobody sets
    reading: Collection[tuple[str, int, str, int]] = ()
    cluster_topics: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Round:
    view: RoundView
    commits: Commits
    logs: GroupLogs
    moved: Flags  # whether the end of each log is another one than in the round before
    was_beyond: Flags


class _Unread(NamedTuple):
    """A high watermark that an agent has not read up to, and the round in which it was first so."""

    high_watermark: int
    since_ms: int


class GroupTracker:
    """For one thread: `begin`, then `answer` for each answer, then `ask` and the answers to that, then `finish`."""

    def __init__(self, export: Export, stopped_after_ms: int) -> None:
        self.store = CommitStore()
        self.left = 0
        """The positions of so many commits have to wait for the next round."""
        self._stopped_after_ms = stopped_after_ms
        self._numbers, self._labels = LogNumbers(), LabelMaker(export)
        self._ends, self._places, self._memory = EndMemory(), PlaceMemory(), GroupMemory()
        self._unread: dict[LogName, _Unread] = {}

    def begin(self, view: RoundView) -> list[Question]:
        """A round begins. Returns what agents have to be asked first: where logs end."""
        commits = self.store.table(currents(view))
        rows = commits.rows
        logs = group_logs(
            rows,
            self._numbers.of(rows),
            view.observed,
            view.topic_ids,
            view.agents,
            heard=view.heard,
            cluster_topics=view.cluster_topics,
        )
        self._unread = {
            (log.topic, log.partition): self._wait_for(log, view.steady_ms) for log in commits.logs if log.upto < log.high_watermark
        }
        self._ends.begin(logs, view.steady_ms)
        self._places.begin(rows.key)
        was_beyond = self._memory.begin(rows, view.steady_ms)
        self._round = _Round(view=view, commits=commits, logs=logs, moved=self._ends.moved.copy(), was_beyond=was_beyond)
        return list(about_ends(logs, self._ends.wanted(logs)))

    def ask(self, most: Callable[[str], int] = lambda _: MOST_ASKED) -> list[Question]:
        """What agents have to be asked then, each for so many positions of commits at most."""
        rows, logs = self._round.commits.rows, self._round.logs
        ends = self._ends.ends(logs).take(logs.of_row)
        start = starts(rows.offset, ends.log_start)
        wanted = self._places.wanted(start, ends, self._round.moved[logs.of_row])
        found = list(about_commits(logs, rows.key, wanted, start, most))
        self.left = len(wanted) - sum(len(question.key) for question in found)
        return found

    def answer(self, question: Question, positions: pa.Table) -> None:
        """Take an agent's answer. What comes in a later round still says where commits are, but not where logs end."""
        found, count = read_answer(question, positions), len(question.ends)
        key, current = self._round.commits.rows.key, question.logs is self._round.logs
        rows, there = carried(key, question.key)
        of_row = question.of_row[there]
        self._places.answer(rows[there], question.offset[of_row], part(found, of_row))
        if current and count:
            halves = part(found, np.arange(count)), part(found, np.arange(count, 2 * count))
            self._ends.answer(question.ends, self._round.logs, *halves, self._round.view.steady_ms)
        elif current:
            self._ends.doubt(question.log, found.edition)

    def _wait_for(self, log: CoordinatorLog, steady_ms: int) -> _Unread:
        """What is waited for of a coordinator's log: the high watermark of the round in which it was last read so far."""
        before = self._unread.get((log.topic, log.partition))
        if before is None or log.upto >= before.high_watermark:
            return _Unread(log.high_watermark, steady_ms)
        return before

    def _late(self, view: RoundView) -> set[LogName]:
        """The coordinators' logs of which a high watermark of long ago is not read yet. One that grows all the time is never read whole."""
        return {log for log, unread in self._unread.items() if view.steady_ms - unread.since_ms > UNREAD_MS}

    def refuse(self, question: Question) -> None:
        """The agent is of a version that cannot answer."""
        if question.logs is not self._round.logs:
            return
        self._ends.refuse(np.unique(question.log), Reason.VERSION)

    def finish(self) -> GroupSnapshot:
        """The round is over: what it has found out."""
        view, commits, logs = self._round.view, self._round.commits, self._round.logs
        rows, places = commits.rows, self._places.places
        ends = self._ends.ends(logs).take(logs.of_row)
        observed = np.array([log.observed for log in commits.logs], np.bool_)
        late = self._late(view)
        unread = np.array([(log.topic, log.partition) in late for log in commits.logs], np.bool_)
        committed = Committed(
            offset=rows.offset,
            reason=commit_reasons(rows, logs, observed, unread, NOT_UNDERSTOOD),
            beyond=self._round.was_beyond,
            share=rows.share,
            delivered=rows.delivered,
        )
        lag = lags(committed, ends, places)
        progress = self._memory.update(rows, lag, places, ends, now_ms=view.now_ms, steady_ms=view.steady_ms)
        since = progress.stopped_since_ms
        byte_rate = self._ends.byte_rates(view.steady_ms)
        assumed = limits_assumed(view.kept, logs.item)[logs.of_row] if len(rows) else np.empty(0, np.bool_)
        found = Found(
            lags=lag,
            stopped=(since >= 0) & (view.now_ms - since >= self._stopped_after_ms),
            held=_held(lag, ends) & ~rows.share,
            loss_ms=_losses(view, logs, lag, byte_rate),
            assumed=(lag.next_offset >= 0) & assumed,
            expiration_ms=expirations(rows, commits.groups, offsets_retention_ms(view.observed, view.kept)),
        )
        pairs = pair_sums(rows, found)
        return GroupSnapshot(
            at_ms=view.now_ms,
            rows=rows,
            logs=logs,
            found=found,
            progress=progress,
            pairs=pairs,
            labels=self._labels.of(rows, logs, pairs),
            counters=self._memory.counters,
            groups=commits.groups,
            pending=commits.pending,
            unread=_unread(view, commits.logs, late),
            not_understood={topic: sum(log.unreadable for log in commits.logs if log.topic == topic) for topic in _topics(commits.logs)},
            omitted=sum(log.omitted for log in commits.logs),
            appended_rate=self._ends.rates(view.steady_ms),
            byte_rate=byte_rate,
        )


def currents(view: RoundView) -> dict[LogName, Current]:
    """The leading replicas of the coordinators' logs, as far as agents that answer have read them."""
    observed, found = view.observed, {}
    own = [item for item in np.flatnonzero(observed.roles.leads).tolist() if observed.names[item] in COORDINATORS]
    for item in own:
        agent, partition = view.agents[int(observed.columns["agent"][item])], int(observed.columns["partition"][item])
        high_watermark = int(observed.replica_offsets["high_watermark"][item])
        log = (observed.names[item], partition)
        broker = int(observed.columns["broker"][item])
        if agent in view.heard and high_watermark >= 0 and (agent, broker, *log) not in view.reading:
            found[log] = Current(agent, high_watermark, broker)
    return found


def _topics(logs: Collection[CoordinatorLog]) -> list[str]:
    return sorted({log.topic for log in logs})


def _unread(view: RoundView, logs: Collection[CoordinatorLog], late: Collection[LogName]) -> dict[str, int]:
    """By topic of the coordinators, how many partitions are not read to the high watermark from a current replica."""
    read = {(log.topic, log.partition) for log in logs if log.observed} - {*late}
    columns, known = view.observed.columns, view.cluster_topics or {}
    there = {
        (name, partition)
        for name, partition in zip(view.observed.names, columns["partition"].tolist(), strict=True)
        if name in COORDINATORS
    }
    there |= {(topic, partition) for topic in COORDINATORS for partition in range(known.get(topic, 0))}
    return {topic: sum(name == topic for name, _ in there - read) for topic in sorted({name for name, _ in there})}


def _held(lag: Lags, ends: Ends) -> Flags:
    """Partitions in which nothing is readable, and data records wait behind an open transaction."""
    held: Flags = (lag.reason == KNOWN) & (lag.start >= ends.last_stable) & (lag.next_offset >= 0)
    return held


def _losses(view: RoundView, logs: GroupLogs, lag: Lags, byte_rate: Rates) -> Longs:
    """When retention deletes the next unread record of each commit."""
    unread = np.flatnonzero((lag.next_offset >= 0) & (logs.item[logs.of_row] >= 0))
    items, offsets, of_row = distinct(logs.item[logs.of_row[unread]], lag.next_offset[unread])
    found = np.full(len(lag.start), -1, np.int64)
    rates = observed_rates(len(view.observed.names), logs, byte_rate)
    found[unread] = losses_of(view.observed, view.kept, items, offsets, view.now_ms, rates).at_ms[of_row]
    return found
