"""Producer state `.snapshot`: the producers of a partition before the offset in the file's name (`ProducerStateManager`).

Layout, version 1, the only one so far, big-endian::

    version i16 | crc u32 (CRC-32C of byte 6 to the end) | count i32 | count entries of 46 bytes
    producer_id i64 | producer_epoch i16 | last_sequence i32 | last_offset i64 | offset_delta i32 | timestamp i64
    coordinator_epoch i32 | current_txn_first_offset i64

Entries are in no order. The file is written in place, so a reader may read only a part of it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from streaming.errors import FormatError
from streaming.kafka.formats.layout import crc32c

_HEAD = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = struct.Struct(">h")
_CHECKED_FROM = 6
_MOST_SEQUENCE = 0x7FFFFFFF


def read_producer_snapshot(data: bytes | memoryview) -> tuple[ProducerState, ...] | None:
    """All producers of a snapshot in the file's order, or None if it is not complete yet: it is written in place.

    Raises:
        FormatError: another version, a wrong CRC, or more bytes than it has entries.
    """
    if len(data) >= _VERSION.size and (version := _VERSION.unpack_from(data)[0]) != 1:
        raise FormatError(f"producer snapshot of version {version}, known is 1", 0)
    if len(data) < _HEAD.size:
        return None
    _, crc, count = _HEAD.unpack_from(data)
    if count < 0:
        raise FormatError(f"producer snapshot of {count} entries", _CHECKED_FROM)
    size = _HEAD.size + count * _ENTRY.size
    if len(data) < size:
        return None
    if len(data) > size:
        raise FormatError(f"bytes after the {count} entries of a producer snapshot", size)
    if crc32c(data[_CHECKED_FROM:]) != crc:
        raise FormatError("wrong CRC in a producer snapshot", _VERSION.size)
    return tuple(ProducerState(*fields) for fields in _ENTRY.iter_unpack(data[_HEAD.size :]))


@dataclass(frozen=True, slots=True)
class ProducerState:
    """One producer, as the file has it. `timestamp` is the largest of its last batch, or that of its last marker, in Unix milliseconds.

    `last_sequence` and `last_offset` are -1 if no data of the present epoch is kept; `coordinator_epoch` is -1 before any marker,
    `current_txn_first_offset` while no transaction is open. The file does not contain when that transaction began; only its first batch
    does.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int

    @property
    def first_sequence(self) -> int:
        """Sequence at the beginning of its last batch, -1 if none is kept."""
        return -1 if self.last_sequence < 0 else (self.last_sequence - self.offset_delta) & _MOST_SEQUENCE
