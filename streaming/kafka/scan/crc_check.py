"""Finds the batches of a segment that do not have the CRC of their header, all at the library's speed (`RecordBatch.isValid`)."""

import zlib

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from streaming.kafka.formats.crc import CHECKED_FROM, OLD_CHECKED_FROM
from streaming.kafka.formats.layout import CURRENT_MAGIC
from streaming.kafka.scan.crc_stretch import MOST_BYTES, are_right
from streaming.kafka.scan.headers import Batches

_MANY = 64


def wrong_crcs(buffer: NDArray[np.uint8], batches: Batches) -> NDArray[np.intp]:
    """The items of `batches` whose bytes in `buffer` do not have the CRC of their header, ascending.

    Every batch is complete in `buffer`, at its position, and has at least the size of its own header. The buffer may be written to, and is
    unchanged in the end. If several small batches in a row are wrong, there is a chance of 2^-32 that none of them is found.
    """
    stored = stored_crcs(batches)
    if _in_a_row(batches) and buffer.flags.writeable and are_right(buffer, batches.positions, batches.size, stored):
        return np.empty(0, np.intp)
    begins, ends = batches.positions.tolist(), (batches.positions + batches.size).tolist()
    value, old = google_crc32c.value, (batches.magic < CURRENT_MAGIC).tolist()
    found = [
        zlib.crc32(buffer[begin + OLD_CHECKED_FROM : end].data) if is_old else value(buffer[begin + CHECKED_FROM : end])
        for begin, end, is_old in zip(begins, ends, old, strict=True)
    ]
    return np.flatnonzero(np.array(found, np.uint32) != stored)


def _in_a_row(batches: Batches) -> bool:
    """Whether these are small batches of magic 2, one directly after the other, and enough that one check of all of them pays off."""
    return (
        len(batches) >= _MANY
        and bool((batches.magic == CURRENT_MAGIC).all())
        and int(batches.size.max()) <= MOST_BYTES
        and bool((batches.positions[1:] == batches.positions[:-1] + batches.size[:-1]).all())
    )


def stored_crcs(batches: Batches) -> NDArray[np.uint32]:
    """The CRC in the header of each batch."""
    stored = batches.headers["crc"].astype(np.uint32)
    old = batches.magic < CURRENT_MAGIC
    if old.any():  # in an old message it is at the position of the leader epoch in magic 2
        stored[old] = batches.headers["partition_leader_epoch"][old].astype(np.int32).view(np.uint32)
    return stored
