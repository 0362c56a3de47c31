"""What is shown of committed offsets that were moved: those of a day that nobody has taken back, and what all of them add up to."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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


def shown(moves: Iterable[FoundMove], now_ms: int) -> Iterator[FoundMove]:
    """Of some moves, in the order of the log, those that somebody should know: of a day, not taken back, and with records between."""
    of_row: dict[int, list[FoundMove]] = {}
    for each in moves:
        of_row.setdefault(each.row, []).append(each)
    for _, some in sorted(of_row.items()):
        left = {id(move) for move in not_taken_back(each.move for each in some)}
        for each in some:
            there = each.amount != Amount() and now_ms - each.move.at_ms <= LOST_LATELY_MS
            if there and id(each.move) in left and is_notable(each.move, each.kind):
                yield each
