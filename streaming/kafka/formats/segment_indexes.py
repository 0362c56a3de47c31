"""The indexes of a segment: the sparse ones of offsets and times, plausible but never proven, and that of aborted transactions."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from streaming.errors import FormatError

OFFSET_ENTRY_BYTES = 8

_ENTRY = Struct(">ii")

TIME_ENTRY_BYTES = 12

_TIME_ENTRY = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
_FEW = Struct(">qi")

_TRANSACTION_ENTRY = Struct(">hqqqq")
TRANSACTION_ENTRY_BYTES = _TRANSACTION_ENTRY.size

ABORTED = np.dtype(
    [("version", ">i2"), ("producer_id", ">i8"), ("first_offset", ">i8"), ("last_offset", ">i8"), ("last_stable_offset", ">i8")]
)
"""An entry as a numpy record. Its fields are those of `AbortedTransaction`."""


def read_aborted_transactions(data: bytes | memoryview) -> tuple[tuple[AbortedTransaction, ...], int]:
    """The complete entries, and their size in bytes: the rest is the beginning of an entry that is not complete yet.

    Raises:
        FormatError: an entry has a version that is not known; with the position.
    """
    used = len(data) // TRANSACTION_ENTRY_BYTES * TRANSACTION_ENTRY_BYTES
    found: list[AbortedTransaction] = []
    for version, *fields in _TRANSACTION_ENTRY.iter_unpack(data[:used]):
        if version != 0:
            raise FormatError(f"aborted transaction of version {version}", len(found) * TRANSACTION_ENTRY_BYTES)
        found.append(AbortedTransaction(*fields))
    return tuple(found), used


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """An aborted transaction of one partition that has data there.

    The index of aborted transactions `.txnindex` (`TransactionIndex`, `AbortedTxn`), in the segment that holds the ABORT marker.
    Layout of an entry, big-endian, 34 bytes: `version i16 (0), producer_id i64, first_offset i64, last_offset i64, last_stable_offset
    i64`. Entries are appended in the order of `last_offset`; there is no checksum and no preallocation.

    `first_offset` may be in an earlier segment, `last_offset` is the marker's; `last_stable_offset` is the LSO after the marker.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def read_offset_entries(data: bytes | memoryview, after_position: int = 0) -> OffsetEntries:
    """Read entries up to the first one that cannot follow the one before it (offset and position must both grow).

    The sparse offset index ``.index`` (`OffsetIndex`): entries of ``relative_offset i32, position i32``. Since Kafka 2.0 an entry
    ``(o, p)`` means that the entry of the ``.log`` at ``p`` ends at offset ``base + o`` or before. The first entry of a segment is
    never indexed, so position 0 means "end of the entries". The index of an active segment is preallocated and may have stale entries
    after the valid ones.

    The result is plausible, but not proven: a stale entry may still look right.
    """
    whole = len(data) // OFFSET_ENTRY_BYTES * OFFSET_ENTRY_BYTES
    pairs = np.frombuffer(data[:whole], ">i4").reshape(-1, 2).astype(np.int64)
    offsets, positions = pairs[:, 0], pairs[:, 1]
    growing = np.empty(len(pairs), bool)
    growing[:1] = positions[:1] > after_position
    growing[1:] = (positions[1:] > positions[:-1]) & (offsets[1:] > offsets[:-1])
    stop = len(pairs) if growing.all() else int(np.argmin(growing))
    return OffsetEntries(offsets[:stop], positions[:stop])


@dataclass(frozen=True, slots=True)
class OffsetEntries:
    """The plausible entries of an index in order: ``offsets`` relative to the segment's base, ``positions`` in its ``.log``."""

    offsets: NDArray[np.int64]
    positions: NDArray[np.int64]


def unpack_offset_entry(data: bytes) -> tuple[int, int]:
    """One entry as it is: (relative offset, position); zeros if it is cut off."""
    offset, position = _ENTRY.unpack(data) if len(data) == OFFSET_ENTRY_BYTES else (0, 0)
    return offset, position


def read_time_entries(data: bytes | memoryview) -> TimeEntries:
    """The entries up to the first one that cannot follow the one before it: timestamps grow, offsets do not fall.

    The sparse time index `.timeindex` (`TimeIndex`): entries of `timestamp i64, relative_offset i32`, big-endian, 12 bytes each. An
    entry means: the largest timestamp of the segment up to here is `timestamp` (Unix milliseconds), and it first occurs in the batch
    that ends at `base_offset + relative_offset` (before Kafka 3.7 possibly in that very record). The last entry of an inactive
    segment is the largest timestamp of the whole segment, which retention uses. The index of an active segment is preallocated, and
    may have stale entries after the valid ones (`AbstractIndex.truncateToEntries` forgets entries without erasing them).

    Zeros of a preallocated file are no entry; bytes after the last complete entry are ignored. The result is plausible, but not proven: a
    stale entry may still look right.
    """
    entries = np.frombuffer(data[: len(data) // TIME_ENTRY_BYTES * TIME_ENTRY_BYTES], _TIME_ENTRY)
    timestamps, offsets = entries["timestamp"].astype(np.int64), entries["offset"].astype(np.int64)
    following = (timestamps >= 0) & (offsets >= 0)
    following[:1] &= (timestamps[:1] > 0) | (offsets[:1] > 0)
    following[1:] &= (timestamps[1:] > timestamps[:-1]) & (offsets[1:] >= offsets[:-1])
    stop = len(entries) if following.all() else int(np.argmin(following))
    return TimeEntries(timestamps[:stop], offsets[:stop])


@dataclass(frozen=True, slots=True)
class TimeEntries:
    """The plausible entries of a time index in order; `offsets` are relative to the segment's base."""

    timestamps: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.timestamps)


def unpack_time_entries(data: bytes) -> list[tuple[int, int]]:
    """A few whole entries as they are: (timestamp, relative offset)."""
    return list(_FEW.iter_unpack(data))


def read_aborted_columns(data: bytes) -> NDArray[np.void]:
    """The complete entries as records of `ABORTED`, for an index that may have many of them. Raises as `read_aborted_transactions` does."""
    entries = np.frombuffer(data[: len(data) // TRANSACTION_ENTRY_BYTES * TRANSACTION_ENTRY_BYTES], ABORTED)
    other = np.flatnonzero(entries["version"])
    if len(other):
        raise FormatError(f"aborted transaction of version {entries['version'][other[0]]}", int(other[0]) * TRANSACTION_ENTRY_BYTES)
    return entries
