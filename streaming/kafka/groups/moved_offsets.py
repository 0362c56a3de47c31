"""The moves of committed offsets in one coordinator's log, while that is replayed: a bounded number, those of the last day."""

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

from streaming.kafka.groups.offset_moves import MOST_BY_HAND, GroupPresence, OffsetMove, is_notable, kind_of

log = logging.getLogger(__name__)

MOST_OF_GROUP, MOST_OF_LOG = 4_096, 8_192
"""So many moves are kept; of more, those go first that need no words, the oldest first."""

KEPT_MS = 25 * 3_600_000
"""For so long a move is kept: what is said of it is said for a day, and a job may be away for a while."""


@dataclass(slots=True)
class _Emptiness:
    """Since a group is empty: its epoch, and the commits of one partition."""

    epoch: int
    commits: int = 0


@dataclass(frozen=True, slots=True)
class NotedMove:
    """A move as it was when it was made, and the group's emptiness at that time."""

    move: OffsetMove
    emptiness: _Emptiness | None

    @property
    def now(self) -> OffsetMove:
        """The move with what came after it."""
        return self.move if self.emptiness is None else replace(self.move, commits=self.emptiness.commits)


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
            self._leave_out(group)
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

    def rows(self, group: str) -> list[dict[str, object]]:
        """The same as rows of the column ``moves`` of `GROUPS`."""
        return [{name: getattr(each, name) for name in OffsetMove.__slots__} for each in self.of(group)]

    def keep(self, groups: Collection[str], rows: Mapping[int, int]) -> None:
        """Forget all groups but these; rows have got other numbers, or are gone."""
        self._of = {name: moves for name, moves in self._of.items() if name in groups}
        self._count = sum(map(len, self._of.values()))
        self._empty = dict(self._moved(rows))

    def _moved(self, rows: Mapping[int, int]) -> Iterator[tuple[int, _Emptiness]]:
        return ((rows[row], empty) for row, empty in self._empty.items() if row in rows)

    def _leave_out(self, group: str) -> None:
        self.left_out += 1
        if self.left_out == 1:
            log.warning(
                "offsets are moved so often that not all moves are kept: what is counted of them is too low", extra={"group": group}
            )
