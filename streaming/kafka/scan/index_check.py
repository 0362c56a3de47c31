"""Checks which entries of a sparse index are proven by the log itself (`OffsetIndex`, `TimeIndex`, `DumpLogSegments`).

The index of an active segment may have stale entries after the valid ones, which look right by themselves. A valid offset entry (o, p)
points to a batch at position p. The meaning of o depends on the version: the end of that batch (Kafka 4.1, or an index that recovery made),
the end of the append that begins with it (2.0 to 4.0), or the beginning of the batch (before 2.0). A valid time entry names the batch that
has its timestamp.
"""

import numpy as np
from numpy.typing import NDArray

from streaming.kafka.formats.offset_index import OffsetEntries
from streaming.kafka.formats.time_index import TimeEntries
from streaming.kafka.scan.headers import Batches


def proven_offset_entries(entries: OffsetEntries, base_offset: int, batches: Batches) -> NDArray[np.bool_]:
    """For each entry, whether the log proves it.

    Args:
        base_offset: of the segment.
        batches: all batches of the segment, with `positions` in its file.
    """
    if not len(batches):
        return np.zeros(len(entries.offsets), bool)
    offsets = entries.offsets + base_offset
    at = _clipped(np.searchsorted(batches.positions, entries.positions), batches)
    ends = _clipped(np.searchsorted(batches.last_offset, offsets), batches)
    ends_there = (batches.last_offset[ends] == offsets) & (ends >= at)
    proven: NDArray[np.bool_] = (batches.positions[at] == entries.positions) & (ends_there | (batches.base_offset[at] == offsets))
    return proven


def proven_time_entries(entries: TimeEntries, base_offset: int, batches: Batches) -> NDArray[np.bool_]:
    """For each entry, whether the log proves it. For the arguments see `proven_offset_entries`."""
    if not len(batches):
        return np.zeros(len(entries), bool)
    offsets = entries.offsets + base_offset
    item = _clipped(np.searchsorted(batches.last_offset, offsets), batches)
    inside = (batches.base_offset[item] <= offsets) & (offsets <= batches.last_offset[item])
    proven: NDArray[np.bool_] = inside & (batches.max_timestamp[item] == entries.timestamps)
    return proven


def _clipped(items: NDArray[np.intp], batches: Batches) -> NDArray[np.intp]:
    return np.minimum(items, len(batches) - 1)
