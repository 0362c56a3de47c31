"""The table of absolute values: what the fold last published about every log of every agent.

Rows only ever set values. So a row may come again, and a micro-batch that is run again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from threading import Lock
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.broker.protocol.cluster_messages import Reassignment
from streaming.cluster.view.decisions import Decisions, End, Round, Rounds
from streaming.cluster.view.disk_forecasts import DiskHistory, FullTimes
from streaming.cluster.view.family import EVERYTHING, NO_LIMIT, Export, labels
from streaming.cluster.view.page_context import PageContext
from streaming.cluster.view.transaction_columns import TransactionJudge, WaitingGroups
from streaming.cluster.view.value_matrix import CARRIED, FREE, LOG, NOTHING_CARRIED, Carried, Columns, Ids, empty_columns, read_values
from streaming.common.arrays import Flags, Longs
from streaming.common.catalog import Catalog
from streaming.common.log_key import KEY, LogKey
from streaming.common.rows import Change
from streaming.common.state_row import STATES
from streaming.rules.limits import Limiter
from streaming.rules.transaction_fold import NO_TRANSACTIONS

_FIRST_SLOTS = 1024

_Key: TypeAlias = tuple[Any, ...]
"""The fields of a `LogKey`, equal to it as a tuple: in most micro-batches all logs are known, and no key is made."""

_UNCARRIED = (None,) * len(CARRIED)

RECORD_KINDS = ("data", "aborted", "control")
"""What is counted of the records on disk; aborted ones are data too."""


class Table:
    """What is known of every log. The query writes it and scrapes read it, each for a moment under one lock.

    Args:
        replicas: "leaders" exports one replica of a partition, "all" every one.
        stale_after_s: after so many seconds of silence, another agent's replica is exported for the partition.
        series_limit: at most so many series on a page.
        label_limit: at most so many bytes of labels on a page.
        context: what the columns that depend on the clock are computed with.
        export: what is on a page at all.
        monotonic: seconds of a monotonic clock, for what lasts; None if that of `snapshot` is such a clock.
    """

    def __init__(
        self,
        *,
        replicas: Literal["leaders", "all"],
        stale_after_s: float,
        series_limit: int,
        context: PageContext,
        export: Export = EVERYTHING,
        monotonic: Callable[[], float] | None = None,
        label_limit: int = NO_LIMIT,
    ) -> None:
        self._monotonic = monotonic
        self.series_limit = series_limit
        self.label_limit = label_limit
        self.export = export
        self.full_times = FullTimes()
        self._context = context
        self._all_replicas = replicas == "all"
        self._stale_after_s = stale_after_s
        self._lock = Lock()  # protects everything below
        self._columns = empty_columns(_FIRST_SLOTS)
        self._records = np.full((len(RECORD_KINDS), _FIRST_SLOTS), -1, np.int64)
        self._carried: list[Carried] = []
        self._slots: Ids[_Key] = Ids()
        self._topics: Ids[tuple[int, str]] = Ids()
        self._partitions: Ids[tuple[str, str, int]] = Ids()
        self._log_dirs: dict[tuple[int, str], int] = {}
        self._topic_ids: list[str] = []
        self._topic_names: list[str] = []
        self._topic_labels: list[str] = []
        self._topic_exported: list[bool] = []
        self._topic_counted: Flags = np.zeros(0, np.bool_)
        self._unreadable: frozenset[LogKey] = frozenset()
        self._unread_dirs: frozenset[tuple[int, str]] = frozenset()
        self._uncounted = Uncounted()
        self._scrubbed: Mapping[Replica, int] = {}
        self._agents: dict[str, int] = {}
        self._seen: list[float] = []  # by the number of the agent; NaN before the first answer, which never counts as silent
        self._read: dict[int, float] = {}  # by the same
        self._rounds: dict[int, Rounds] = {}  # by the same
        self._recalled: set[int] = set()  # shards
        self._recalls: float = 0
        self._whole = False  # everything that was there when the run was new is in the table
        self._decided = False  # what is decided is known of each agent that takes part
        self._ready = False

    @property
    def disk_history(self) -> DiskHistory | None:
        """What disks were; None before all logs are in the table."""
        return self._context.disk_history if self.ready else None

    @property
    def transactions(self) -> TransactionJudge:
        """Judges the transactions of all pages."""
        return self._context.transactions

    def apply(self, states: pa.Table) -> None:
        """Set the values of logs from rows of `streaming.common.state_row.STATES`.

        The order counts only between rows of one log: the last one wins.

        Raises:
            KeyError: a column is missing.
            ValueError: a column is of another kind, or a list in it has a wrong length.
        """
        states = states.select(STATES.names).cast(STATES).combine_chunks()
        recalled = pc.equal(states["change"], str(Change.RECALLED))
        arrived = pc.equal(states["change"], str(Change.ARRIVED))
        ends = states.filter(arrived)
        rows = states.filter(pc.invert(pc.or_(recalled, arrived)))
        last = {
            key: row for row, key in enumerate(zip(*(rows[name].to_pylist() for name in KEY), strict=True))
        }  # no key twice: numpy promises no order within one assignment
        is_removed = pc.equal(rows["change"], str(Change.REMOVED)).to_numpy()
        removed = [key for key, row in last.items() if is_removed[row]]
        kept = [key for key, row in last.items() if not is_removed[row]] if removed else list(last)
        if len(kept) < len(rows):
            rows = rows.take(pa.array([last[key] for key in kept], pa.int64()))
        values, carried = read_values(rows), [rows[name].to_pylist() for name in CARRIED]
        with self._lock:
            for key in removed:
                self._drop(key)
            slots = [self._slot(key) for key in kept]
            self._set(np.array(slots, np.int64), rows, values)
            self._carry(slots, zip(*carried, strict=True))
            self._recalled.update(states.filter(recalled)["partition"].to_pylist())
            for agent, *end in zip(*(ends[name].to_pylist() for name in ("agent", "topic_id", "log_end_offset")), strict=True):
                number = self._agent(agent)
                self._rounds[number] = self._rounds.get(number, Rounds()).arrived(End(*end))
            self._count_topics()
            self._check_ready()

    def take_catalog(self, agent: str, catalog: Catalog, end: End | None = None) -> None:
        """Set what is decided, as far as an agent knows.

        Args:
            end: where its journal ended then. The catalog counts once all rows up to there are processed; None for at once.
        """
        round_ = Round(Decisions(catalog), None if self._context.transactions.once else end)  # a run that ends uses the last catalog
        with self._lock:
            number = self._agent(agent)
            self._rounds[number] = self._rounds.get(number, Rounds()).updated(round_)

    def recalls(self, shards: int | None) -> None:
        """Treat the table as whole, and export sums of counters, only when all ``shards`` have handed out what they have; None while it is
        not known yet how many have something.

        This is for a run that continues with the state of an earlier run. The state is counted already, but an append to one log of a topic
        brings only the share of that log. The sum of some of the shares would be a counter that falls.
        """
        with self._lock:
            self._recalls = inf if shards is None else shards

    def reached(self, agent: str) -> End | None:
        """Up to where an agent's journal is in the table, None if that is not known."""
        with self._lock:
            return self._rounds.get(self._agents.get(agent, -1), Rounds()).reached

    def set_whole(self) -> None:
        """Everything that was there when the run began has arrived; for a run that recalls nothing."""
        with self._lock:
            self._whole = True
            self._check_ready()

    def set_agents(self, agents: Iterable[str]) -> None:
        """Set which agents take part: the table is ready only when it knows what is decided of their logs."""
        with self._lock:
            rounds = (self._rounds.get(self._agents.get(agent, -1), Rounds()) for agent in agents)
            self._decided = all(each.speaks is not None for each in rounds)
            self._check_ready()

    def mark_agent(self, agent: str, at: float) -> None:
        """An agent answered at ``at``, in seconds of the clock ``monotonic``."""
        with self._lock:
            self._seen[self._agent(agent)] = at

    def set_reading(self, agents: Mapping[str, float]) -> None:
        """Set up to when each agent's events are processed, for all agents that are up and have caught up with their disks.

        It is the time of an agent's last answer of which everything has been processed by now, in seconds of the clock ``monotonic``.
        """
        with self._lock:
            self._read = {self._agent(agent): seconds for agent, seconds in agents.items()}

    def set_context(self, **fields: Unpack[ClusterNow]) -> None:
        """Set fields of the `PageContext`, all of them for the same page."""
        with self._lock:
            self._context = replace(self._context, **fields)

    @property
    def limiter(self) -> Limiter:
        """The limits of topics."""
        return self._context.limiter

    def set_unreadable(self, logs: Iterable[LogKey]) -> None:
        """Set which logs cannot be read now: a log with an unreadable backlog does not hide the counters of others."""
        found = frozenset(logs)
        with self._lock:
            if found != self._unreadable:
                self._unreadable = found
                self._count_topics()

    def set_unread_dirs(self, log_dirs: Iterable[tuple[int, str]]) -> None:
        """Set in which log dirs, by broker and path, nothing is read now: their logs may go on unseen."""
        with self._lock:
            self._unread_dirs = frozenset(log_dirs)

    def set_scrubbed(self, batches: Mapping[Replica, int]) -> None:
        """Set how many damaged batches scrubs know in each replica."""
        with self._lock:
            self._scrubbed = batches

    def set_records(self, keys: Sequence[LogKey], counts: Longs) -> Longs:
        """Set how many records logs have on disk, shape (`RECORD_KINDS`, logs); returns the indexes of those that are not in the table.

        No log is there twice.
        """
        with self._lock:
            slots = self._slots.find_all(keys, -1)
            there = slots >= 0
            self._records[:, slots[there]] = counts[:, there]
        return np.flatnonzero(~there)

    def set_uncounted(self, uncounted: Uncounted) -> None:
        """Set what agents say of logs whose records they have not counted."""
        with self._lock:
            self._uncounted = uncounted

    @property
    def waiting(self) -> WaitingGroups:
        """The hanging transactions whose waiting groups are requested, and the groups that are known."""
        return self._context.waiting

    @property
    def ready(self) -> bool:
        """Whether the table has held everything that was there when the run began, and what is decided of that."""
        with self._lock:
            return self._ready

    def _check_ready(self) -> None:
        self._ready = self._ready or (self._decided and (self._has_recalled if self._recalls else self._whole))

    @property
    def _has_recalled(self) -> bool:
        return len(self._recalled) >= self._recalls

    def snapshot(self, now: float) -> Snapshot:
        """Copy the table as it is ``now``, in Unix seconds."""
        with self._lock:
            steady = now if self._monotonic is None else self._monotonic()  # here: no answer that counts is later
            if self._recalls:  # an agent may be known only from an earlier run, and be down since
                self._seen = [steady if np.isnan(seen) else seen for seen in self._seen]
            return Snapshot(
                columns=self._columns.upto(len(self._slots)),
                carried=self._carried.copy(),
                log_dirs=list(self._log_dirs),
                topic_ids=self._topic_ids.copy(),
                topic_names=self._topic_names.copy(),
                topic_labels=self._topic_labels.copy(),
                topic_exported=np.array(self._topic_exported, np.bool_),
                topic_counted=self._topic_counted.copy(),
                rounds=self._rounds.copy(),
                read_ms=self._read_ms(now - steady),
                unread_dirs=np.array([number for key, number in self._log_dirs.items() if key in self._unread_dirs], np.int64),
                unreadable=np.array(self._unreadable_slots(), np.int64),
                records=self._records[:, : len(self._slots)].copy(),
                uncounted=self._uncounted,
                scrubbed=self._scrubbed,
                restored=self._has_recalled,
                agents=list(self._agents),
                silent=steady - np.array(self._seen, np.float64) > self._stale_after_s,
                all_replicas=self._all_replicas,
                context=self._context,
                now_ms=round(now * 1000),
                steady_ms=round(steady * 1000),
            )

    def _read_ms(self, ahead: float) -> Longs:
        """Up to when each agent is read. ``ahead``: by how many seconds the clock of pages is ahead of ``monotonic`` now."""
        read_ms = np.full(len(self._seen), -1, np.int64)
        for agent, seconds in self._read.items():
            read_ms[agent] = int((seconds + ahead) * 1000)
        return read_ms

    def _set(self, slots: Longs, rows: pa.Table, values: Columns) -> None:
        values["agent"][:] = [self._agent(agent) for agent in rows["agent"].to_pylist()]
        values["log_dir"][:] = [
            self._log_dirs.setdefault((broker, log_dir or ""), len(self._log_dirs))
            for broker, log_dir in zip(rows["broker"].to_pylist(), rows["log_dir"].to_pylist(), strict=True)
        ]
        for name in ("topic", "replicas_of", "slot"):
            values[name][:] = self._columns[name][slots]
        self._columns.matrix[:, slots] = values.matrix

    def _carry(self, slots: list[int], blobs: Iterable[tuple[bytes | None, ...]]) -> None:
        for slot, values in zip(slots, blobs, strict=True):
            before = self._carried[slot]
            if values != _UNCARRIED or before.transactions is not NO_TRANSACTIONS:
                self._carried[slot] = before.updated(*values)

    def _slot(self, log: _Key) -> int:
        slot = self._slots.find(log)
        return self._new_slot(LogKey(*log)) if slot is None else slot

    def _new_slot(self, key: LogKey) -> int:
        slot = self._slots.take(key)
        if slot == len(self._columns):
            self._columns = self._columns.grown(2 * slot)
            self._records = np.pad(self._records, ((0, 0), (0, slot)), constant_values=-1)
        if slot == len(self._carried):
            self._carried.append(NOTHING_CARRIED)
            self._topic_ids.append("")
        self._topic_ids[slot] = key.topic_id
        self._columns["slot"][slot] = slot
        topic = self._topics.take((key.broker, key.topic))
        if topic == len(self._topic_labels):
            self._topic_labels.append("")
            self._topic_names.append("")
            self._topic_exported.append(True)
        self._topic_names[topic] = key.topic
        self._topic_labels[topic] = labels(broker=str(key.broker), topic=key.topic)
        self._topic_exported[topic] = self.export.has_topic(key.topic)
        self._columns["topic"][slot] = topic
        self._columns["replicas_of"][slot] = self._partitions.take(_partition(key))
        return slot

    def _drop(self, log: _Key) -> None:
        if self._slots.find(log) is None:
            return
        key = LogKey(*log)
        slot = self._slots.release(key)
        assert slot is not None  # a log takes its slot once
        self._columns["kind"][slot], self._carried[slot] = FREE, NOTHING_CARRIED
        self._records[:, slot] = -1
        self._partitions.release(_partition(key))
        topic = self._topics.release((key.broker, key.topic))
        if topic is not None:
            self._topic_counted[topic] = False

    def _agent(self, name: str) -> int:
        number = self._agents.setdefault(name, len(self._agents))
        if number == len(self._seen):
            self._seen.append(np.nan)
        return number

    def _count_topics(self) -> None:
        """Update the topics whose counters are exported: once the backlog of all their logs is read, as far as it can be.

        A topic without a log is not among them. No topic is, until everything is recalled that an earlier run has counted.
        A log that appears later must not hide what its topic has counted for long: it joins the sum when it is settled.
        """
        columns, topics = self._columns, len(self._topics)
        live = columns["kind"] == LOG
        logs = np.bincount(columns["topic"][live], minlength=topics)
        settled = np.bincount(columns["topic"][live & (columns["settled"] == 1)], minlength=topics)
        slots = self._unreadable_slots()
        excused = np.bincount(columns["topic"][slots][(live & (columns["settled"] != 1))[slots]].astype(np.intp), minlength=topics)
        complete = (settled + excused == logs) & ((settled > 0) | (excused == 0)) & self._has_recalled
        before = np.pad(self._topic_counted, (0, topics - len(self._topic_counted)))
        self._topic_counted = (before | complete) & (logs > 0)

    def _unreadable_slots(self) -> list[int]:
        return [slot for key in self._unreadable if (slot := self._slots.find(key)) is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncounted:
    """``errors``: why a log is not counted, of logs that are not only waiting for it. ``idle``: the names of agents that count none."""

    errors: Mapping[LogKey, str] = field(default_factory=dict)
    idle: frozenset[str] = frozenset()


class Replica(NamedTuple):
    """A log by its directory, whichever topic id it has."""

    broker: int
    topic: str
    partition: int


class ClusterNow(TypedDict, total=False):
    """The fields of `PageContext` that agents report of the cluster."""

    coordinator_partitions: int | None
    fenced: frozenset[int]
    topic_ids: Mapping[str, str] | None
    topic_partitions: Mapping[str, int] | None
    away: frozenset[int]
    metadata_ms: int | None
    clocks_ahead_ms: Mapping[int, int]
    reassignments: tuple[Reassignment, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """A copy of the table that no later row changes."""

    columns: Columns
    carried: list[Carried]  # by the number in ``columns["slot"]``
    topic_ids: list[str]  # by the same
    log_dirs: list[tuple[int, str]]  # (broker, path), by the number in ``columns["log_dir"]``
    topic_names: list[str]  # by the number in ``columns["topic"]``
    topic_labels: list[str]  # by the number in ``columns["topic"]``
    topic_exported: Flags  # by the same
    topic_counted: Flags  # by the same: the backlog of all its logs was read once, so its counters are exported
    unreadable: Longs  # the numbers in ``columns["slot"]`` of logs that cannot be read now
    unread_dirs: Longs  # those in ``columns["log_dir"]`` of log dirs in which nothing is read now
    records: Longs  # by the number in ``columns["slot"]``: the records on disk, shape (kinds, slots); -1 where they are not counted
    uncounted: Uncounted  # why others are not
    restored: bool  # all that a run before has counted is here
    scrubbed: Mapping[Replica, int]  # how many damaged batches scrubs know, for replicas that have any
    agents: list[str]  # by the number in ``columns["agent"]``
    silent: Flags  # by the same
    rounds: dict[int, Rounds]  # by the same: what is decided, as far as the agent has sent it
    read_ms: Longs  # by the same: up to when everything published is processed, by the clock of ``now_ms``; -1 not known
    all_replicas: bool
    context: PageContext
    now_ms: int
    steady_ms: int  # the same by a monotonic clock


def _partition(key: LogKey) -> tuple[str, str, int]:
    """The partition that a log is a replica of: by topic id, or by name if there is none."""
    return key.topic_id, "" if key.topic_id else key.topic, key.partition
