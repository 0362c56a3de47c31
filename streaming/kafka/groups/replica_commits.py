"""One coordinator's log as one agent has replayed it: what of it counts, and what is above the high watermark, and waits."""

from dataclasses import dataclass, field, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.kafka.groups.group_rows import REMOVED, GroupChanges, GroupFacts, PendingCommit
from streaming.kafka.groups.numbered_names import Numbers

_MANY_CHUNKS = 64


@dataclass(frozen=True, slots=True, eq=False)
class CommitColumns:
    """Columns of equal length, each key at most once; ``topic_id`` by its number, ``done`` as in `CommitRows`, the rest as in `COMMITS`."""

    key: Longs
    topic_id: Numbers
    offset: Longs
    commit_ms: Longs
    expire_ms: Longs
    delivered: Longs
    done: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def none(cls) -> Self:
        """No rows."""
        longs = np.empty(0, np.int64)
        return cls(longs, np.empty(0, np.int32), longs, longs, longs, longs, np.empty(0, np.object_))

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> "CommitColumns":
        """Some of the rows, copied."""
        return CommitColumns(*(getattr(self, one.name)[rows] for one in fields(self)))

    def upserted(self, new: "CommitColumns") -> "CommitColumns":
        """These rows, sorted by key, with others put in or in their place; a removed one deletes. They may be changed in place."""
        at = np.searchsorted(self.key, new.key)
        known = np.zeros(len(new), np.bool_)
        inside = at < len(self)
        known[inside] = self.key[at[inside]] == new.key[inside]
        removed = new.offset == REMOVED
        replaced, added = known & ~removed, ~known & ~removed
        for one in fields(self):
            getattr(self, one.name)[at[replaced]] = getattr(new, one.name)[replaced]
        rows = self
        if added.any():
            order = np.flatnonzero(added)[np.argsort(new.key[added], kind="stable")]
            rows = CommitColumns(*(np.insert(getattr(self, one.name), at[order], getattr(new, one.name)[order]) for one in fields(self)))
        if (known & removed).any():
            gone = np.isin(rows.key, new.key[known & removed], assume_unique=True)
            rows = rows.take(~gone)
        return rows


@dataclass(slots=True, eq=False)
class ReplicaCommits:
    """``settled`` is sorted by key. ``changed`` counts what was settled, so that a reader knows whether to look."""

    settled: CommitColumns = field(default_factory=CommitColumns.none)
    changed: int = 0
    _waiting: list[tuple[Longs, CommitColumns]] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """The number of commits above the high watermark; of one partition there may be several."""
        return sum(len(columns) for _, columns in self._waiting)

    def clear(self) -> None:
        """Nothing is known any more."""
        self.settled, self._waiting, self.changed = CommitColumns.none(), [], self.changed + 1

    def add(self, effective_offsets: Longs, columns: CommitColumns) -> None:
        """Commits that count once the high watermark is above their effective offsets; later ones come later."""
        if len(last := last_of_each(columns.key)) < len(columns):
            effective_offsets, columns = effective_offsets[last], columns.take(last)
        if len(columns):
            self._waiting.append((effective_offsets, columns))
        if len(self._waiting) > _MANY_CHUNKS:
            self._merge()

    def settle(self, high_watermark: int) -> None:
        """Let those count that are below the high watermark."""
        if not self._waiting:
            return
        waiting = []
        for effective, columns in self._waiting:
            below = effective < high_watermark
            if below.all():
                self._put(columns)
                continue
            if below.any():
                self._put(columns.take(below))
            waiting.append((effective[~below], columns.take(~below)))
        self._waiting = waiting

    @property
    def keys(self) -> Longs:
        """The keys of all commits, those that wait among them."""
        return np.concatenate([self.settled.key, *(columns.key for _, columns in self._waiting)])

    def _put(self, columns: CommitColumns) -> None:
        self.settled = self.settled.upserted(columns)
        self.changed += 1

    def _merge(self) -> None:
        """Keep only the last one of each key: where no high watermark is known, more and more would wait."""
        effective = np.concatenate([one for one, _ in self._waiting])
        joined = concatenated([columns for _, columns in self._waiting])
        last = last_of_each(joined.key)
        self._waiting = [(effective[last], joined.take(last))]


@dataclass(slots=True, eq=False)
class CoordinatorReplica:
    """Commits, groups and pending commits.

    ``pending`` are all of them, whether below the high watermark or not. ``groups_changed`` counts the changes of ``groups``.
    """

    commits: ReplicaCommits = field(default_factory=ReplicaCommits)
    groups: dict[str, GroupFacts] = field(default_factory=dict)
    pending: tuple[PendingCommit, ...] = ()
    edition: str = ""
    version: int = 0
    upto: int = 0
    broker: int = -1
    unreadable: int = 0
    omitted: int = 0
    groups_changed: int = 0
    _waiting_groups: list[GroupFacts] = field(default_factory=list)

    def take(self, changes: GroupChanges, groups: list[GroupFacts], pending: tuple[PendingCommit, ...]) -> None:
        """All of the changes but the commits. The reader of the changes has cleared what is out of date."""
        self.edition, self.version, self.upto, self.broker = changes.edition, changes.version, changes.upto, changes.broker
        self.unreadable, self.omitted = changes.unreadable, changes.omitted
        self._waiting_groups += groups
        self.pending = pending

    def clear(self) -> None:
        """What was known is out of date."""
        self.commits.clear()
        self.groups, self.pending, self._waiting_groups = {}, (), []
        self.groups_changed += 1

    def settle(self, high_watermark: int) -> None:
        """Let that count which is below the high watermark."""
        self.commits.settle(high_watermark)
        if not self._waiting_groups:
            return
        waiting = []
        for group in self._waiting_groups:
            if group.effective_offset >= high_watermark:
                waiting.append(group)
            elif group.removed:
                self.groups_changed += self.groups.pop(group.group, None) is not None
            else:
                self.groups[group.group] = group
                self.groups_changed += 1
        self._waiting_groups = waiting


def last_of_each(keys: Longs) -> NDArray[np.intp]:
    """The index of the last row of each key, ascending."""
    _, from_the_end = np.unique(keys[::-1], return_index=True)
    last: NDArray[np.intp] = np.sort(len(keys) - 1 - from_the_end)
    return last


def concatenated(parts: list[CommitColumns]) -> CommitColumns:
    """The rows of all, one after the other."""
    if not parts:
        return CommitColumns.none()
    return CommitColumns(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(CommitColumns)))
