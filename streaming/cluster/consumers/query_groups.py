"""Streaming queries as consumer groups: each checkpoint stands for a coordinator's log of which the query is the only group.

So everything that is known of groups is known of queries, by the same rules. The differences: a checkpoint names neither cluster
nor isolation, no coordinator expires its offsets, and it has no members.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from streaming.cluster.consumers.commit_times import AppendedNext, GroupPast
from streaming.cluster.consumers.group_lag import Lags
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.common.arrays import Flags, Longs
from streaming.common.query_checkpoints import Isolation, QueryCheckpoint
from streaming.errors import QueryCheckpointError
from streaming.kafka.groups.commit_store import CommitStore
from streaming.kafka.groups.commit_table import CommitRows, CoordinatorLog, Current, LogName
from streaming.kafka.groups.group_rows import (
    COMMITS,
    GROUPS,
    NOT_UNDERSTOOD,
    PENDING,
    CommittedOffset,
    GroupChanges,
    GroupFacts,
    batch_of,
    batch_of_rows,
)
from streaming.kafka.groups.group_states import GroupState, GroupType
from streaming.kafka.groups.membership import Rhythm
from streaming.queries import QueryLook

log = logging.getLogger(__name__)

CHECKPOINTS = "spark checkpoints"
"""Stands for the topic of the coordinators: no topic has a space in its name."""

PREFIX = "spark:"
"""The beginning of the name of each query's group."""

HEARD_MS = 60_000
"""What the last look has shown counts for so long, as what an agent has sent."""

_SUFFIX = re.compile(r" \(query(?: (\d{1,6}))?\)$")
"""The end of the name of a query's group if a group of Kafka's has the name without it."""

_FIRST = -2
"""Stands for the partition of the first checkpoint; the others follow below. No partition is negative, and -1 is none."""


class QueryGroups:
    """Puts looks at checkpoints into the store of commits. ``once``: no poll follows. Only the thread that polls uses it."""

    def __init__(self, store: CommitStore, checkpoints: Sequence[QueryCheckpoint] = (), *, once: bool = False) -> None:
        self._store, self._once = store, once
        self._since_ms = sys.maxsize  # of the first round
        self._queries = {each.name: _Query(each, _FIRST - number, f"{PREFIX}{each.name}") for number, each in enumerate(checkpoints)}
        self.facts: Mapping[str, QueryFacts] = {}
        """What is known of each query, by the name of its group."""

    def take(self, looks: Mapping[str, QueryLook | QueryCheckpointError], steady_ms: int) -> None:
        """Take what looks have found, by the names of the queries, at ``steady_ms`` of a monotonic clock."""
        for name, each in looks.items():
            query = self._queries[name]
            if isinstance(each, QueryCheckpointError):
                if str(each) != query.error:
                    log.warning("the checkpoint of a streaming query cannot be read", extra={"query": name, "error": str(each)})
                query.error = str(each)
                continue
            if query.error and query.looked_ms >= 0:
                log.info("the checkpoint of a streaming query is read again", extra={"query": name})
            query.look, query.looked_ms, query.error = each, steady_ms, ""

    def settle(self, steady_ms: int) -> dict[LogName, Current]:
        """A round begins: put what has changed into the store. Returns the checkpoints that count, as replicas of coordinators' logs."""
        self._since_ms = min(self._since_ms, steady_ms)
        waited = self._once or steady_ms - self._since_ms > HEARD_MS  # Spark, whose JVM reads most of them, takes seconds to start
        shared = _shared(self._queries.values())
        current = {}
        for query in self._queries.values():
            # give it a name that no group of Kafka's has: series, links and alerts go by names alone
            while self._store.has_group(query.group, without=CHECKPOINTS):
                before, query.group = query.group, _next_name(query.group)
                log.warning(
                    "a consumer group has the name of a streaming query, which has another one now",
                    extra={"before": before, "group": query.group},
                )
            query.doubts = (*self._doubts(query, steady_ms), *shared.get(query.checkpoint.name, ()))
            self._store_of(query)
            if query.look is not None and self._is_heard(query, steady_ms):
                current[CHECKPOINTS, query.partition] = Current(query.agent, high_watermark=1)
        self.facts = {
            query.group: _facts(query, unread=waited and (CHECKPOINTS, query.partition) not in current) for query in self._queries.values()
        }
        return current

    def read_ms(self, now_ms: int, steady_ms: int) -> dict[str, int]:
        """Up to when each checkpoint is read, by the clock of ``now_ms``, as of agents."""
        return {each.agent: each.looked_ms - steady_ms + now_ms for each in self._queries.values() if each.looked_ms >= 0}

    def read_uncommitted(self, rows: CommitRows, proven: Flags) -> Flags:
        """Which commits are of groups that read so: of queries it may be given, of the others it is ``proven``."""
        given = {group: facts.isolation for group, facts in self.facts.items() if facts.isolation is not None}
        if not given:
            return proven
        isolations = [given.get(name) for name in rows.group_names]
        is_given = np.array([each is not None for each in isolations], np.bool_)
        uncommitted = np.array([each is Isolation.READ_UNCOMMITTED for each in isolations], np.bool_)
        found: Flags = np.where(is_given[rows.group], uncommitted[rows.group], proven)
        return found

    def _is_heard(self, query: _Query, steady_ms: int) -> bool:
        return not query.error if self._once else steady_ms - query.looked_ms <= HEARD_MS

    def _doubts(self, query: _Query, steady_ms: int) -> tuple[str, ...]:
        if query.look is None:
            return (query.error,)
        if query.error:
            return (query.error, *query.look.doubts)
        if not self._is_heard(query, steady_ms):
            return ("its file system does not answer", *query.look.doubts)
        return query.look.doubts

    def _store_of(self, query: _Query) -> None:
        stored = query.group, query.look
        if query.stored == stored:
            return
        look, before = query.look, query.stored
        if before is not None and before[1] is not None and look is not None and before[1].generation != look.generation:
            look = replace(look, positions=())  # for one round it has none: nothing of the checkpoint before is compared with it
        query.stored = query.group, look
        query.version += 1
        self._store.take(query.agent, _changes(query, look))


