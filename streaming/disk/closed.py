"""The largest timestamps of a log's closed segments, each looked up once: a file that is closed does not change any more."""

import logging
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from streaming.disk.active import ActiveRead, covers
from streaming.disk.largest import indexed_largest, is_there, scanned_largest
from streaming.disk.segments import Identity, Segment
from streaming.kafka.walk import Bytes

log = logging.getLogger(__name__)

# Hundreds of thousands of segments are remembered: some bytes each. The first five tell a file from every other one, because compaction
# puts another under the same name; `indexed_at` is where a time index that is only believed puts the largest timestamp, else -1.
_KNOWN = np.dtype(
    [(name, "<i8") for name in ("base_offset", "size", "modified_ms", "device", "inode", "largest_timestamp", "indexed_at")],
)
_IDENTIFYING = 5


class ClosedSegments:
    """What is known of them.

    Args:
        directory: that of the log.
        thorough: check every time index at once, not only when asked to.
    """

    def __init__(self, directory: Path, *, thorough: bool) -> None:
        self.wrong = 0
        """Time indexes that disagreed with their segment, so far."""
        self._directory = directory
        self._thorough = thorough
        self._known = np.empty(0, _KNOWN)
        self._unchecked = 0

    def take(self, segments: Sequence[Segment], active: ActiveRead | None, buffer: Bytes) -> None:
        """Take in a listing, whose last segment is the active one; ``active`` is what was read of the one that was it before.

        Raises:
            OSError: a segment cannot be read.
        """
        before = {row[:_IDENTIFYING]: row[_IDENTIFYING:] for row in self._known.tolist()}
        rows = []
        for segment, following in pairwise(segments):
            key = (segment.base_offset, segment.size, segment.modified_ms, segment.identity.device, segment.identity.inode)
            found = before.get(key)
            rows.append((*key, *(_find(segment, following.base_offset, active, buffer) if found is None else found)))
        self._known = np.array(rows, _KNOWN)
        self._unchecked = int(np.count_nonzero(self._known["indexed_at"] >= 0))
        while self._thorough and self._unchecked:
            self.check_one(buffer)

    def rows(self) -> list[tuple[int, int, int, int]]:
        """Base offset, size, largest timestamp (Unix milliseconds, -1 none) and time of the file, of each."""
        known = self._known
        columns = (known[name].tolist() for name in ("base_offset", "size", "largest_timestamp", "modified_ms"))
        return list(zip(*columns, strict=True))

    def segments(self) -> list[Segment]:
        """The segments as they were listed."""
        return [self._segment(row) for row in self._known]

    def check_one(self, buffer: Bytes) -> bool:
        """Hold one time index that is only believed against its segment; returns whether that changed anything.

        Raises:
            OSError: the segment cannot be read.
        """
        if not self._unchecked:
            return False
        row = self._known[int(np.flatnonzero(self._known["indexed_at"] >= 0)[-1]) :][0]
        segment, believed = self._segment(row), int(row["largest_timestamp"])
        right = is_there(segment, believed, int(row["indexed_at"]))
        found = believed if right else scanned_largest(segment, buffer)
        row["largest_timestamp"], row["indexed_at"] = found, -1
        self._unchecked -= 1
        if not right:
            self.wrong += 1
            log.warning(
                "time index disagrees with its segment, which counts",
                extra={"path": str(segment.path), "time_index_ms": believed, "segment_ms": found},
            )
        return found != believed

    def _segment(self, row: np.void) -> Segment:
        base_offset, size, modified_ms, device, inode = (int(row[name]) for name in _KNOWN.names[:_IDENTIFYING])  # type: ignore[index]
        return Segment(base_offset, self._directory, False, size, modified_ms, Identity(device, inode))


def _find(segment: Segment, next_base: int, active: ActiveRead | None, buffer: Bytes) -> tuple[int, int]:
    """The largest timestamp of a segment, and where its time index puts it if that is only believed, else -1."""
    if segment.size == 0:
        return -1, -1
    if active is not None and covers(active, segment):
        return active.largest_timestamp, -1
    indexed = indexed_largest(segment, next_base)
    return (scanned_largest(segment, buffer), -1) if indexed is None else indexed
