"""What two inventories of a log, one after the other, tell: which segments were rolled since, and which were deleted."""

import logging
from dataclasses import replace

from streaming.errors import FormatError
from streaming.facts import decode_segments
from streaming.rules.log_state import LogState

log = logging.getLogger(__name__)


def listed(state: LogState, facts: bytes | None) -> LogState:
    """With other facts. Segments are counted by their base offsets, so that the same inventory, or an older one, may come again.

    Rolls count from the segment on in which reading began, as bytes do.

    Only a prefix of a log is ever deleted by retention: what vanishes from its middle was compacted.
    """
    if facts is None or facts == state.facts:
        return state
    try:
        bases = [int(base) for base in decode_segments(facts)["base_offset"]]
        known = [] if state.facts is None else [int(base) for base in decode_segments(state.facts)["base_offset"]]
    except FormatError as error:
        log.error("an inventory is not understood", extra={"log": f"{state.topic}-{state.partition}", "error": str(error)})
        return state
    if not bases:
        return replace(state, facts=facts)
    first, newest = bases[0], bases[-1]
    seen = state.newest_segment >= 0
    rolled = sum(base > state.newest_segment for base in bases) if seen else 0
    return replace(
        state,
        facts=facts,
        segments_rolled=state.segments_rolled + rolled,
        segments_deleted=state.segments_deleted + sum(state.deleted_below <= base < first for base in known),  # nothing is known at first
        newest_segment=max(state.newest_segment, newest),
        deleted_below=max(state.deleted_below, first),
    )
