"""The commits and groups of a cluster as columns, with names by small numbers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.kafka.groups.group_rows import REMOVED, GroupFacts, PendingCommit

Numbers = NDArray[np.int32]

_PARTITION_BITS = 32
_PARTITIONS = (1 << _PARTITION_BITS) - 1
_NO_TOPIC = "\n"  # before the id of a topic whose name is not known; no name contains it

LogName = tuple[str, int]
"""`__consumer_offsets` or `__share_group_state`, and the partition."""


class CommitKeys:
    """Numbers for groups, topics, topic ids and pairs of group and topic. A pair's number is never given to another one."""

    def __init__(self) -> None:
        self.groups, self.topic_ids = NumberedNames(), NumberedNames()
        self._topics = NumberedNames()
        self._pairs: dict[int, int] = {}  # by the numbers of group and topic, ascending
        self._next_pair = 0

    def __len__(self) -> int:
        return len(self._pairs)

    @property
    def topics(self) -> list[str]:
        """The names of topics by their numbers; "" where only the id is known."""
        return ["" if name.startswith(_NO_TOPIC) else name for name in self._topics.names]

    def keys(self, commits: pa.RecordBatch) -> Longs:
        """The keys of rows of `COMMITS`. Rows without a topic's name are distinguished by its id."""
        topics = numbered(commits["topic"], self._topics)
        for row in np.flatnonzero(topics == self._topics.find("")).tolist():
            topics[row] = self._topics.number(_NO_TOPIC + commits["topic_id"][row].as_py())
        packed = numbered(commits["group"], self.groups).astype(np.int64) << _PARTITION_BITS | topics
        distinct, rows = np.unique(packed, return_inverse=True)
        pairs = np.array([self._pair(one) for one in distinct.tolist()], np.int64)
        partitions = np.asarray(commits["partition"], np.int32).astype(np.int64) & _PARTITIONS
        keys: Longs = (pairs[rows] << _PARTITION_BITS | partitions) if len(packed) else np.empty(0, np.int64)
        return keys

    def parts(self, keys: Longs) -> tuple[Numbers, Numbers, Numbers]:
        """What keys consist of: numbers of groups and topics, and partitions."""
        pairs, packed = (np.fromiter(each, np.int64, len(self)) for each in (self._pairs.values(), self._pairs.keys()))
        packed = packed[np.searchsorted(pairs, keys >> _PARTITION_BITS)]
        return (
            (packed >> _PARTITION_BITS).astype(np.int32),
            (packed & _PARTITIONS).astype(np.int32),
            (keys & _PARTITIONS).astype(np.uint32).view(np.int32),
        )

    def keep(self, keys: Longs) -> None:
        """Forget the groups that none of some keys is of, and give new numbers to the others; the numbers of topics and pairs stay."""
        live, groups = set(np.unique(keys >> _PARTITION_BITS).tolist()), NumberedNames()
        pairs = [(packed, pair) for packed, pair in self._pairs.items() if pair in live]
        self._pairs = {
            groups.number(self.groups.names[packed >> _PARTITION_BITS]) << _PARTITION_BITS | packed & _PARTITIONS: pair
            for packed, pair in pairs
        }
        self.groups = groups

    def _pair(self, packed: int) -> int:
        pair = self._pairs.get(packed, -1)
        if pair < 0:
            pair = self._pairs[packed] = self._next_pair
            self._next_pair += 1
        return pair


class NumberedNames:
    """Numbers count from 0 in the order in which the names come."""

    __slots__ = ("_numbers", "names")

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def find(self, name: str) -> int:
        """The number of a name, -1 if it has none."""
        return self._numbers.get(name, -1)

    def number(self, name: str) -> int:
        """The number of a name, which gets one if it has none."""
        found = self._numbers.get(name, -1)
        if found < 0:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found


def numbered(texts: pa.Array, names: NumberedNames) -> Numbers:
    """The numbers of the names in a column."""
    encoded = texts.dictionary_encode()
    numbers = np.array([names.number(name) for name in encoded.dictionary.to_pylist()], np.int32)
    return numbers[np.asarray(encoded.indices)] if len(texts) else np.empty(0, np.int32)


def named(names: list[str], numbers: Numbers) -> pa.Array:
    """The names of some numbers, as a column."""
    if 2 * len(numbers) > len(names):
        return pa.array(names, pa.string()).take(pa.array(numbers))
    return pa.array([names[number] for number in numbers.tolist()], pa.string())


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

    Names by small numbers, so that columns of them take four bytes a row; and keys of commits as single numbers. A key is the number
    of a pair of group and topic, times 2^32, plus the partition. Many are found at once by it.

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
    resumed: Longs
    moved_ms: Longs
    presence: Longs
    done: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def removed(cls, keys: Iterable[int] = ()) -> "CommitColumns":
        """Keys that have no commit."""
        key = np.array(keys, np.int64)
        found: dict[str, Any] = {each.name: np.full_like(key, -1) for each in fields(CommitColumns)}
        found |= {"key": key, "topic_id": np.zeros(len(key), np.int32), "offset": np.full_like(key, REMOVED)}
        return CommitColumns(**{**found, "done": np.full(len(key), None)})

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
    """All that counts, sorted by ``key``; it does not change.

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
