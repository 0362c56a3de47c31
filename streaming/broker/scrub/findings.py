"""The findings of a scrub in a log dir: damaged and unreadable segments, until they are gone or pass the check."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.disk.segment_files import SegmentKey
from streaming.kafka.scan.soundness import Damage

log = logging.getLogger(__name__)

MOST_SEGMENTS = 1_000
"""The most segments of a log dir that are remembered: if there are more, the disk itself is broken."""

MOST_PLACES = 20
"""The most damaged positions of a segment that are listed; the others are only counted."""


@dataclass(frozen=True, slots=True)
class FoundSegment:
    """A segment with ``batches`` damaged positions, the first of them in ``damages``; or with the ``error`` of reading it."""

    path: Path
    key: SegmentKey
    damages: tuple[Damage, ...] = ()
    batches: int = 0
    error: str = ""

    def with_damages(self, more: Iterable[Damage]) -> "FoundSegment":
        """The same segment with more damaged positions."""
        more = tuple(more)
        return FoundSegment(self.path, self.key, (*self.damages, *more)[:MOST_PLACES], self.batches + len(more), self.error)


class Findings:
    """All findings of one log dir. For one thread.

    Args:
        there: whether the file of a segment is still at its path.
    """

    def __init__(self, there: Callable[[FoundSegment], bool], segments: Iterable[FoundSegment] = ()) -> None:
        self._there = there
        self._segments = {each.path: each for each in segments}

    @property
    def segments(self) -> tuple[FoundSegment, ...]:
        """The damaged and unreadable segments, sorted by path."""
        return tuple(self._segments[path] for path in sorted(self._segments))

    def of(self, path: Path, key: SegmentKey) -> FoundSegment:
        """The finding of a segment; an empty one if only another file of that name has a finding."""
        segment = self._segments.get(path)
        return segment if segment is not None and segment.key == key else FoundSegment(path, key)

    def note(self, segment: FoundSegment, *, whole: bool) -> None:
        """Store the findings of a check so far. ``whole``: the check is finished. Each damaged position is logged once."""
        before = self.of(segment.path, segment.key)
        for damage in segment.damages:
            if damage not in before.damages:
                log.error(
                    "a closed segment is damaged",
                    extra={
                        "path": str(segment.path),
                        "position": damage.position,
                        "offset": damage.offset,
                        "fault": str(damage.fault),
                    },
                )
        if segment.error and not before.error:
            log.error("a closed segment cannot be read", extra={"path": str(segment.path), "error": segment.error})
        if not whole and segment.batches < before.batches:  # a repeated check has not reached all known damage yet
            return
        if not segment.batches and not segment.error:
            self._forget(segment.path, "a segment that was damaged, or could not be read, passes the check")
        elif segment.path in self._segments or len(self._segments) < MOST_SEGMENTS:
            self._segments[segment.path] = segment

    def sweep(self) -> None:
        """Forget segments that are gone: deleted, compacted, truncated, or on another disk."""
        for segment in self.segments:
            if not self._there(segment):
                self._forget(segment.path, "a segment that was damaged, or could not be read, is gone")

    def _forget(self, path: Path, why: str) -> None:
        if self._segments.pop(path, None) is not None:
            log.warning(why, extra={"path": str(path)})
