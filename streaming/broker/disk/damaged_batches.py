"""Which batches of a file are damaged although a scan of their headers passes them: those without the CRC of their header.

With the flaws of that scan this is all that damaged means for who reads a log: Kafka's consumer stops at either. What is counted from disk
goes by it, and so does the check of the batch that a group reads next. The scrub and ``segtail dump --verify`` report the same, and more.
"""

import zlib

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.segment_files import OpenSegment
from streaming.kafka.formats.crc import CHECKED_FROM, OLD_CHECKED_FROM
from streaming.kafka.formats.layout import CURRENT_MAGIC
from streaming.kafka.scan.crc_check import stored_crcs, wrong_crcs
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.pieces import Scanned
from streaming.kafka.scan.walk import Bytes

BAD_CRC = "bad CRC"

_NONE = np.empty(0, np.intp)
_FIRST = np.zeros(1, np.intp)


def damaged_batches(file: OpenSegment, position: int, scanned: Scanned, buffer: Bytes) -> NDArray[np.intp]:
    """The items of ``scanned.batches`` whose bytes do not have the CRC of their header, ascending.

    Bytes that seem damaged are read once more: if they are whole then, the disk is not damaged.

    Args:
        position: of the window in the file.
        buffer: holds what was scanned, and is not needed afterwards.

    Raises:
        OSError: the file cannot be read.
    """
    if scanned.end > len(buffer):
        return _NONE if _large_is_whole(file, position, scanned.batches, buffer) else _FIRST
    wrong = wrong_crcs(buffer, scanned.batches)
    if not len(wrong):
        return wrong
    size = file.read_into(buffer, position)
    return wrong_crcs(buffer, scanned.batches) if size >= scanned.end else wrong


def _large_is_whole(file: OpenSegment, position: int, batch: Batches, buffer: Bytes) -> bool:
    """Whether a batch that is larger than the buffer has its CRC: it is read piece by piece."""
    current = int(batch.magic[0]) == CURRENT_MAGIC
    at, end = position + (CHECKED_FROM if current else OLD_CHECKED_FROM), position + int(batch.size[0])
    crc = 0
    while at < end:
        size = file.read_into(buffer, at, spare_cache=True)
        if not size:
            return False
        piece = buffer[: min(size, end - at)]
        crc = google_crc32c.extend(crc, piece) if current else zlib.crc32(piece.data, crc)
        at += len(piece)
    return crc == int(stored_crcs(batch)[0])
