"""The head of every entry of a ``.log``: its layout, fields and checksum, whatever its magic; `scan.headers` reads many at once."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from struct import Struct

import google_crc32c
import numpy as np

from streaming.errors import FormatError
from streaming.kafka.formats.wire import Bytes

LENGTH_AT = 8
MAGIC_AT = 16
PREFIX_BYTES = 12  # base_offset and batch_length, which batch_length does not count
HEADER_BYTES = 61
MIN_LENGTH = 14  # batch_length of the smallest thing Kafka ever wrote: an empty message of magic 0
MIN_BATCH_BYTES = HEADER_BYTES
CURRENT_MAGIC = 2

GIT_LFS_POINTER = b"version http"  # the first 12 bytes of what a checkout without Git LFS has in place of a file
NOT_FETCHED = "a pointer of Git LFS, not the file: `git lfs pull` fetches that"

CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

HEADER = np.dtype(
    {
        "names": [
            "base_offset",
            "batch_length",
            "partition_leader_epoch",
            "magic",
            "crc",
            "attributes",
            "last_offset_delta",
            "base_timestamp",
            "max_timestamp",
            "producer_id",
            "producer_epoch",
            "base_sequence",
            "records_count",
        ],
        "formats": [">i8", ">i4", ">i4", "i1", ">u4", ">i2", ">i4", ">i8", ">i8", ">i8", ">i2", ">i4", ">i4"],
        "offsets": [0, 8, 12, 16, 17, 21, 23, 27, 35, 43, 51, 53, 57],
        "itemsize": HEADER_BYTES,
    }
)
"""A batch header of magic 2 as a numpy record of exactly 61 bytes."""

OPAQUE_HEADER = np.dtype(f"V{HEADER_BYTES}")
"""The same bytes without fields: numpy copies such items at once, several times faster than field by field."""

_PREFIX = Struct(">qi")
_HEADER = Struct(">hiqq")  # attributes, last offset delta, base and largest timestamp
_ATTRIBUTES_AT, _COUNT_AT = 21, 57
_OLD_TIMESTAMP_AT = 18
_CRC_AT, _OLD_CRC_AT = 17, 12
_COUNT, _LONG = Struct(">i"), Struct(">q")

CHECKED_FROM = 21
"""First byte of a batch of magic 2 that its CRC covers."""

OLD_CHECKED_FROM = 16
"""The same for a message of magic 0 or 1."""


def read_entry_head(head: bytes) -> EntryHead | None:
    """The head of the entry that begins with these bytes (61, or fewer at the end of a file); None if there is none.

    Raises:
        FormatError: Kafka cannot have written a batch with this beginning.
    """
    if len(head) <= MAGIC_AT + 1:
        return None
    offset, length = _PREFIX.unpack_from(head)
    if length == 0:
        return None
    if length < MIN_LENGTH:
        raise FormatError(f"bad batch length {length}")
    size, magic = PREFIX_BYTES + length, head[MAGIC_AT]
    if magic < CURRENT_MAGIC:
        dated = magic == 1 and len(head) >= _OLD_TIMESTAMP_AT + _LONG.size
        timestamp = _LONG.unpack_from(head, _OLD_TIMESTAMP_AT)[0] if dated else -1
        return EntryHead(size, offset, timestamp, timestamp)
    if magic != CURRENT_MAGIC or (len(head) == HEADER_BYTES and size < HEADER_BYTES):
        raise FormatError(NOT_FETCHED if head.startswith(GIT_LFS_POINTER) else f"bad magic {magic} or batch length {length}")
    if len(head) < HEADER_BYTES:
        return None
    attributes, delta, base_timestamp, max_timestamp = _HEADER.unpack_from(head, _ATTRIBUTES_AT)
    (count,) = _COUNT.unpack_from(head, _COUNT_AT)
    if count <= 0 or attributes & CONTROL_BIT:
        timestamp = -1
    else:
        timestamp = max_timestamp if attributes & (TIMESTAMP_TYPE_BIT | DELETE_HORIZON_BIT) else base_timestamp
    return EntryHead(size, offset + delta, max(timestamp, -1), max_timestamp)


@dataclass(frozen=True, slots=True)
class EntryHead:
    """The head of an entry of a ``.log``. Timestamps are Unix milliseconds.

    Reads the head of one entry of a ``.log``, whatever its magic (`streaming.kafka.formats.layout`); `scan.headers` reads many at
    once.

    ``timestamp`` is that of its first record, -1 if the entry has no user's record or is of magic 0. It is the largest timestamp inside for
    a wrapper of magic 1, and for a batch with a delete horizon in that field. ``max_timestamp`` is the largest one inside, -1 if there is
    none.
    """

    size: int
    last_offset: int
    timestamp: int
    max_timestamp: int


def read_size(head: bytes) -> int:
    """The bytes of an entry by its length field."""
    return PREFIX_BYTES + read_length(head)


def read_length(head: bytes) -> int:
    """The length field of an entry: its bytes after the first 12. It may be anything if no entry begins here."""
    return int.from_bytes(head[LENGTH_AT:PREFIX_BYTES], "big", signed=True)


def read_base_offset(head: bytes) -> int:
    """The first field of an entry: the base offset of a batch, the last offset of a compressed wrapper of magic 0 and 1."""
    return int.from_bytes(head[:LENGTH_AT], "big", signed=True)


def read_leader_epoch(head: bytes) -> int:
    """The leader epoch of a batch; -1 where the head is not whole, or its format has none."""
    if len(head) < HEADER_BYTES or head[MAGIC_AT] != CURRENT_MAGIC:
        return -1
    return int.from_bytes(head[PREFIX_BYTES:MAGIC_AT], "big", signed=True)


def has_right_crc(entry: memoryview) -> bool:
    """Whether the CRC in the head of a whole entry, of any magic, is that of its bytes.

    The checksums of batches: CRC-32C since magic 2, CRC-32 before (`Crc32C`, `Crc32`), computed without copying the bytes. Magic 2: a
    u32 at byte 17, over byte 21 to the end. Magic 0 and 1: a u32 at byte 12, over byte 16 to the end. The fields that a leader writes
    in place (base offset, leader epoch) are not covered.
    """
    head = entry[:HEADER_BYTES].tobytes()
    found = crc32c(entry[CHECKED_FROM:]) if head[MAGIC_AT] == CURRENT_MAGIC else crc32(entry[OLD_CHECKED_FROM:])
    return found == read_crc(head)


def crc32c(data: Bytes) -> int:
    """CRC-32C (Castagnoli) of any contiguous bytes, without a copy of them."""
    # The library refuses a memoryview, but accepts an array over the same memory.
    return int(google_crc32c.value(np.frombuffer(data, np.uint8))) if len(data) else 0


def crc32(data: Bytes) -> int:
    """CRC-32 (IEEE 802.3) of any contiguous bytes, without a copy of them."""
    return zlib.crc32(data)


def read_crc(head: bytes) -> int:
    """The CRC that an entry contains: over which bytes, and of which kind, see `streaming.kafka.formats.layout`."""
    at = _CRC_AT if head[MAGIC_AT] == CURRENT_MAGIC else _OLD_CRC_AT
    return int.from_bytes(head[at : at + 4], "big")
