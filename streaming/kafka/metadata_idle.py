"""The batches that an idle controller writes twice a second, known by their bytes: they are most of a metadata log and change nothing.

A ``NoOpRecord`` alone in its batch takes 72 bytes, always the same but for offset, leader epoch, CRC and timestamps (`QuorumController`).
"""

from typing import NamedTuple

import numpy as np

from streaming.kafka.layout import HEADER_BYTES, LENGTH_AT, PREFIX_BYTES

IDLE_BYTES = 72
"""The size of such a batch."""

_RECORD = bytes.fromhex("1400000001080114000000")  # length, attributes, deltas, no key, 4 bytes of value (frame 1, kind 20, version 0)
_LENGTH = (IDLE_BYTES - PREFIX_BYTES).to_bytes(4, "big")
# What is the same in all of them: length; magic; attributes and last offset delta; producer, base sequence, count and the record.
_FIXED = np.concatenate([np.arange(8, 12), [16], np.arange(21, 27), np.arange(43, IDLE_BYTES)])
_VALUES = np.frombuffer(_LENGTH + b"\x02" + bytes(6) + b"\xff" * 14 + (1).to_bytes(4, "big") + _RECORD, np.uint8)
_FIRST_LOOK = 16
_BASE_OFFSET, _LEADER_EPOCH = slice(0, 8), slice(12, 16)


class IdleRun(NamedTuple):
    """So many idle batches with consecutive offsets from ``base_offset`` on; ``leader_epoch`` is the last one's."""

    batches: int
    base_offset: int
    leader_epoch: int


def idle_run(data: memoryview, position: int) -> IdleRun:
    """The idle batches that stand at ``position``. Their CRCs are not checked: all of them that could matter is compared."""
    if data[position + LENGTH_AT : position + PREFIX_BYTES] != _LENGTH or data[position + HEADER_BYTES : position + IDLE_BYTES] != _RECORD:
        return IdleRun(0, -1, -1)
    whole, found, look = (len(data) - position) // IDLE_BYTES, 0, _FIRST_LOOK
    first = int.from_bytes(data[position : position + 8], "big", signed=True)
    while found < whole:
        begin, count = position + found * IDLE_BYTES, min(look, whole - found)
        rows = np.frombuffer(data, np.uint8, count * IDLE_BYTES, begin).reshape(count, IDLE_BYTES)
        offsets = np.ascontiguousarray(rows[:, _BASE_OFFSET]).view(">i8")[:, 0]
        same = (rows[:, _FIXED] == _VALUES).all(axis=1) & (offsets == np.arange(first + found, first + found + count))
        idle = count if same.all() else int(np.argmin(same))
        found += idle
        if idle < count:
            break
        look *= 2  # a look that is far longer than the run costs more than it spares
    last = position + (found - 1) * IDLE_BYTES
    return IdleRun(found, first, int.from_bytes(data[last : last + PREFIX_BYTES + 4][_LEADER_EPOCH], "big", signed=True))
