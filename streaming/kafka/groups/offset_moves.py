"""Committed offsets that were moved, and not by reading: which commits are such moves, by whom, and which of them somebody should know.

A commit on disk has no generation (`OffsetCommitValue`). But a coordinator takes one without a generation from nobody while a group has
members (`ClassicGroup.validateOffsetCommit`, `ConsumerGroup.validateOffsetCommit`): so a commit in a group that its own record says to be
empty comes from an admin client, or from a consumer that assigns partitions to itself. A hand does that once or twice, a program goes on.

Who reads moves forwards, so a step forwards is a move only in a group that had members and is empty.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

MOST_BY_HAND = 3
"""Commits of one partition while its group is empty; if there are more, a program makes them."""

INTERVALS = 10
"""A consumer that goes back further than so many of its own commit intervals did not only repeat what it had not committed in time."""


class GroupPresence(IntEnum):
    """Who is in a group when an offset of it is committed, by the group's own records."""

    NEVER = 0  # it has none: whoever commits assigns partitions to itself, or is no consumer
    LEFT = 1  # it had members, and is empty
    THERE = 2  # it has members, or nothing shows that it has none


class MoveKind(StrEnum):
    """By whom a committed offset was moved."""

    ADMIN = "admin"  # by hand: kafka-consumer-groups.sh --reset-offsets, Admin.alterConsumerGroupOffsets
    RESET = "reset"  # back from beyond the end of the log, where a consumer's reset policy has to decide
    CONSUMER = "consumer"  # by a member: it has sought, or commits again what was committed before
    EXTERNAL = "external"  # by a program beside the group: a mirror's sync of offsets, Flink, assign()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetMove:
    """A commit that moved a partition's offset from ``before`` to ``offset``.

    ``before_ms``, ``at_ms``: when either was committed, by the coordinator, Unix milliseconds. ``record_offset``, ``effective_offset``: as
    in `COMMITS`. ``presence``: a `GroupPresence`. ``commits``: of the partition since the group is empty, as far as they are known by now;
    0 of one that is not. ``step``: the largest of its last steps forwards from one commit to the next, 0 not known.
    """

    topic: str
    topic_id: str
    partition: int
    before: int
    offset: int
    before_ms: int
    at_ms: int
    record_offset: int
    effective_offset: int
    presence: int
    commits: int = 0
    step: int = 0

    @property
    def forwards(self) -> bool:
        """Whether offsets were skipped; else they will be read again."""
        return self.offset > self.before


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


def counts(move: OffsetMove, kind: MoveKind) -> bool:
    """Whether a move is counted. A program that commits one offset after the other goes forwards as a reader does."""
    return not move.forwards or kind is MoveKind.ADMIN


def is_notable(move: OffsetMove, kind: MoveKind) -> bool:
    """Whether somebody should know of a move, besides that it is counted."""
    if kind is MoveKind.EXTERNAL or not counts(move, kind):
        return False
    return kind is not MoveKind.CONSUMER or 0 < INTERVALS * move.step < move.before - move.offset


def not_taken_back(moves: Iterable[OffsetMove]) -> list[OffsetMove]:
    """Of the moves of one partition by hand, in their order, those that were not taken back by a later one.

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
