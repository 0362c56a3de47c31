"""What lies between the committed offsets of groups and the log starts: lost once no consumer has it in memory, and no crash of the broker
brings it back.

Consumers fetch ahead of what they process, so what is deleted may be processed and committed later. A commit that goes on below the log
start shows that. A consumer with nothing left goes on at the log start of that moment: so a commit that passes a log start by far more than
the group reads in that time has jumped there, also where the log start is further on by now, as a client may fetch far ahead of its
program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.common.arrays import Longs
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.groups.group_rows import GroupFacts
from streaming.kafka.groups.group_states import GroupState

NOBODY, WHO_COMMITS, MEMBERS = range(3)
"""Who may have fetched what is deleted: no consumer, a client that is seen to move the commit, or the members that a group has."""

_TIMES_FASTER, _LEAST_SECONDS = 2, 10
"""What is this much more than a group reads in that time, it has not read; in so many seconds, where it is known by its rate alone."""

_FEW_MOVES, _MOST_MOVES = 3, 9
"""A pace is the median of so many moves that have passed no log start; the largest of them is usual, too."""

_MOST_PIECES = 100


@dataclass(slots=True)
class Piece:
    """What one move of a log start has passed: up to ``end``."""

    end: int
    records: int  # `ABSENT` if they are not counted
    told: bool  # they count as lost, or were deleted before the first poll


@dataclass(slots=True)
class BelowStart:
    """One commit below the log start: ``begin``, with ``pieces`` up to the log start."""

    begin: int
    pieces: list[Piece] = field(default_factory=list)
    moves: list[tuple[int, float]] = field(default_factory=list)  # the last ones that passed no log start, in offsets and seconds

    @property
    def end(self) -> int:
        """Up to where deletions are known."""
        return self.pieces[-1].end if self.pieces else self.begin

    @property
    def records(self) -> int:
        """All that is deleted after the commit, `ABSENT` where some of it is not counted."""
        return _sum(self.pieces)

    @property
    def is_open(self) -> bool:
        """Whether it is not known of some of that whether it is lost."""
        return any(not each.told and each.records for each in self.pieces)

    def delete(self, end: int, records: int, *, told: bool) -> None:
        """The log begins later. Deletions that are told of are one piece: no commit jumps into it."""
        last = self.pieces[-1] if self.pieces else None
        if last is not None and ((last.told and told) or len(self.pieces) >= _MOST_PIECES):
            self.pieces[-1] = Piece(end, _sum([last, Piece(end, records, told)]), last.told and told)
        else:
            self.pieces.append(Piece(end, records, told))

    def move(self, offset: int, log_start: int, pace: Pace | None, step: Step) -> None:
        """The commit moves. ``pace``: None if no poll saw it move."""
        if offset < self.begin:
            self.pieces.insert(0, Piece(self.begin, ABSENT, told=True))
        passed = [each for each in self.pieces if each.end <= offset]
        reads, far = (0, False) if pace is None or offset < self.begin else self._judged(offset, log_start, pace)
        if pace is not None and offset > self.begin and not passed:
            self.moves = [*self.moves[1 - _MOST_MOVES :], (offset - self.begin, pace.seconds)]
        step.jumped = far and bool(passed)
        if step.jumped:
            before = self.begin + reads - (offset - passed[-1].end)  # so far it has read in the rest of that time
            if self.begin < before < passed[0].end:
                self._read(passed[0], before, step)
                self.begin = before
        for each in passed:
            if far:
                step.lose(each, self.begin)
            else:
                self._read(each, each.end, step)
            self.begin = each.end
        self.pieces = self.pieces[len(passed) :]
        if self.pieces and offset > self.begin:
            self._read(self.pieces[0], offset, Step() if far and self.pieces[0].told else step)
        self.begin = offset

    def give_up(self, upto: int, step: Step) -> None:
        """No consumer has any of what is before an offset, and no crash brings it back."""
        gone = [each for each in self.pieces if each.end <= upto]
        begin = self.begin
        for each in gone:
            step.lose(each, begin)
            begin = each.end
        self.pieces = [*([Piece(begin, _sum(gone), told=True)] if gone else []), *self.pieces[len(gone) :]]

    def take_back(self, log_start: int) -> list[Piece]:
        """The log begins earlier than it did; returns what is not known to be deleted any more."""
        known = [each for each in self.pieces if each.end <= log_start]
        back, self.pieces = self.pieces[len(known) :], known
        return back

    def _read(self, piece: Piece, upto: int, step: Step) -> None:
        """A piece is read up to an offset. Where there are fewer records than offsets, it is not known which of them are left."""
        read, left = upto - self.begin, piece.end - upto
        if piece.records >= 0 and (not left or piece.records == read + left):
            step.read_records += 0 if piece.told else piece.records - left
            step.read_offsets += read if piece.told else 0
            piece.records = left
        else:
            step.read_offsets += read
            piece.records = ABSENT if piece.records else 0

    def _judged(self, offset: int, log_start: int, pace: Pace) -> tuple[int, bool]:
        """How many records the group reads in that time, 0 if that is not known, and whether it cannot have read up to an offset. Who has
        committed nothing for longer than usual has not read all that time. Without a pace it has, if that is below the log start.
        """
        speed, seconds, most = pace.rate, pace.seconds, float(_LEAST_SECONDS)
        usual = speed * max(seconds, _LEAST_SECONDS)
        if len(self.moves) >= _FEW_MOVES:
            speed = median(moved / max(each, 1.0) for moved, each in self.moves)
            seconds = most = min(seconds, median(each for _, each in self.moves) + pace.looked)
            usual = max(speed * seconds, *(moved for moved, _ in self.moves))
        far = offset - self.begin > _TIMES_FASTER * usual if usual > 0 else offset >= log_start
        return round(speed * min(seconds, most)), far


def _sum(pieces: Sequence[Piece]) -> int:
    """The records of some pieces, `ABSENT` where some of them are not counted."""
    return ABSENT if any(each.records < 0 for each in pieces) else sum(each.records for each in pieces)


class Pace(NamedTuple):
    """Records a second that a group reads, 0 if that is not known; seconds since its commit last moved, and since it was last looked at."""

    rate: float
    seconds: float
    looked: float


@dataclass(slots=True)
class Step:
    """What has become of what was deleted. ``offsets``: where records are not counted; ``jumped``: the commit has left out some."""

    lost_records: int = 0
    lost_offsets: int = 0
    read_records: int = 0
    read_offsets: int = 0
    jumped: bool = False

    def lose(self, piece: Piece, begin: int) -> None:
        """A whole piece is lost, unless that is told already."""
        if not piece.told:
            self.lost_records += max(piece.records, 0)
            self.lost_offsets += piece.end - begin if piece.records < 0 else 0


def holders(rows: CommitRows, groups: Mapping[str, GroupFacts], queries: Mapping[str, object]) -> Longs:
    """Who may have fetched what comes after each commit. A share group hands out again what is not done, and a query reads in runs."""

    def of(name: str) -> int:
        facts = groups.get(name)
        if name in queries or (facts is not None and facts.members == 0 and facts.epoch > 0 and facts.state == GroupState.EMPTY):
            return NOBODY
        return MEMBERS if facts is not None and facts.members > 0 else WHO_COMMITS

    of_group = np.array([of(name) for name in rows.group_names], np.int64)
    return np.where(rows.share, NOBODY, of_group[rows.group] if len(rows) else 0)


def kept_pieces(below: BelowStart) -> list[int]:
    """The pieces as a list of numbers, three of each."""
    return [number for each in below.pieces for number in (each.end, each.records, int(each.told))]


def recalled_pieces(begin: int, numbers: Sequence[int]) -> BelowStart:
    """The same, from such a list."""
    triples = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    return BelowStart(begin, [Piece(end, records, bool(told)) for end, records, told in triples])
