"""Committed offsets that were moved, and not by reading: which commits are such moves, by whom, and which of them to tell an operator of.

A commit on disk has no generation (`OffsetCommitValue`). But a coordinator accepts none without a generation while a group has members
(`ClassicGroup.validateOffsetCommit`, `ConsumerGroup.validateOffsetCommit`): so a commit in a group that its own record says to be
empty comes from an admin client, or from a consumer that assigns partitions to itself. A hand does that once or twice, a program goes on.

A reader moves forwards, so a step forwards is a move only in a group that had members and is empty.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from itertools import takewhile

from streaming.common.column_types import Int, Long, Text

log = logging.getLogger(__name__)

MOST_BY_HAND = 3
"""Commits of one partition while its group is empty; if there are more, a program makes them."""

INTERVALS = 10
"""A consumer that goes back further than so many of its own commit intervals did not only repeat what it had not committed in time."""

MOST_OF_GROUP, MOST_OF_LOG = 4_096, 8_192
"""So many moves are kept; of more, those go first that need no words, the oldest first."""

KEPT_MS = 25 * 3_600_000
"""For so long a move is kept: what is said of it is said for a day, and a job may be away for a while."""


class MovedOffsets:
    """The moves by the names of groups. ``left_out``: how many were not kept, because there were too many."""

    def __init__(self) -> None:
        self.left_out = 0
        self._of: dict[str, list[NotedMove]] = {}
        self._empty: dict[int, _Emptiness] = {}  # by row
        self._count = 0

    def committed(self, row: int, epoch: int) -> tuple[int, bool]:
        """A partition of an empty group is committed: how often now, and whether what is known of its moves changes by that.

        Args:
            epoch: of the group since it is empty.
        """
        empty = self._empty.get(row)
        if empty is None or empty.epoch != epoch:
            empty = self._empty[row] = _Emptiness(epoch)
        empty.commits += 1
        return empty.commits, 1 < empty.commits <= MOST_BY_HAND + 1

    def add(self, group: str, row: int, move: OffsetMove) -> None:
        """A move, later than all others of its group."""
        emptiness = self._empty.get(row) if move.presence == GroupPresence.LEFT else None
        noted = self._of.setdefault(group, [])
        old = sum(1 for _ in takewhile(lambda each: each.move.at_ms < move.at_ms - KEPT_MS, noted))
        full = len(noted) - old >= MOST_OF_GROUP or self._count - old >= MOST_OF_LOG
        del noted[:old]
        self._count -= old
        if full:
            self.left_out += 1
            if self.left_out == 1:
                log.warning(
                    "offsets are moved so often that not all moves are kept: what is counted of them is too low", extra={"group": group}
                )
            if not noted:
                return
            plain = (at for at, each in enumerate(noted) if not is_notable(each.now, kind_of(each.now, from_beyond=False)))
            del noted[next(plain, 0)]
            self._count -= 1
        noted.append(NotedMove(move, emptiness))
        self._count += 1

    def end(self, group: str, topic: str, partition: int) -> bool:
        """What was committed of a partition is deleted, or of an earlier topic: that ends its history. Returns whether it had moves."""
        before = self._of.get(group)
        if before is None:
            return False
        self._of[group] = [each for each in before if (each.move.topic, each.move.partition) != (topic, partition)]
        self._count -= len(before) - len(self._of[group])
        return len(self._of[group]) < len(before)

    def newest(self, group: str) -> NotedMove | None:
        """The last move of a group."""
        noted = self._of.get(group)
        return noted[-1] if noted else None

    def of(self, group: str) -> list[OffsetMove]:
        """The moves of a group, in the order of the log."""
        return [each.now for each in self._of.get(group, ())]

    def keep(self, groups: Collection[str], rows: Mapping[int, int]) -> None:
        """Forget all groups but these; rows have got other numbers, or are gone."""
        self._of = {name: moves for name, moves in self._of.items() if name in groups}
        self._count = sum(map(len, self._of.values()))
        self._empty = {rows[row]: empty for row, empty in self._empty.items() if row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetMove:
    """A commit that moved a partition's offset from ``before`` to ``offset``.

    ``before_ms``, ``at_ms``: when either was committed, by the coordinator, Unix milliseconds. ``record_offset``, ``effective_offset``: as
    in `COMMITS`. ``presence``: a `GroupPresence`. ``commits``: of the partition since the group is empty, as far as they are known by now;
    0 of one that is not. ``step``: the largest of its last steps forwards from one commit to the next, 0 not known.
    """

    topic: Text
    topic_id: Text
    partition: Int
    before: Long
    offset: Long
    before_ms: Long
    at_ms: Long
    record_offset: Long
    effective_offset: Long
    presence: Int
    commits: Long = 0
    step: Long = 0

    @property
    def forwards(self) -> bool:
        """Whether offsets were skipped; else they will be read again."""
        return self.offset > self.before


@dataclass(slots=True)
class _Emptiness:
    """Since a group is empty: its epoch, and the commits of one partition."""

    epoch: int
    commits: int = 0


@dataclass(frozen=True, slots=True)
class NotedMove:
    """A move as it was when it was made, and the group's emptiness at that time.

    The moves of committed offsets in one coordinator's log, while that is replayed: a bounded number, those of the last day.
    """

    move: OffsetMove
    emptiness: _Emptiness | None

    @property
    def now(self) -> OffsetMove:
        """The move with what came after it."""
        return self.move if self.emptiness is None else replace(self.move, commits=self.emptiness.commits)


class GroupPresence(IntEnum):
    """Who is in a group when an offset of it is committed, by the group's own records."""

    NEVER = 0  # it has none: the client that commits assigns partitions to itself, or is no consumer
    LEFT = 1  # it had members, and is empty
    THERE = 2  # it has members, or nothing shows that it has none


