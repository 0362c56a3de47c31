"""What is shown of committed offsets that were moved: those of a day that nobody has taken back, and what all of them add up to."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from streaming.cluster.consumers.lost_lately import LOST_LATELY_MS
from streaming.kafka.groups.offset_moves import GroupPresence, MoveKind, OffsetMove, is_notable, not_taken_back

ONE_OFF_MS = 180_000
"""A commit in an empty group after which no program has gone on for so long was made by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Records, and besides them offsets whose records were not counted."""

    records: int = 0
    offsets: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(records=self.records + other.records, offsets=self.offsets + other.offsets)


class PairKind(NamedTuple):
    """What is added up: the moves of one kind and direction, of a pair of group and topic by its number."""

    pair: int
    kind: MoveKind
    forwards: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMove:
    """A move of the commit ``row``, and what lies between its offsets, as far as it is in the log."""

    row: int
    move: OffsetMove
    kind: MoveKind
    amount: Amount

    def is_settled(self, now_ms: int) -> bool:
        """Whether it will not turn out to be the first commit of a program."""
        return self.move.presence != GroupPresence.LEFT or now_ms - self.move.at_ms >= ONE_OFF_MS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moved:
    """``shown``: what somebody should know, in the order of the commits and then of time. ``amounts``: totals; they only grow."""

    shown: tuple[FoundMove, ...] = ()
    amounts: Mapping[PairKind, Amount] = field(default_factory=dict)


NOTHING_MOVED = Moved()


def _joined(moves: Iterable[FoundMove]) -> list[FoundMove]:
    """The moves of a partition; those by hand of which each begins where the one before has ended are one: nobody has read between them.

    They are none if the last one has ended where the first began.
    """
    runs: list[list[FoundMove]] = []
    for each in moves:
        before = runs[-1][-1] if runs else None
        if before is not None and before.kind is each.kind is MoveKind.ADMIN and before.move.offset == each.move.before:
            runs[-1].append(each)
        else:
            runs.append([each])
    return [_net(run) for run in runs if len(run) == 1 or run[0].move.before != run[-1].move.offset]


def _net(run: Sequence[FoundMove]) -> FoundMove:
    """What some moves amount to."""
    if len(run) == 1:
        return run[0]
    move = replace(run[-1].move, before=run[0].move.before, before_ms=run[0].move.before_ms)
    if any(each.amount.offsets for each in run):
        return replace(run[-1], move=move, amount=Amount(offsets=abs(move.offset - move.before)))
    there = sum(each.amount.records if each.move.forwards == move.forwards else -each.amount.records for each in run)
    return replace(run[-1], move=move, amount=Amount(records=max(there, 0)))


def shown(moves: Iterable[FoundMove], now_ms: int) -> Iterator[FoundMove]:
    """Of some moves, in the order of the log, those that somebody should know: of a day, not taken back, and with records between.

    Those by hand that follow each other are shown as one.
    """
    of_row: dict[int, list[FoundMove]] = {}
    for each in moves:
        of_row.setdefault(each.row, []).append(each)
    for _, all_of_row in sorted(of_row.items()):
        some = _joined(all_of_row)
        left = {id(move) for move in not_taken_back(each.move for each in some)}
        for each in some:
            there = each.amount != Amount() and now_ms - each.move.at_ms <= LOST_LATELY_MS
            if there and id(each.move) in left and is_notable(each.move, each.kind):
                yield each
