"""Up to where each watched log is known to be on disk: its recovery point, and how much of its segment lies below that."""

import logging

from streaming.broker.disk.locate import start_near
from streaming.broker.disk.segment_files import OpenSegment
from streaming.broker.watcher.offset_checkpoints import Checkpoints
from streaming.broker.watcher.tail import Tail

log = logging.getLogger(__name__)

Point = tuple[int, int]
"""A recovery point and its position, as in `RecoveryPositions.of`."""

MOST_LOOKUPS = 100
"""So many positions are looked up in indexes between two calls of `RecoveryPositions.begin`; until then all of a segment counts."""


class RecoveryPositions:
    """Recovery points of logs, with their positions: found once for each version of the checkpoint. Only the watcher's thread uses it."""

    def __init__(self, checkpoints: Checkpoints) -> None:
        self._checkpoints = checkpoints
        self._version = -1
        self._found: dict[Tail, Point] = {}
        self._before: dict[Tail, Point] = {}  # by the version before
        self._left = MOST_LOOKUPS

    def begin(self) -> None:
        """Take over what brokers have written since, and allow so many lookups again."""
        self._left = MOST_LOOKUPS
        if self._version != self._checkpoints.recovery_version:
            self._version = self._checkpoints.recovery_version
            self._before, self._found = self._found, {}

    def of(self, tail: Tail) -> Point:
        """The recovery point of a log as in `OffsetCheckpoint.of`, and so many bytes of the segment that holds it lie below it, at least.

        Kafka flushes a segment when it rolls, so mostly the recovery point is where the active segment begins.
        """
        found = self._found.get(tail)
        if found is not None and not tail.away:
            return found
        offset, before = self._checkpoints.recovery_point(tail.partition), self._before.get(tail)
        position: int | None = 0
        if before is not None and before[0] == offset:
            position = before[1]
        elif offset > 0 and not tail.away and all(each.base_offset != offset for each in tail.segments[-2:]):
            position = self._find(tail, offset)
        if position is not None and not tail.away:
            self._found[tail] = offset, position
        return offset, position or 0

    def _find(self, tail: Tail, offset: int) -> int | None:
        cursor = tail.cursor
        if offset == cursor.next_offset and not tail.has_later_segment:
            return cursor.position
        held = [each for each in tail.segments if each.base_offset <= offset]
        if not held or not self._left:
            return None
        self._left -= 1
        try:
            file = OpenSegment(held[-1].path, held[-1].base_offset)
            try:
                return start_near(file, offset)[0]
            finally:
                file.close()
        except OSError as error:  # rolled, deleted or compacted since: the next look finds another file
            log.debug("the position of a recovery point is not known", extra={"path": tail.path, "error": str(error)})
            return None
