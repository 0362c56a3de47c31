"""Which batches of a segment have another CRC than their header says, all of them at the library's speed (`RecordBatch.isValid`)."""

import zlib

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from streaming.kafka.crc import CHECKED_FROM, OLD_CHECKED_FROM
from streaming.kafka.headers import Batches
from streaming.kafka.layout import CURRENT_MAGIC


def wrong_crcs(buffer: NDArray[np.uint8], batches: Batches) -> NDArray[np.intp]:
    """The items of `batches` whose bytes in `buffer` have another CRC than their header says, ascending.

    Every batch lies whole in `buffer`, at its position, and has at least the size of its own header.
    """
    begins, ends = batches.positions.tolist(), (batches.positions + batches.size).tolist()
    value = google_crc32c.value
    old = batches.magic < CURRENT_MAGIC
    if old.any():
        found = [
            zlib.crc32(buffer[begin + OLD_CHECKED_FROM : end].data) if is_old else value(buffer[begin + CHECKED_FROM : end])
            for begin, end, is_old in zip(begins, ends, old.tolist(), strict=True)
        ]
    else:  # the case of nearly every segment, one test less a batch
        found = [value(buffer[begin + CHECKED_FROM : end]) for begin, end in zip(begins, ends, strict=True)]
    return np.flatnonzero(np.array(found, np.uint32) != told_crcs(batches))


def told_crcs(batches: Batches) -> NDArray[np.uint32]:
    """The CRC that the header of each batch says."""
    told = batches.headers["crc"].astype(np.uint32)
    old = batches.magic < CURRENT_MAGIC
    if old.any():  # in an old message it stands where magic 2 has the leader epoch
        told[old] = batches.headers["partition_leader_epoch"][old].astype(np.int32).view(np.uint32)
    return told
