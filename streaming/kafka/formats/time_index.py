"""The sparse time index `.timeindex` (`TimeIndex`): entries of `timestamp i64, relative_offset i32`, big-endian, 12 bytes each.

An entry means: the largest timestamp of the segment up to here is `timestamp` (Unix milliseconds), and it first occurs in the batch that
ends at `base_offset + relative_offset` (before Kafka 3.7 possibly in that very record). The last entry of an inactive segment is the
largest timestamp of the whole segment, which retention uses. The index of an active segment is preallocated, and may have stale entries
after the valid ones (`AbstractIndex.truncateToEntries` forgets entries without erasing them).
"""

from dataclasses import dataclass
from struct import Struct

import numpy as np
from numpy.typing import NDArray

ENTRY_BYTES = 12

_ENTRY = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
_FEW = Struct(">qi")


@dataclass(frozen=True, slots=True)
class TimeEntries:
    """The plausible entries of a time index in order; `offsets` are relative to the segment's base."""

    timestamps: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.timestamps)


def read_time_entries(data: bytes | memoryview) -> TimeEntries:
    """The entries up to the first one that cannot follow the one before it: timestamps grow, offsets do not fall.

    Zeros of a preallocated file are no entry; bytes after the last complete entry are ignored. The result is plausible, but not proven: a
    stale entry may still look right.
    """
    entries = np.frombuffer(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES], _ENTRY)
    timestamps, offsets = entries["timestamp"].astype(np.int64), entries["offset"].astype(np.int64)
    following = (timestamps >= 0) & (offsets >= 0)
    following[:1] &= (timestamps[:1] > 0) | (offsets[:1] > 0)
    following[1:] &= (timestamps[1:] > timestamps[:-1]) & (offsets[1:] >= offsets[:-1])
    stop = len(entries) if following.all() else int(np.argmin(following))
    return TimeEntries(timestamps[:stop], offsets[:stop])


def unpack_time_entries(data: bytes) -> list[tuple[int, int]]:
    """A few whole entries as they are: (timestamp, relative offset)."""
    return list(_FEW.iter_unpack(data))
