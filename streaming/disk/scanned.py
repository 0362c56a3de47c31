"""Largest timestamps of closed segments that took a scan of the whole segment: remembered, for a file that is closed does not change."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from streaming.disk.segments import Segment


class SegmentKey(NamedTuple):
    """What tells a closed segment from every other one: compaction puts another file under the same name."""

    base_offset: int
    size: int
    modified_ms: int
    device: int
    inode: int

    @classmethod
    def of(cls, segment: Segment) -> "SegmentKey":
        """That of a segment as it was listed."""
        return cls(segment.base_offset, segment.size, segment.modified_ms, segment.identity.device, segment.identity.inode)


class ScannedTimes:
    """The timestamps by segment (Unix milliseconds, -1 none), and what has changed of them since somebody kept them last."""

    def __init__(self, kept: Mapping[SegmentKey, int] | None = None) -> None:
        self._known = dict(kept or {})
        self._changed: set[SegmentKey] = set()

    def get(self, key: SegmentKey) -> int | None:
        """What was found in a segment, None where it was not scanned."""
        return self._known.get(key)

    def put(self, key: SegmentKey, largest_timestamp: int) -> None:
        """A segment was scanned."""
        self._known[key] = largest_timestamp
        self._changed.add(key)

    def drop(self, keys: Iterable[SegmentKey]) -> None:
        """These segments are no more."""
        for key in keys:
            if self._known.pop(key, None) is not None:
                self._changed.add(key)

    def keep_only(self, keys: set[SegmentKey]) -> None:
        """There are no other segments than these."""
        self.drop([key for key in self._known if key not in keys])

    def changes(self) -> tuple[list[tuple[SegmentKey, int]], list[SegmentKey]]:
        """What was found and what is no more since this was asked last."""
        found = [(key, self._known[key]) for key in self._changed if key in self._known]
        gone = [key for key in self._changed if key not in self._known]
        self._changed.clear()
        return found, gone
