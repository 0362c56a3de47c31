"""The largest timestamps of closed segments that took a scan of the whole segment. They are kept, because a closed file does not change."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from streaming.broker.disk.segment_files import Segment


class SegmentKey(NamedTuple):
    """Distinguishes a closed segment from every other one: compaction puts another file under the same name."""

    base_offset: int
    size: int
    modified_ms: int
    device: int
    inode: int

    @classmethod
    def of(cls, segment: Segment) -> "SegmentKey":
        """The key of a segment from a listing."""
        return cls(segment.base_offset, segment.size, segment.modified_ms, segment.identity.device, segment.identity.inode)


class ScannedTimes:
    """The timestamps by segment (Unix milliseconds, -1 none), and the changes since they were last stored."""

    def __init__(self, times: Mapping[SegmentKey, int] | None = None) -> None:
        self._times = dict(times or {})
        self._changed: set[SegmentKey] = set()

    def get(self, key: SegmentKey) -> int | None:
        """The result for a segment, None if it was not scanned."""
        return self._times.get(key)

    def put(self, key: SegmentKey, largest_timestamp: int) -> None:
        """Note the result of a scan."""
        self._times[key] = largest_timestamp
        self._changed.add(key)

    def drop(self, keys: Iterable[SegmentKey]) -> None:
        """Remove these segments, because they no longer exist."""
        for key in keys:
            if self._times.pop(key, None) is not None:
                self._changed.add(key)

    def keep_only(self, keys: set[SegmentKey]) -> None:
        """Remove all other segments, because they no longer exist."""
        self.drop([key for key in self._times if key not in keys])

    def changes(self) -> tuple[list[tuple[SegmentKey, int]], list[SegmentKey]]:
        """The added and the removed entries since the last call."""
        found = [(key, self._times[key]) for key in self._changed if key in self._times]
        gone = [key for key in self._changed if key not in self._times]
        self._changed.clear()
        return found, gone