def is_notable(move: OffsetMove, kind: MoveKind) -> bool:
    """Whether an operator should know of a move, besides that it is counted."""
    if kind is MoveKind.EXTERNAL or not counts(move, kind):
        return False
    return kind is not MoveKind.CONSUMER or 0 < INTERVALS * move.step < move.before - move.offset


class MoveKind(StrEnum):
    """By whom a committed offset was moved."""

    ADMIN = "admin"  # by hand: kafka-consumer-groups.sh --reset-offsets, Admin.alterConsumerGroupOffsets
    RESET = "reset"  # back from beyond the end of the log, where a consumer's reset policy has to decide
    CONSUMER = "consumer"  # by a member: it has sought, or commits again what was committed before
    EXTERNAL = "external"  # by a program beside the group: a mirror's sync of offsets, Flink, assign()


def counts(move: OffsetMove, kind: MoveKind) -> bool:
    """Whether a move is counted. A program that commits one offset after the other goes forwards as a reader does."""
    return not move.forwards or kind is MoveKind.ADMIN


def kind_of(move: OffsetMove, *, from_beyond: bool) -> MoveKind:
    """By whom an offset was moved.

    Args:
        from_beyond: the offset before was beyond the end of the log: that is certain of none that is not.
    """
    if move.presence == GroupPresence.NEVER or (move.presence == GroupPresence.LEFT and move.commits > MOST_BY_HAND):
        return MoveKind.EXTERNAL
    if move.presence == GroupPresence.LEFT:
        return MoveKind.ADMIN
    return MoveKind.RESET if from_beyond and not move.forwards else MoveKind.CONSUMER


def not_taken_back(moves: Iterable[OffsetMove]) -> list[OffsetMove]:
    """Those moves of one partition by hand, in their order, that a later one has not taken back.

    An offset that is set back to where it was skipped from, or before, has skipped nothing; nor was it set back, if it is where it was.
    One that was set back from where its group had read to has skipped nothing either, as long as it does not go forwards beyond that.
    """
    left: list[OffsetMove] = []
    skipped = False  # what lies before the offset has not all been read
    for move in moves:
        if move.forwards and not skipped and left and move.offset <= left[-1].before and left[-1].presence != GroupPresence.THERE:
            if move.offset == left[-1].before:
                left.pop()
            continue
        skipped |= move.forwards
        back = False
        while left and not move.forwards and left[-1].forwards and move.offset <= left[-1].before:
            back |= left[-1].before == move.offset
            left.pop()
        if not back:
            left.append(move)
    return left
