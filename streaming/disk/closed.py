"""The largest timestamps of a log's closed segments, each looked up once: a file that is closed does not change any more."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from streaming.disk.active import ActiveRead, covers
from streaming.disk.largest import indexed_largest, is_there, scanned_largest
from streaming.disk.segments import Segment
from streaming.kafka.walk import Bytes

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Largest:
    """A largest timestamp; ``offset`` is where the time index puts it, -1 where that need not be checked (any more)."""

    timestamp: int
    offset: int = -1


class ClosedSegments:
    """What is known of them. A file is known by its identity, name, size and time: compaction puts another one under the same name.

    Args:
        thorough: check every time index at once, not only when asked to.
    """

    def __init__(self, *, thorough: bool) -> None:
        self.wrong = 0
        """Time indexes that disagreed with their segment, so far."""
        self._thorough = thorough
        self._largest: dict[Segment, _Largest] = {}
        self._unchecked: list[Segment] = []

    def take(self, segments: Sequence[Segment], active: ActiveRead | None, buffer: Bytes) -> None:
        """Take in a listing, whose last segment is the active one; ``active`` is what was read of the one that was it before.

        Raises:
            OSError: a segment cannot be read.
        """
        before, self._largest = self._largest, {}
        for segment, following in pairwise(segments):
            known = before.get(segment)
            self._largest[segment] = self._find(segment, following.base_offset, active, buffer) if known is None else known
        self._unchecked = [segment for segment, found in self._largest.items() if found.offset >= 0]
        while self._thorough and self._unchecked:
            self.check_one(buffer)

    def largest(self, segment: Segment) -> int:
        """The largest timestamp of one of the segments that were taken in, Unix milliseconds, -1 where it has none."""
        return self._largest[segment].timestamp

    def check_one(self, buffer: Bytes) -> bool:
        """Hold one time index that is only believed against its segment; returns whether that changed anything.

        Raises:
            OSError: the segment cannot be read.
        """
        if not self._unchecked:
            return False
        segment = self._unchecked.pop()
        believed = self._largest[segment]
        if is_there(segment, believed.timestamp, believed.offset):
            self._largest[segment] = _Largest(believed.timestamp)
            return False
        found = scanned_largest(segment, buffer)
        self._largest[segment] = _Largest(found)
        self.wrong += 1
        log.warning(
            "time index disagrees with its segment, which counts",
            extra={"path": str(segment.path), "time_index_ms": believed.timestamp, "segment_ms": found},
        )
        return found != believed.timestamp

    @staticmethod
    def _find(segment: Segment, next_base: int, active: ActiveRead | None, buffer: Bytes) -> _Largest:
        if segment.size == 0:
            return _Largest(-1)
        if active is not None and covers(active, segment):
            return _Largest(active.largest_timestamp)
        indexed = indexed_largest(segment, next_base)
        return _Largest(scanned_largest(segment, buffer)) if indexed is None else _Largest(*indexed)
