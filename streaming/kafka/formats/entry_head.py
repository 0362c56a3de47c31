"""Reads the head of one entry of a ``.log``, whatever its magic (`streaming.kafka.formats.layout`); `scan.headers` reads many at once."""

from dataclasses import dataclass
from struct import Struct

from streaming.errors import FormatError
from streaming.kafka.formats.layout import (
    CONTROL_BIT,
    CURRENT_MAGIC,
    DELETE_HORIZON_BIT,
    GIT_LFS_POINTER,
    HEADER_BYTES,
    LENGTH_AT,
    MAGIC_AT,
    MIN_LENGTH,
    NOT_FETCHED,
    PREFIX_BYTES,
    TIMESTAMP_TYPE_BIT,
)

_PREFIX = Struct(">qi")
_HEADER = Struct(">hiqq")  # attributes, last offset delta, base and largest timestamp
_ATTRIBUTES_AT, _COUNT_AT = 21, 57
_OLD_TIMESTAMP_AT = 18
_CRC_AT, _OLD_CRC_AT = 17, 12
_COUNT, _LONG = Struct(">i"), Struct(">q")


@dataclass(frozen=True, slots=True)
class EntryHead:
    """The head of an entry of a ``.log``. Timestamps are Unix milliseconds.

    ``timestamp`` is that of its first record, -1 if the entry has no user's record or is of magic 0. It is the largest timestamp inside for
    a wrapper of magic 1, and for a batch with a delete horizon in that field. ``max_timestamp`` is the largest one inside, -1 if there is
    none.
    """

    size: int
    last_offset: int
    timestamp: int
    max_timestamp: int


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


def read_length(head: bytes) -> int:
    """The length field of an entry: its bytes after the first 12. It may be anything if no entry begins here."""
    return int.from_bytes(head[LENGTH_AT:PREFIX_BYTES], "big", signed=True)


def read_size(head: bytes) -> int:
    """The bytes of an entry by its length field."""
    return PREFIX_BYTES + read_length(head)


def read_base_offset(head: bytes) -> int:
    """The first field of an entry: the base offset of a batch, the last offset of a compressed wrapper of magic 0 and 1."""
    return int.from_bytes(head[:LENGTH_AT], "big", signed=True)


def read_leader_epoch(head: bytes) -> int:
    """The leader epoch of a batch; -1 where the head is not whole, or its format has none."""
    if len(head) < HEADER_BYTES or head[MAGIC_AT] != CURRENT_MAGIC:
        return -1
    return int.from_bytes(head[PREFIX_BYTES:MAGIC_AT], "big", signed=True)


def read_crc(head: bytes) -> int:
    """The CRC that an entry contains: over which bytes, and of which kind, see `streaming.kafka.formats.crc`."""
    at = _CRC_AT if head[MAGIC_AT] == CURRENT_MAGIC else _OLD_CRC_AT
    return int.from_bytes(head[at : at + 4], "big")
