"""What the replays of all coordinators' logs have in common, and which groups they follow."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from streaming.common.log_key import LogKey
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes

MOST_REMEMBERED = 100_000
"""So many groups that were left out are distinguished; if there are more, no further group is followed."""

FORGET_AT_LEAST = 64
"""So many deletions at least are kept before what is deleted is forgotten."""


class _Numbered(Protocol):
    """A record with its offset in the log."""

    @property
    def record_offset(self) -> int: ...


_Record = TypeVar("_Record", bound=_Numbered)


class LogReplay(ABC, Generic[_Record]):
    """The replay of one log, from its first byte up to ``upto``.

    A log that was truncated, or cleaned before it was read on, is replayed from its first byte, by another replay with another
    ``edition``; `close` gives back what the first one took of the limit. One thread at a time uses it.
    """

    def __init__(self, log: LogKey, edition: str, limit: GroupLimit) -> None:
        self.log = log
        self.edition = edition
        self.upto = 0
        self.version = 0
        self.unreadable = 0
        self._groups = FollowedGroups(limit)
        self._deleted = 0  # deletions since deleted rows were last forgotten
        self._forgotten = 0  # the version of that moment: who is further back has to get everything

    @property
    def omitted(self) -> int:
        """The number of groups that are left out because of the limit."""
        return self._groups.omitted

    def replay(self, records: Records[_Record], upto: int) -> None:
        """Apply the records of the range that ends before ``upto``. Those that were applied already are left out."""
        stamp, changed = self.version + 1, False
        for record in records.records:
            if record.record_offset >= self.upto:
                changed |= self._apply(record, stamp)
        self.unreadable += records.unreadable
        self.advance(upto)
        if changed:
            self.version = stamp
            self._forget_deleted()

    def read(self, batches: Batches, buffer: Bytes) -> Callable[[], None]:
        """Parse the sound batches of the next range, and return what applies them: parsing takes most of the time, and changes nothing."""
        records, upto = self._parse(batches, buffer), int(batches.last_offset[-1]) + 1
        return lambda: self.replay(records, upto)

    def advance(self, upto: int) -> None:
        """There is nothing left before ``upto``: it was cleaned or deleted."""
        self.upto = max(self.upto, upto)

    def changes(self, after: int) -> GroupChanges:
        """What changed since version ``after``, 0 for everything."""
        whole = after < max(self._forgotten, 1)
        commits, pending, groups = self._tables(0 if whole else after)
        return GroupChanges(
            broker=self.log.broker,
            topic=self.log.topic,
            topic_id=self.log.topic_id,
            coordinator=self.log.partition,
            edition=self.edition,
            version=self.version,
            whole=whole,
            upto=self.upto,
            commits=commits,
            pending=pending,
            groups=groups,
            unreadable=self.unreadable,
            omitted=self.omitted,
        )

    @property
    def groups(self) -> int:
        """The number of groups that take room of the limit."""
        return self._groups.followed

    def replace(self, other: LogReplay[Any]) -> None:
        """Stand for another one from now on, and take of its limit what it gives back."""
        self._groups.replace(other._groups)

    def close(self) -> None:
        """Give back what it took of the limit."""
        self._groups.close()

    @abstractmethod
    def _parse(self, batches: Batches, buffer: Bytes) -> Records[_Record]:
        """The records in the sound batches of a range."""

    @abstractmethod
    def _apply(self, record: _Record, stamp: int) -> bool:
        """Apply one record, as version ``stamp``; returns whether anything changed."""

    @abstractmethod
    def _tables(self, after: int) -> tuple[pa.RecordBatch, pa.RecordBatch, pa.RecordBatch]:
        """The commits and the groups that changed after a version, 0 for all; between them everything that is pending."""

    @abstractmethod
    def _forget_deleted(self) -> None:
        """Once as many were deleted as there are, keep nothing of what is deleted."""


class GroupLimit:
    """The number of groups that all replays of a process may follow together, on any threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0
        self._lock = threading.Lock()

    @property
    def reached(self) -> bool:
        """Whether there is no room for another group."""
        return self.used >= self.most

    def beside(self, groups: int) -> GroupLimit:
        """The limit of a replay that may take the room that another one has by now for so many groups."""
        return GroupLimit(self.most - self.used + groups)

    def enter(self, groups: int = 1) -> None:
        """Take the room of so many groups."""
        with self._lock:
            self.used += groups

    def leave(self, groups: int = 1) -> None:
        """Give back the room of so many groups."""
        with self._lock:
            self.used -= groups


class FollowedGroups:
    """The groups of one replay by small numbers. A group takes room as long as it has something that is held for it.

    Which groups a replay follows: as many as the limit allows, first come first served; the others are counted. A group that was left
    out stays so until its log is read from the beginning again, for commits of it are missing by then.
    """

    def __init__(self, limit: GroupLimit) -> None:
        self.names: list[str] = []
        self._limit = limit
        self._numbers: dict[str, int] = {}
        self._held = array("i")
        self._left_out: set[int] = set()

    @property
    def omitted(self) -> int:
        """How many groups were left out, at most `MOST_REMEMBERED`."""
        return len(self._left_out)

    def find(self, name: str) -> int:
        """The number of a group that was followed before, -1 if it was not."""
        return self._numbers.get(name, -1)

    def follow(self, name: str) -> int:
        """The number of a group for which something will be held, -1 if it is left out."""
        number = self._numbers.get(name, -1)
        if number >= 0 and self._held[number]:
            return number
        if hash(name) in self._left_out or len(self._left_out) >= MOST_REMEMBERED:
            return -1
        if self._limit.reached:
            self._left_out.add(hash(name))
            return -1
        if number < 0:
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
            self._held.append(0)
        return number

    def hold(self, number: int) -> None:
        """One more thing is held for the group that `follow` has just returned."""
        if not self._held[number]:
            self._limit.enter()
        self._held[number] += 1

    def let_go(self, number: int) -> None:
        """One thing less is held for it."""
        self._held[number] -= 1
        if not self._held[number]:
            self._limit.leave()

    def deleted(self, name: str) -> None:
        """A group's own record was deleted: if it was left out, it no longer counts."""
        self._left_out.discard(hash(name))

    def compact(self) -> dict[int, int]:
        """Give new numbers to the groups for which something is held, and none to the others; by the numbers of before."""
        numbers = [number for number, held in enumerate(self._held) if held]
        self.names = [self.names[number] for number in numbers]
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._held = array("i", [self._held[number] for number in numbers])
        return {before: number for number, before in enumerate(numbers)}

    @property
    def followed(self) -> int:
        """How many groups take room."""
        return sum(held > 0 for held in self._held)

    def replace(self, others: FollowedGroups) -> None:
        """Take the room that the others give back."""
        others.close()
        self._limit = others._limit
        self._limit.enter(self.followed)

    def close(self) -> None:
        """Give back the room that they take."""
        self._limit.leave(self.followed)


_Read = TypeVar("_Read", bound=_Numbered, covariant=True)


class Records(Protocol[_Read]):
    """The records of a range in order, and how many others could not be read."""

    @property
    def records(self) -> tuple[_Read, ...]: ...

    @property
    def unreadable(self) -> int: ...
