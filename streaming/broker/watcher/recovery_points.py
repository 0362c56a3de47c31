"""Up to where each watched log is known to be on disk: its recovery point, and how much of its segment lies below that."""

import logging
from collections.abc import Collection, Sequence

from streaming.broker.disk.locate import start_near
from streaming.broker.watcher.offset_checkpoints import Checkpoints
from streaming.broker.watcher.tail import Tail

log = logging.getLogger(__name__)

Point = tuple[int, int]
"""A recovery point and its position, as in `RecoveryPositions.of`."""

MOST_LOOKUPS = 100
"""So many positions are looked up in indexes between two calls of `RecoveryPositions.begin`; until then all of a segment counts."""


class RecoveryPositions:
    """Recovery points of logs, with their positions: each is looked up once. Only the watcher's thread uses it.

    ``version``: it changes whenever `of` returns something else of a log that may be read. ``unsettled``: logs whose position could not be
    looked up yet, with their recovery point; they are to be asked for again.
    """

    def __init__(self, checkpoints: Checkpoints) -> None:
        self._checkpoints = checkpoints
        self.version = 0
        self.unsettled: dict[Tail, int] = {}
        self._found: dict[Tail, Point] = {}
        self._left = MOST_LOOKUPS

    def begin(self, tails: Collection[Tail]) -> None:
        """Allow so many lookups again, and forget all logs but these."""
        self._left = MOST_LOOKUPS
        if len(self._found) + len(self.unsettled) > len(tails):
            there = set(tails)
            self._found = {tail: point for tail, point in self._found.items() if tail in there}
            self.unsettled = {tail: offset for tail, offset in self.unsettled.items() if tail in there}

    def of(self, tails: Sequence[Tail]) -> list[Point]:
        """The recovery point of each log as `OffsetCheckpoint.of_all` has it, and so many bytes of its segment lie below it, at least.

        Kafka flushes a segment when it rolls, so mostly the recovery point is where the active segment begins.
        """
        points: list[Point] = []
        for tail, offset in zip(tails, self._checkpoints.recovery_points([tail.partition for tail in tails]), strict=True):
            found = self._found.get(tail)
            points.append(found if found is not None and found[0] == offset else self._look_up(tail, offset))
        return points

    def _look_up(self, tail: Tail, offset: int) -> Point:
        if tail.away:
            return offset, 0
        position: int | None = 0
        if offset > 0 and all(each.base_offset != offset for each in tail.segments[-2:]):
            position = self._find(tail, offset)
        if position is None:
            self._found.pop(tail, None)
            self.version += self.unsettled.get(tail) != offset
            self.unsettled[tail] = offset
            return offset, 0
        self.unsettled.pop(tail, None)
        self._found[tail] = offset, position
        self.version += 1
        return offset, position

    def _find(self, tail: Tail, offset: int) -> int | None:
        cursor = tail.cursor
        if offset == cursor.next_offset and not tail.has_later_segment:
            return cursor.position
        held = [each for each in tail.segments if each.base_offset <= offset]
        if not held or not self._left:
            return None
        self._left -= 1
        try:
            with held[-1].open() as file:
                return start_near(file, offset)[0]
        except OSError as error:  # rolled, deleted or compacted since: the next look finds another file
            log.debug("the position of a recovery point is not known", extra={"path": tail.path, "error": str(error)})
            return None