@dataclass(slots=True)
class _Query:
    checkpoint: QueryCheckpoint
    partition: int
    group: str
    look: QueryLook | None = None
    looked_ms: int = -1  # of the monotonic clock
    error: str = "it has not been looked at yet"
    stored: tuple[str, QueryLook | None] | None = None
    version: int = 0
    doubts: tuple[str, ...] = field(default=())

    @property
    def agent(self) -> str:
        """Stands for the agent that reads the log: no address of one looks so."""
        return f"checkpoint of {self.checkpoint.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFacts:
    """What only queries have. ``doubts``, ``notes``: as in `QueryLook`."""

    checkpoint: str  # where it is, for people
    query_id: str = ""
    isolation: Isolation | None = None  # None if it is not known
    batch: int = -1  # the last one that is committed
    planned_batch: int = -1  # a micro-batch that is planned since ``planned_ms``, Unix milliseconds, and not committed; -1 for none
    planned_ms: int = -1
    unread: bool = False  # its checkpoint cannot be read for a minute
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _shared(queries: Iterable[_Query]) -> dict[str, tuple[str, ...]]:
    """What is said of checkpoints that turn out to be one."""
    by_id: dict[str, list[str]] = {}
    for each in queries:
        if each.look is not None:
            by_id.setdefault(each.look.query_id, []).append(each.checkpoint.name)
    return {
        name: (f"{' and '.join(names)} are checkpoints of one query, {query_id}: name it once",)
        for query_id, names in by_id.items()
        if len(names) > 1
        for name in names
    }


def _next_name(group: str) -> str:
    again = _SUFFIX.search(group)
    return f"{plain_name(group)} (query)" if again is None else f"{plain_name(group)} (query {int(again[1] or 1) + 1})"


def plain_name(group: str) -> str:
    """The name of a query's group if no group of Kafka's had it; any other name as it is."""
    return _SUFFIX.sub("", group) if group.startswith(PREFIX) else group


def _facts(query: _Query, *, unread: bool) -> QueryFacts:
    at = query.look or QueryLook(query_id="")
    return QueryFacts(
        checkpoint=query.checkpoint.shown,
        query_id=at.query_id,
        isolation=query.checkpoint.isolation,
        batch=at.batch,
        planned_batch=at.planned_batch,
        planned_ms=at.planned_ms,
        unread=unread,
        doubts=query.doubts,
        notes=at.notes,
    )


def _changes(query: _Query, look: QueryLook | None) -> GroupChanges:
    at = look or QueryLook(query_id="")
    commits = [
        CommittedOffset(
            group=query.group,
            topic=each.topic,
            topic_id="",
            partition=each.partition,
            coordinator=query.partition,
            offset=each.offset,
            commit_ms=at.committed_ms,
            record_offset=0,
            effective_offset=0,
        )
        for each in at.positions
    ]
    return GroupChanges(
        broker=-1,
        topic=CHECKPOINTS,
        topic_id="",
        coordinator=query.partition,
        edition=f"{query.group} {at.query_id} {at.generation}",
        version=query.version,
        whole=True,
        upto=1,
        commits=batch_of_rows(COMMITS, commits),
        pending=batch_of(PENDING),
        groups=batch_of_rows(GROUPS, [_group(query, look, at)]),
    )


def _group(query: _Query, look: QueryLook | None, at: QueryLook) -> GroupFacts:
    planned = at.planned_batch >= 0
    state = GroupState.PLANNED if planned else GroupState.COMMITTED
    return GroupFacts(
        group=query.group,
        coordinator=query.partition,
        effective_offset=0,
        type=GroupType.SPARK,
        protocol="",
        state=GroupState.UNKNOWN if look is None or (at.batch < 0 and not planned) else state,
        members=NOT_UNDERSTOOD,
        epoch=at.batch,
        state_ms=at.planned_ms if planned else at.committed_ms,
        topics=tuple(sorted({each.topic for each in at.positions})),
        interval_ms=_interval_ms(at.commit_times),
    )


def _interval_ms(commit_times: Sequence[int]) -> int:
    """How long it usually is from one micro-batch to the next."""
    rhythm, before = Rhythm(), -1
    for at in commit_times:
        rhythm.committed(before, at)
        before = at
    return rhythm.usual_ms


def of_queries(rows: CommitRows, logs: Sequence[CoordinatorLog]) -> Flags:
    """Which commits are of queries."""
    flags: Flags = np.array([log.topic == CHECKPOINTS for log in logs], np.bool_)[rows.log] if logs else np.empty(0, np.bool_)
    return flags


class PastOfQueries:
    """A `GroupPast` that has a query stand since its last commit, and asks another `GroupPast` about all other groups.

    Args:
        queries: those whose groups are meant.
    """

    def __init__(self, past: GroupPast, queries: QueryGroups) -> None:
        self._past, self._queries = past, queries

    def since(self, rows: CommitRows) -> Longs:
        """As `GroupPast.since`."""
        known = self._past.since(rows)
        query = np.array([name in self._queries.facts for name in rows.group_names], np.bool_)
        return np.where(query[rows.group], rows.commit_ms, known) if len(query) else known

    def appended(self, logs: GroupLogs, lags: Lags) -> AppendedNext:
        """As `GroupPast.appended`."""
        return self._past.appended(logs, lags)
