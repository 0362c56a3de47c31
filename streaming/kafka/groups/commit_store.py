"""The commits and groups of a cluster, from what agents report of their coordinators' logs: each log from its current replica.

Of a log without one, what was known last stays, and is marked as not observed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.kafka.formats.names import SHARE_STATE_TOPIC
from streaming.kafka.groups.commit_table import CommitColumns, CommitKeys, CommitRows, Commits, CoordinatorLog, Current, LogName, numbered
from streaming.kafka.groups.group_rows import NOT_REPLICATED, REMOVED, GroupChanges, GroupFacts, PendingCommit, group_facts, pending_commits
from streaming.kafka.groups.group_states import GroupState

_MANY_CHUNKS = 64

_ANY = -1
"""Less than any offset: what came before a row is not known at all."""

_OLD_MS = 8_000
"""A broker writes its high watermarks every five seconds, and those of a follower are half a second older."""

_FEW_PAIRS = 10_000

_Key = tuple[str, int, str, int]
"""Agent, broker, topic and partition: an agent may have the replicas of several brokers."""

_NUMBERS = ("offset", "commit_ms", "expire_ms", "delivered", "leader_epoch", "former_ms", "resumed", "moved_ms", "presence")


class CommitStore:
    """The commits and groups that agents have sent, of each replica of a coordinator's log. One thread at a time uses it."""

    def __init__(self) -> None:
        self._keys = CommitKeys()
        self._most_pairs = _FEW_PAIRS
        self._replicas: dict[_Key, CoordinatorReplica] = {}
        self._rows: tuple[list[tuple[ReplicaCommits, int]], CommitRows] | None = None
        self._groups: tuple[list[tuple[CoordinatorReplica, int]], Mapping[str, GroupFacts]] | None = None

    def version(self, agent: str, log: LogName) -> tuple[str, int]:
        """The edition and the version of what an agent of one broker has sent of a log: it is asked for what changed since then."""
        found = (replica for key, replica in self._replicas.items() if (key[0], *key[2:]) == (agent, *log))
        return next(((replica.edition, replica.version) for replica in found), ("", 0))

    def take(self, agent: str, changes: GroupChanges) -> None:
        """Take what an agent has sent of a log, in the order in which it sent it."""
        replica = self._replicas.setdefault((agent, changes.broker, changes.topic, changes.coordinator), CoordinatorReplica())
        commits = changes.commits
        columns = CommitColumns(
            key=self._keys.keys(commits),
            topic_id=numbered(commits["topic_id"], self._keys.topic_ids),
            done=_ranges(commits["done"]),
            **{name: commits[name].to_numpy() for name in _NUMBERS},
        )
        offsets = (commits[name].to_numpy() for name in ("effective_offset", "record_offset"))
        replica.take(changes, columns if len(commits) else CommitColumns.removed(), *offsets)

    def forget(self, agent: str, lasting: Collection[LogName] = ()) -> None:
        """Forget what an agent has sent of all logs but some: it no longer has them, or is no longer asked."""
        self._replicas = {key: replica for key, replica in self._replicas.items() if key[0] != agent or key[2:] in lasting}

    def has_group(self, name: str, *, without: str) -> bool:
        """Whether a log has a group of that name, but for those of a topic."""
        return any(replica.has_group(name) for key, replica in self._replicas.items() if key[2] != without)

    def table(self, currents: Mapping[LogName, Current]) -> Commits:
        """The commits below the high watermarks of the current replicas. Commits that are not known because they wait are marked."""
        for (_, _, topic, partition), replica in self._replicas.items():
            current = currents.get((topic, partition))
            if current is None:
                replica.wait()
            else:
                replica.settle(current.high_watermark)
        if len(self._keys) > self._most_pairs:
            self._forget_groups()
        chosen = self._chosen(currents)
        logs = tuple(_log(key, replica, currents) for key, replica in chosen)
        replicas = [replica for _, replica in chosen]
        return Commits(
            rows=self._rows_of(logs, replicas),
            logs=logs,
            groups=self._groups_of(replicas),
            pending=tuple(
                one for log, replica in zip(logs, replicas, strict=True) if log.observed for one in replica.pending(log.high_watermark)
            ),
        )

    def _forget_groups(self) -> None:
        """Forget the names of groups that are gone: clients may make up new names all the time."""
        replicas = self._replicas.values()
        self._keys.keep(np.concatenate([np.empty(0, np.int64), *(replica.commits.keys for replica in replicas)]))
        self._most_pairs = 2 * len(self._keys) + _FEW_PAIRS
        self._rows = None

    def _chosen(self, currents: Mapping[LogName, Current]) -> list[tuple[_Key, CoordinatorReplica]]:
        """The current replica of each log, else the one that was replayed furthest."""
        best: dict[LogName, tuple[_Key, CoordinatorReplica]] = {}
        for key, replica in self._replicas.items():
            log = (key[2], key[3])
            rank = (_is_current(key, currents), replica.upto)
            if log not in best or rank > (_is_current(best[log][0], currents), best[log][1].upto):
                best[log] = key, replica
        return [best[log] for log in sorted(best)]

    def _rows_of(self, logs: tuple[CoordinatorLog, ...], replicas: list[CoordinatorReplica]) -> CommitRows:
        changes = [(replica.commits, replica.commits.changed) for replica in replicas]
        if self._rows is None or self._rows[0] != changes:
            self._rows = changes, self._joined(logs, [replica.commits.settled for replica in replicas])
        return self._rows[1]

    def _groups_of(self, replicas: list[CoordinatorReplica]) -> Mapping[str, GroupFacts]:
        changes = [(replica, replica.groups_changed) for replica in replicas]
        if self._groups is None or self._groups[0] != changes:
            self._groups = changes, {name: group for replica in replicas for name, group in replica.groups.items()}
        return self._groups[1]

    def _joined(self, logs: tuple[CoordinatorLog, ...], settled: list[CommitColumns]) -> CommitRows:
        joined = concatenated(settled)
        of_log = np.repeat(np.arange(len(logs), dtype=np.int32), [len(columns) for columns in settled])
        order = np.argsort(joined.key, kind="stable")
        rows, of_log = joined.take(order), of_log[order]
        group, topic, partition = self._keys.parts(rows.key)
        return CommitRows(
            **{one.name: getattr(rows, one.name) for one in fields(CommitColumns)},
            group=group,
            topic=topic,
            partition=partition,
            log=of_log,
            share=np.array([log.topic == SHARE_STATE_TOPIC for log in logs], np.bool_)[of_log],
            group_names=tuple(self._keys.groups.names),
            topic_names=tuple(self._keys.topics),
            topic_ids=tuple(self._keys.topic_ids.names),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """Commits that wait, each key once.

    ``effective``: one counts once the high watermark is above it. ``begins``: from above this offset on, what was known before counts no
    more; it is less than ``effective`` where commits between them were left out, or nothing is known of what was before. ``appended_ms``:
    since when one is in the log, by its own time; -1 of a tombstone and of a commit in a transaction, which is older than its marker.
    """

    begins: Longs
    effective: Longs
    appended_ms: Longs
    columns: CommitColumns

    def take(self, rows: Flags) -> _Waiting:
        """Some of the rows."""
        return _Waiting(self.begins[rows], self.effective[rows], self.appended_ms[rows], self.columns.take(rows))


@dataclass(slots=True, eq=False)
class ReplicaCommits:
    """``settled`` is sorted by key; the offset of what is not known as long as others wait is `NOT_REPLICATED`. ``changed`` counts what was
    settled, so that a reader knows whether to look.

    One coordinator's log as one agent has replayed it: what of it counts, and what is above the high watermark, and waits.
    """

    settled: CommitColumns = field(default_factory=CommitColumns.removed)
    changed: int = 0
    _waiting: list[_Waiting] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """The number of commits above the high watermark; of one partition there may be several."""
        return sum(len(each.columns) for each in self._waiting)

    def clear(self) -> None:
        """Nothing is known any more."""
        self.settled, self._waiting, self.changed = CommitColumns.removed(), [], self.changed + 1

    def add(self, effective_offsets: Longs, record_offsets: Longs, columns: CommitColumns, *, first: bool) -> None:
        """Commits that count once the high watermark is above their effective offsets; later ones come later.

        Args:
            first: these are all that is known, so that nothing shows what counted before each of them.
        """
        appended_ms = np.where(record_offsets == effective_offsets, columns.commit_ms, -1)
        if len(last := last_of_each(columns.key)) < len(columns):
            effective_offsets, appended_ms, columns = effective_offsets[last], appended_ms[last], columns.take(last)
        if len(columns):
            begins = np.full(len(columns), _ANY, np.int64) if first else effective_offsets
            self._waiting.append(_Waiting(begins, effective_offsets, appended_ms, columns))
        if len(self._waiting) > _MANY_CHUNKS:
            self._merge()

    def add_all(self, effective_offsets: Longs, record_offsets: Longs, columns: CommitColumns, upto: int) -> None:
        """All commits as of ``upto``: of what is known besides, nothing shows when it was removed, but it was before that."""
        gone = np.setdiff1d(self.keys, columns.key)
        effective_offsets = np.concatenate([effective_offsets, np.full(len(gone), upto - 1)])
        record_offsets = np.concatenate([record_offsets, np.full(len(gone), -1)])
        self.add(effective_offsets, record_offsets, concatenated([columns, CommitColumns.removed(gone)]), first=False)

    def settle(self, high_watermark: int) -> None:
        """Let those count that are below the high watermark, and mark what is not known because of those above it.

        If these came over a long time, the high watermark is one of long ago, as that which a broker has read again at its start. Then what
        counts now in their partitions is not known.
        """
        waiting = []
        for each in self._waiting:
            below = each.effective < high_watermark
            if below.any():
                self._put(each.columns.take(below))
            if not below.all():
                waiting.append(each.take(~below))
        self._waiting = waiting
        old = self._waits_long()
        for each in waiting:
            lost = np.full(len(each.columns), old) | (each.begins < high_watermark)
            self._mark(each.columns, lost | (each.columns.offset != REMOVED), lost)

    def _waits_long(self) -> bool:
        """Whether the last commit that waits was appended long after the first one: no clock of this host is needed for that."""
        times = [each.appended_ms[each.appended_ms >= 0] for each in self._waiting]
        some = [each for each in times if len(each)]
        return bool(some) and max(int(each.max()) for each in some) - min(int(each.min()) for each in some) > _OLD_MS

    def wait(self) -> None:
        """No high watermark is known: mark what has a commit of which it is not known whether it counts."""
        for each in self._waiting:
            self._mark(each.columns, each.columns.offset != REMOVED, np.zeros(len(each.columns), np.bool_))

    @property
    def keys(self) -> Longs:
        """The keys of all commits, those that wait among them."""
        return np.concatenate([self.settled.key, *(each.columns.key for each in self._waiting)])

    def _put(self, columns: CommitColumns) -> None:
        self.settled = self.settled.upserted(columns)
        self.changed += 1

    def _mark(self, columns: CommitColumns, absent: Flags, lost: Flags) -> None:
        """Mark keys as not known: some if they have no commit, and some whatever they have."""
        at = np.minimum(np.searchsorted(self.settled.key, columns.key), max(len(self.settled) - 1, 0))
        there = self.settled.key[at] == columns.key if len(self.settled) else np.zeros(len(columns), np.bool_)
        marked = there.copy()
        marked[there] = self.settled.offset[at[there]] == NOT_REPLICATED
        rows = ((absent & ~there) | lost) & ~marked
        if rows.any():
            none = np.full(int(rows.sum()), -1, np.int64)
            marks = replace(
                columns.take(rows), offset=np.full_like(none, NOT_REPLICATED), commit_ms=none, expire_ms=none, delivered=np.zeros_like(none)
            )
            self._put(marks)

    def _merge(self) -> None:
        """Keep only the last one of each key: where no high watermark is known, more and more would wait."""
        joined = concatenated([each.columns for each in self._waiting])
        begins, effective = (np.concatenate([getattr(each, name) for each in self._waiting]) for name in ("begins", "effective"))
        appended_ms = np.concatenate([each.appended_ms for each in self._waiting])
        last = last_of_each(joined.key)
        keys, first = np.unique(joined.key, return_index=True)
        before = first[np.searchsorted(keys, joined.key[last])]
        self._waiting = [_Waiting(begins[before], effective[last], appended_ms[before], joined.take(last))]


def last_of_each(keys: Longs) -> NDArray[np.intp]:
    """The index of the last row of each key, ascending."""
    _, from_the_end = np.unique(keys[::-1], return_index=True)
    last: NDArray[np.intp] = np.sort(len(keys) - 1 - from_the_end)
    return last


def concatenated(parts: list[CommitColumns]) -> CommitColumns:
    """The rows of all, one after the other."""
    if not parts:
        return CommitColumns.removed()
    return CommitColumns(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(CommitColumns)))


