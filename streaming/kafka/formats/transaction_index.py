"""The index of aborted transactions `.txnindex` (`TransactionIndex`, `AbortedTxn`), in the segment that holds the ABORT marker.

Layout of an entry, big-endian, 34 bytes: `version i16 (0), producer_id i64, first_offset i64, last_offset i64, last_stable_offset i64`.
Entries are appended in the order of `last_offset`; there is no checksum and no preallocation.
"""

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.errors import FormatError

_ENTRY = struct.Struct(">hqqqq")
ENTRY_BYTES = _ENTRY.size

ABORTED = np.dtype(
    [("version", ">i2"), ("producer_id", ">i8"), ("first_offset", ">i8"), ("last_offset", ">i8"), ("last_stable_offset", ">i8")]
)
"""An entry as a numpy record. Its fields are those of `AbortedTransaction`."""


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """An aborted transaction of one partition that has data there.

    `first_offset` may be in an earlier segment, `last_offset` is the marker's; `last_stable_offset` is the LSO after the marker.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def read_aborted_transactions(data: bytes | memoryview) -> tuple[tuple[AbortedTransaction, ...], int]:
    """The complete entries, and their size in bytes: the rest is the beginning of an entry that is not complete yet.

    Raises:
        FormatError: an entry has a version that is not known; with the position.
    """
    used = len(data) // ENTRY_BYTES * ENTRY_BYTES
    found: list[AbortedTransaction] = []
    for version, *fields in _ENTRY.iter_unpack(data[:used]):
        if version != 0:
            raise FormatError(f"aborted transaction of version {version}", len(found) * ENTRY_BYTES)
        found.append(AbortedTransaction(*fields))
    return tuple(found), used


def read_aborted_columns(data: bytes) -> NDArray[np.void]:
    """The complete entries as records of `ABORTED`, for an index that may have many of them. Raises as `read_aborted_transactions` does."""
    entries = np.frombuffer(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES], ABORTED)
    other = np.flatnonzero(entries["version"])
    if len(other):
        raise FormatError(f"aborted transaction of version {entries['version'][other[0]]}", int(other[0]) * ENTRY_BYTES)
    return entries
