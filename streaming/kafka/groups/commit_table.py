"""The commits and groups of a cluster as columns: what a `CommitStore` makes of what agents report."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.kafka.groups.group_rows import REMOVED, GroupFacts, PendingCommit
from streaming.kafka.groups.numbered_names import Numbers

LogName = tuple[str, int]
"""`__consumer_offsets` or `__share_group_state`, and the partition."""


@dataclass(frozen=True, slots=True)
class Current:
    """The replica of a coordinator's log that counts: that of an agent, and its high watermark.

    ``broker``: whose it is, for an agent that reads the log dirs of several; -1: the only one that the agent has. ``checkpoint``: the high
    watermark that its broker has noted; it is beyond the other one where the log was not read so far, or has lost its end.
    """

    agent: str
    high_watermark: int
    broker: int = -1
    checkpoint: int = -1

    def is_of(self, agent: str, broker: int) -> bool:
        """Whether it is the replica of that broker which this agent has."""
        return self.agent == agent and self.broker in (-1, broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorLog:
    """One of the logs that rows are of. ``observed``: the agent's replica is the current one; else ``high_watermark`` is -1.

    ``upto``: the offset up to which the agent has replayed it; ``replicated``: up to which it has to, -1 if that is not known. ``late``: it
    has not for long, or the log has lost its end, so that what counts is as of an earlier time. ``waiting``: the commits above the high
    watermark.
    """

    topic: str
    partition: int
    agent: str
    broker: int
    edition: str
    upto: int
    high_watermark: int
    observed: bool
    waiting: int
    unreadable: int
    omitted: int
    replicated: int = -1
    late: bool = False

    @property
    def is_current(self) -> bool:
        """Whether what counts of it is what counts now, give or take the seconds that an agent needs."""
        return self.observed and not self.late

    @property
    def complete(self) -> bool:
        """Whether the agent has replayed all that counts."""
        return self.observed and self.upto >= self.high_watermark


@dataclass(frozen=True, slots=True, eq=False)
class CommitColumns:
    """Commits in columns of equal length, each key at most once.

    ``key`` is that of a group, topic and partition for as long as the process lives. ``topic_id`` is a number that stays the same.
    ``done``: `offset_ranges.Ranges`, None where they are not known. The other columns are those of `CommittedOffset`; ``offset`` may be
    `NOT_UNDERSTOOD`.
    """

    key: Longs
    topic_id: Numbers
    offset: Longs
    commit_ms: Longs
    expire_ms: Longs
    delivered: Longs
    leader_epoch: Longs
    former_ms: Longs
    done: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def removed(cls, keys: Iterable[int] = ()) -> "CommitColumns":
        """Keys that have no commit."""
        key = np.array(keys, np.int64)
        none = np.full_like(key, -1)
        return CommitColumns(
            key, np.zeros(len(key), np.int32), np.full_like(key, REMOVED), none, none, none, none, none, np.full(len(key), None)
        )

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> "CommitColumns":
        """Some of the rows, copied."""
        return CommitColumns(*(getattr(self, one.name)[rows] for one in fields(CommitColumns)))

    def upserted(self, new: "CommitColumns") -> "CommitColumns":
        """These rows, sorted by key, with others put in or in their place; a removed one deletes. They may be changed in place."""
        at = np.searchsorted(self.key, new.key)
        known = np.zeros(len(new), np.bool_)
        inside = at < len(self)
        known[inside] = self.key[at[inside]] == new.key[inside]
        removed = new.offset == REMOVED
        replaced, added = known & ~removed, ~known & ~removed
        for one in fields(CommitColumns):
            getattr(self, one.name)[at[replaced]] = getattr(new, one.name)[replaced]
        rows = self
        if added.any():
            order = np.flatnonzero(added)[np.argsort(new.key[added], kind="stable")]
            rows = CommitColumns(
                *(np.insert(getattr(self, one.name), at[order], getattr(new, one.name)[order]) for one in fields(CommitColumns))
            )
        if (known & removed).any():
            gone = np.isin(rows.key, new.key[known & removed], assume_unique=True)
            rows = rows.take(~gone)
        return rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommitRows(CommitColumns):
    """All that counts, sorted by ``key``; nobody changes it.

    ``group``, ``topic`` and ``topic_id`` are indexes into the names; those of topics stay the same. Of a share group's row only the id is
    known, and the name is "". ``log``: an index into the logs. ``share``: of a share group.
    """

    group: Numbers
    topic: Numbers
    partition: Numbers
    log: Numbers
    share: NDArray[np.bool_]
    group_names: tuple[str, ...]
    topic_names: tuple[str, ...]
    topic_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Commits:
    """What counts of all logs. ``rows`` and ``groups`` are the same objects as before if nothing of them changed."""

    rows: CommitRows
    logs: tuple[CoordinatorLog, ...]
    groups: Mapping[str, GroupFacts]
    pending: tuple[PendingCommit, ...]
