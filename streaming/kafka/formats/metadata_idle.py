"""Detects by their bytes the batches that an idle controller writes twice a second. They are most of a metadata log and change nothing.

A ``NoOpRecord`` alone in its batch takes 72 bytes, which are always the same except offset, leader epoch, CRC and timestamps
(`QuorumController`). It is written every ``metadata.max.idle.interval.ms``, from Kafka 3.3 on; 0 disables it.
"""

from collections import deque
from typing import NamedTuple

import numpy as np

from streaming.kafka.formats.layout import HEADER_BYTES, LENGTH_AT, PREFIX_BYTES

IDLE_BYTES = 72
"""The size of such a batch."""

_RECORD = bytes.fromhex("1400000001080114000000")  # length, attributes, deltas, no key, 4 bytes of value (frame 1, kind 20, version 0)
_LENGTH = (IDLE_BYTES - PREFIX_BYTES).to_bytes(4, "big")
# The bytes that are the same in all of them: length; magic; attributes and last offset delta; producer, base sequence, count and the
# record.
_FIXED = np.concatenate([np.arange(8, 12), [16], np.arange(21, 27), np.arange(43, IDLE_BYTES)])
_VALUES = np.frombuffer(_LENGTH + b"\x02" + bytes(6) + b"\xff" * 14 + (1).to_bytes(4, "big") + _RECORD, np.uint8)
_FIRST_COMPARED = 16
_BASE_OFFSET, _LEADER_EPOCH, _MAX_TIMESTAMP = slice(0, 8), slice(12, 16), slice(35, 43)

_GAPS = 3
_OFF_AFTER_MS = 10_000


class IdleRun(NamedTuple):
    """A number of idle batches with consecutive offsets from ``base_offset`` on."""

    batches: int
    base_offset: int


class IdlePace:
    """How often the controller writes idle batches, measured at those that were read last.

    If the controller writes something else after ten seconds without an idle batch, it writes no idle batches.
    """

    def __init__(self) -> None:
        self._last_ms = -1
        self._gaps: deque[int] = deque(maxlen=_GAPS)

    @property
    def interval_ms(self) -> int | None:
        """The shortest time between the last ones; None if it is not known, or if none are written."""
        return min(self._gaps) if self._gaps else None

    def idle(self, batches: int, first_ms: int, last_ms: int) -> None:
        """Note that idle batches were read, which the controller wrote from ``first_ms`` to ``last_ms``, Unix milliseconds."""
        if self._last_ms >= 0:
            self._gaps.append(max(0, first_ms - self._last_ms))
        if batches > 1:
            self._gaps.append(max(0, last_ms - first_ms) // (batches - 1))
        self._last_ms = last_ms

    def other(self, at_ms: int) -> None:
        """Note that a batch of records was read, which the controller wrote at ``at_ms``."""
        if self._last_ms >= 0 and at_ms - self._last_ms > _OFF_AFTER_MS:
            self._last_ms = -1
            self._gaps.clear()


def idle_run(data: memoryview, position: int) -> IdleRun:
    """The idle batches at ``position``. Their CRCs are not checked, because all bytes that matter are compared."""
    if data[position + LENGTH_AT : position + PREFIX_BYTES] != _LENGTH or data[position + HEADER_BYTES : position + IDLE_BYTES] != _RECORD:
        return IdleRun(0, -1)
    whole, found, compared = (len(data) - position) // IDLE_BYTES, 0, _FIRST_COMPARED
    first = int.from_bytes(data[position : position + 8], "big", signed=True)
    while found < whole:
        begin, count = position + found * IDLE_BYTES, min(compared, whole - found)
        rows = np.frombuffer(data, np.uint8, count * IDLE_BYTES, begin).reshape(count, IDLE_BYTES)
        offsets = np.ascontiguousarray(rows[:, _BASE_OFFSET]).view(">i8")[:, 0]
        same = (rows[:, _FIXED] == _VALUES).all(axis=1) & (offsets == np.arange(first + found, first + found + count))
        idle = count if same.all() else int(np.argmin(same))
        found += idle
        if idle < count:
            break
        compared *= 2  # comparing far more batches than the run has costs more than it saves
    return IdleRun(found, first)


def times_of(data: memoryview, position: int, batches: int) -> tuple[int, int]:
    """When the first and the last of a run of idle batches were written, Unix milliseconds."""
    last = position + (batches - 1) * IDLE_BYTES
    return _int(data[position : position + IDLE_BYTES][_MAX_TIMESTAMP]), _int(data[last : last + IDLE_BYTES][_MAX_TIMESTAMP])


def _int(field: memoryview) -> int:
    return int.from_bytes(field, "big", signed=True)
