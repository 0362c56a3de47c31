"""The checksums of batches: CRC-32C since magic 2, CRC-32 before (`Crc32C`, `Crc32`), computed without copying the bytes.

Magic 2: a u32 at byte 17, over byte 21 to the end. Magic 0 and 1: a u32 at byte 12, over byte 16 to the end. The fields that a leader
writes in place (base offset, leader epoch) are not covered.
"""

import zlib

import google_crc32c
import numpy as np

from streaming.kafka.formats.entry_head import read_crc
from streaming.kafka.formats.layout import CURRENT_MAGIC, HEADER_BYTES, MAGIC_AT
from streaming.kafka.formats.wire import Bytes

CHECKED_FROM = 21
"""First byte of a batch of magic 2 that its CRC covers."""

OLD_CHECKED_FROM = 16
"""The same for a message of magic 0 or 1."""


def crc32c(data: Bytes) -> int:
    """CRC-32C (Castagnoli) of any contiguous bytes, without a copy of them."""
    # The library refuses a memoryview, but accepts an array over the same memory.
    return int(google_crc32c.value(np.frombuffer(data, np.uint8))) if len(data) else 0


def crc32(data: Bytes) -> int:
    """CRC-32 (IEEE 802.3) of any contiguous bytes, without a copy of them."""
    return zlib.crc32(data)


def has_right_crc(entry: memoryview) -> bool:
    """Whether the CRC in the head of a whole entry, of any magic, is that of its bytes."""
    head = entry[:HEADER_BYTES].tobytes()
    found = crc32c(entry[CHECKED_FROM:]) if head[MAGIC_AT] == CURRENT_MAGIC else crc32(entry[OLD_CHECKED_FROM:])
    return found == read_crc(head)
