"""Where each scrub of a log dir is, and what it has found."""

import json
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from streaming.broker.disk.segment_files import SegmentKey
from streaming.common.whole_files import write_whole
from streaming.kafka.scan.soundness import Damage, Fault

log = logging.getLogger(__name__)

MOST_SEGMENTS = 1_000
"""The most segments of a log dir that are remembered: if there are more, the disk itself is broken."""

MOST_PLACES = 20
"""The most damaged positions of a segment that are listed; the others are only counted."""

_VERSION = 1


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubProgress:
    """The progress of the scrub of one log dir.

    ``began_ms``, ``ended_ms``: when the last pass began, and when a pass ended last (Unix milliseconds, -1 never). ``running``: a pass is
    not finished. ``directory``: the directory of the current log. ``behind``: the base offset of the last checked segment of that log, -1
    none; the stored file has this name. ``key``, ``position``: the segment that is being checked, if any, and its first byte to check
    next. ``checked``: the bytes that were ever checked.
    """

    directory_id: str | None = None
    began_ms: int = -1
    ended_ms: int = -1
    running: bool = False
    directory: str = ""
    behind: int = -1
    key: SegmentKey | None = None
    position: int = 0
    checked: int = 0
    found: Sequence[FoundSegment] = field(default=())


class Findings:
    """All findings of one log dir. Only one thread uses it.

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


def load(path: Path) -> ScrubProgress:
    """Load the stored progress; that of a new scrub if there is no file, or it is not understood."""
    try:
        fields = json.loads(path.read_bytes())
        if fields.pop("version") != _VERSION:
            raise ValueError("it is of another version")
        key = fields.pop("key")
        return ScrubProgress(
            **{name: value for name, value in fields.items() if name in ScrubProgress.__slots__ and name != "found"},
            key=None if key is None else SegmentKey(*key),
            found=tuple(
                FoundSegment(
                    Path(each["path"]),
                    SegmentKey(*each["key"]),
                    tuple(Damage(Fault(fault), position, offset) for fault, position, offset in each["damages"]),
                    each["batches"],
                    each["error"],
                )
                for each in fields["found"]
            ),
        )
    except FileNotFoundError:
        return ScrubProgress()
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        log.warning("progress of the scrub cannot be read: the scrub begins anew", extra={"path": str(path), "error": str(error)})
        return ScrubProgress()


def store(path: Path, progress: ScrubProgress) -> None:
    """Store the progress. The file is always whole: it is the old one or the new one. Raises OSError."""
    fields = {name: getattr(progress, name) for name in ScrubProgress.__slots__} | {
        "version": _VERSION,
        "found": [_found(each) for each in progress.found],
    }
    write_whole(path, json.dumps(fields).encode())


def _found(segment: FoundSegment) -> dict[str, Any]:
    return {
        "path": os.fspath(segment.path),
        "key": list(segment.key),
        "damages": [[str(damage.fault), damage.position, damage.offset] for damage in segment.damages],
        "batches": segment.batches,
        "error": segment.error,
    }


def file_of(directory: Path, log_dir: Path) -> Path:
    """The file for a log dir, in the directory of the cache."""
    return directory / f"scrub-{blake2b(bytes(log_dir), digest_size=8).hexdigest()}.json"
