"""Batches whose header says how many records they hold, whatever that is."""

import struct

from streaming.kafka.formats.records import LEAST_RECORD_BYTES
from streaming.simulator.batch_writer import Codec


def empty_records(count: int) -> bytes:
    """The least that a record is, over and over."""
    return bytes((2 * (LEAST_RECORD_BYTES - 1), 0, 0, 0, 1, 1, 0)) * count


def claiming(data: bytes, codec: Codec, payload: bytes, count: int) -> bytes:
    """A batch with that payload, and a header that says so many records."""
    head = bytearray(data[:61])
    struct.pack_into(">i", head, 8, 49 + len(payload))
    struct.pack_into(">h", head, 21, int(codec))
    struct.pack_into(">i", head, 23, count - 1)
    struct.pack_into(">i", head, 57, count)
    return bytes(head) + payload
