"""Compares two successive inventories of a log: which segments were rolled since, and which were deleted."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from streaming.common.rows import SEGMENTS
from streaming.rules.log_state import LogState

log = logging.getLogger(__name__)


def listed(state: LogState, segments: bytes | None) -> LogState:
    """The log with another list of `SEGMENTS`.

    Segments are counted by their base offsets, so the same inventory, or an older one, may come again.

    Rolls are counted from the segment on in which reading began, as bytes are.

    Retention only deletes the first segments of a log. Segments that vanish from its middle were compacted.
    """
    if segments is None or segments == state.segments:
        return state
    if len(segments) % SEGMENTS.itemsize:
        log.error("an inventory is not understood", extra={"log": f"{state.topic}-{state.partition}"})
        return state
    bases, before = _bases(segments), _bases(state.segments or b"")
    if not bases:
        return replace(state, segments=segments)
    first, newest = bases[0], bases[-1]
    seen = state.newest_segment >= 0
    rolled = sum(base > state.newest_segment for base in bases) if seen else 0
    return replace(
        state,
        segments=segments,
        segments_rolled=state.segments_rolled + rolled,
        segments_deleted=state.segments_deleted + sum(state.deleted_below <= base < first for base in before),  # nothing is known at first
        newest_segment=max(state.newest_segment, newest),
        deleted_below=max(state.deleted_below, first),
    )


def _bases(segments: bytes) -> list[int]:
    found: list[int] = np.frombuffer(segments, SEGMENTS)["base_offset"].tolist()
    return found


def difference(before: bytes, after: bytes) -> Difference:
    """The difference of two lists of one log, of which neither is empty; nothing of a list that is not understood.

    Segments that vanish from the middle were compacted. A list whose last segment is earlier is of a log that was cut off.
    """
    if not before or not after or len(before) % SEGMENTS.itemsize or len(after) % SEGMENTS.itemsize:
        return Difference(b"", b"")
    first, later = np.frombuffer(before, SEGMENTS), np.frombuffer(after, SEGMENTS)
    rolled = later[later["base_offset"] > first["base_offset"][-1]]
    deleted = first[first["base_offset"] < later["base_offset"][0]]
    return Difference(rolled.tobytes(), deleted.tobytes())


@dataclass(frozen=True, slots=True)
class Difference:
    """What happened between two lists, as `SEGMENTS`: ``rolled``: those that were begun, ``deleted``: those that retention took."""

    rolled: bytes
    deleted: bytes


def ends_before(segments: bytes | None, newest: int) -> bool:
    """Whether a list of `SEGMENTS` has none from the base offset ``newest`` on."""
    if not segments or len(segments) % SEGMENTS.itemsize:
        return False
    return _bases(segments)[-1] < newest