@dataclass(slots=True, eq=False)
class CoordinatorReplica:
    """Commits, groups and pending commits.

    ``groups``: of one whose records all wait, the state is unknown, and its members are `NOT_REPLICATED`. ``groups_changed`` counts the
    changes of ``groups``.
    """

    commits: ReplicaCommits = field(default_factory=ReplicaCommits)
    groups: dict[str, GroupFacts] = field(default_factory=dict)
    edition: str = ""
    version: int = 0
    upto: int = 0
    broker: int = -1
    unreadable: int = 0
    omitted: int = 0
    groups_changed: int = 0
    _waiting_groups: list[tuple[GroupFacts, bool]] = field(default_factory=list)
    _pending: list[tuple[int, tuple[PendingCommit, ...]]] = field(default_factory=list)

    def take(self, changes: GroupChanges, commits: CommitColumns, effective_offsets: Longs, record_offsets: Longs) -> None:
        """Take changes, of which the columns are the commits. What is out of date waits, too, until the high watermark is above it."""
        again = changes.whole and changes.edition == self.edition
        groups, pending = group_facts(changes.groups), pending_commits(changes.pending)
        if again:
            self.commits.add_all(effective_offsets, record_offsets, commits, changes.upto)
            there = {each.group for each in groups}
            gone = {**self.groups, **{each.group: each for each, _ in self._waiting_groups}}
            groups += [
                replace(each, members=REMOVED, effective_offset=changes.upto - 1) for name, each in gone.items() if name not in there
            ]
        else:
            if changes.whole:
                # what was known is of another edition
                self.commits.clear()
                self.groups, self._pending, self._waiting_groups = {}, [], []
                self.groups_changed += 1
            self.commits.add(effective_offsets, record_offsets, commits, first=changes.whole)
        self._waiting_groups += [(each, changes.whole and not again) for each in groups]
        self.edition, self.version, self.upto, self.broker = changes.edition, changes.version, changes.upto, changes.broker
        self.unreadable, self.omitted = changes.unreadable, changes.omitted
        if not self._pending or self._pending[-1][1] != pending:
            self._pending.append((changes.upto, pending))
        if len(self._pending) > _MANY_CHUNKS:
            del self._pending[1]

    def has_group(self, name: str) -> bool:
        """Whether there is a group of that name, or one that waits."""
        return name in self.groups or any(each.group == name and not each.removed for each, _ in self._waiting_groups)

    def settle(self, high_watermark: int) -> None:
        """Let that count which is below the high watermark."""
        self.commits.settle(high_watermark)
        self._settle_groups(high_watermark)

    def wait(self) -> None:
        """No high watermark is known."""
        self.commits.wait()
        for group, _ in self._waiting_groups:
            if not group.removed:
                self._mark(group)

    def pending(self, high_watermark: int) -> tuple[PendingCommit, ...]:
        """The commits that are pending as of a high watermark: one whose marker is above it is still pending."""
        before = [number for number, (upto, _) in enumerate(self._pending) if upto <= high_watermark]
        del self._pending[: before[-1] if before else 0]
        ended = self._pending[0][1] if before else ()
        later = (each for _, some in self._pending[bool(before) :] for each in some)
        waiting = [*ended, *(each for each in later if each.record_offset < high_watermark)]
        return tuple({(each.producer_id, each.group, each.topic, each.partition): each for each in waiting}.values())

    def _settle_groups(self, high_watermark: int) -> None:
        waiting = []
        for group, whole in self._waiting_groups:
            if group.effective_offset >= high_watermark:
                waiting.append((group, whole))
            elif group.removed:
                self.groups_changed += self.groups.pop(group.group, None) is not None
            else:
                self.groups[group.group] = group
                self.groups_changed += 1
        self._waiting_groups = waiting
        for group, whole in waiting:
            if whole or not group.removed:
                self._mark(group)

    def _mark(self, group: GroupFacts) -> None:
        """A group of which nothing is known but records that wait."""
        if group.group not in self.groups:
            self.groups[group.group] = GroupFacts(
                group=group.group,
                coordinator=group.coordinator,
                effective_offset=group.effective_offset,
                type=group.type,
                protocol=group.protocol,
                state=GroupState.UNKNOWN,
                members=NOT_REPLICATED,
                epoch=-1,
                interval_ms=group.interval_ms,
                assigned=group.assigned,
            )
            self.groups_changed += 1


def _ranges(column: pa.Array) -> NDArray[np.object_]:
    found = np.full(len(column), None, np.object_)
    if column.null_count < len(column):
        for row, ranges in enumerate(column.to_pylist()):
            found[row] = None if ranges is None else tuple(ranges)
    return found


def _log(key: _Key, replica: CoordinatorReplica, currents: Mapping[LogName, Current]) -> CoordinatorLog:
    agent, _, topic, partition = key
    current = currents.get((topic, partition))
    observed = _is_current(key, currents)
    high_watermark = current.high_watermark if current is not None and observed else -1
    return CoordinatorLog(
        topic=topic,
        partition=partition,
        agent=agent,
        broker=replica.broker,
        edition=replica.edition,
        upto=replica.upto,
        high_watermark=high_watermark,
        observed=observed,
        waiting=replica.commits.waiting,
        unreadable=replica.unreadable,
        omitted=replica.omitted,
        replicated=max(high_watermark, current.checkpoint) if current is not None and observed else -1,
    )


def _is_current(key: _Key, currents: Mapping[LogName, Current]) -> bool:
    current = currents.get((key[2], key[3]))
    return current is not None and current.is_of(key[0], key[1])
