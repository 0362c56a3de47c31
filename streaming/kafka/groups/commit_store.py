"""The commits and groups of a cluster, from what agents report of their coordinators' logs: each log from its current replica.

Of a log without one, what was known last stays, and is marked as not observed.
"""

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.kafka.formats.names import SHARE_STATE_TOPIC
from streaming.kafka.groups.commit_table import CommitRows, Commits, CoordinatorLog, Current, LogName
from streaming.kafka.groups.group_rows import GroupChanges, GroupFacts
from streaming.kafka.groups.numbered_names import CommitKeys, numbered
from streaming.kafka.groups.replica_commits import CommitColumns, CoordinatorReplica, ReplicaCommits, concatenated

_FEW_PAIRS = 10_000

_Key = tuple[str, int, str, int]
"""Agent, broker, topic and partition: an agent may have the replicas of several brokers."""


class CommitStore:
    """Not for several threads at once."""

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
            **{name: commits[name].to_numpy() for name in ("offset", "commit_ms", "expire_ms", "delivered", "leader_epoch", "former_ms")},
        )
        offsets = (commits[name].to_numpy() for name in ("effective_offset", "record_offset"))
        replica.take(changes, columns if len(commits) else CommitColumns.none(), *offsets)

    def forget(self, agent: str, lasting: Collection[LogName] = ()) -> None:
        """Forget what an agent has sent of all logs but some: it no longer has them, or is no longer asked."""
        self._replicas = {key: replica for key, replica in self._replicas.items() if key[0] != agent or key[2:] in lasting}

    def has_group(self, name: str, *, without: str) -> bool:
        """Whether a log has a group of that name, but for those of a topic."""
        return any(replica.has_group(name) for key, replica in self._replicas.items() if key[2] != without)

    def table(self, currents: Mapping[LogName, Current]) -> Commits:
        """What is below the high watermarks of the current replicas. What is not known because it waits is there, and marked."""
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
        """Forget the names of groups that are gone: group names may be made up anew all the time."""
        replicas = self._replicas.values()
        self._keys.keep(np.concatenate([np.empty(0, np.int64), *(replica.commits.keys for replica in replicas)]))
        self._most_pairs = 2 * len(self._keys) + _FEW_PAIRS
        self._rows = None

    def _chosen(self, currents: Mapping[LogName, Current]) -> list[tuple[_Key, CoordinatorReplica]]:
        """Of each log the current replica, else the one that was replayed furthest."""
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
        parts = self._keys.parts(rows.key)
        return CommitRows(
            key=rows.key,
            group=parts.group,
            topic=parts.topic,
            topic_id=rows.topic_id,
            partition=parts.partition,
            log=of_log,
            share=np.array([log.topic == SHARE_STATE_TOPIC for log in logs], np.bool_)[of_log],
            offset=rows.offset,
            commit_ms=rows.commit_ms,
            expire_ms=rows.expire_ms,
            delivered=rows.delivered,
            leader_epoch=rows.leader_epoch,
            former_ms=rows.former_ms,
            done=rows.done,
            group_names=tuple(self._keys.groups.names),
            topic_names=tuple(self._keys.topics),
            topic_ids=tuple(self._keys.topic_ids.names),
        )


def _ranges(column: pa.Array) -> NDArray[np.object_]:
    found = np.full(len(column), None, np.object_)
    if column.null_count < len(column):
        for row, ranges in enumerate(column.to_pylist()):
            found[row] = None if ranges is None else tuple(ranges)
    return found


def _is_current(key: _Key, currents: Mapping[LogName, Current]) -> bool:
    current = currents.get((key[2], key[3]))
    return current is not None and current.is_of(key[0], key[1])


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
