"""The sparse offset index ``.index`` (`OffsetIndex`): entries of ``relative_offset i32, position i32``.

Since Kafka 2.0 an entry ``(o, p)`` means that the entry of the ``.log`` at ``p`` ends at offset ``base + o`` or before. The first entry of
a segment is never indexed, so position 0 means "end of the entries". The index of an active segment is preallocated and may have stale
entries after the valid ones.
"""

from dataclasses import dataclass
from struct import Struct

import numpy as np
from numpy.typing import NDArray

ENTRY_BYTES = 8

_ENTRY = Struct(">ii")


@dataclass(frozen=True, slots=True)
class OffsetEntries:
    """The plausible entries of an index in order: ``offsets`` relative to the segment's base, ``positions`` in its ``.log``."""

    offsets: NDArray[np.int64]
    positions: NDArray[np.int64]


def read_offset_entries(data: bytes | memoryview, after_position: int = 0) -> OffsetEntries:
    """Read entries up to the first one that cannot follow the one before it (offset and position must both grow).

    The result is plausible, but not proven: a stale entry may still look right.
    """
    whole = len(data) // ENTRY_BYTES * ENTRY_BYTES
    pairs = np.frombuffer(data[:whole], ">i4").reshape(-1, 2).astype(np.int64)
    offsets, positions = pairs[:, 0], pairs[:, 1]
    growing = np.empty(len(pairs), bool)
    growing[:1] = positions[:1] > after_position
    growing[1:] = (positions[1:] > positions[:-1]) & (offsets[1:] > offsets[:-1])
    stop = len(pairs) if growing.all() else int(np.argmin(growing))
    return OffsetEntries(offsets[:stop], positions[:stop])


def unpack_offset_entry(data: bytes) -> tuple[int, int]:
    """One entry as it is: (relative offset, position); zeros if it is cut off."""
    offset, position = _ENTRY.unpack(data) if len(data) == ENTRY_BYTES else (0, 0)
    return offset, position
