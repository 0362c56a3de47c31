"""The ladder of one segment: what lies before some of its offsets, some 1 MiB apart."""

import struct
import zlib
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from streaming.broker.ladder.counts import Aborted, Counts
from streaming.broker.ladder.runs import Pending
from streaming.common.arrays import Longs
from streaming.errors import FormatError

RUNG_BYTES = 1 << 20
"""How many bytes of whole batches lie between two rungs at most; a larger batch has a stretch of its own."""

RUNGS = np.dtype(
    [
        ("seen_ms", "<i8"),  # when the last append before it was seen, Unix milliseconds, -1 if it was not
        ("offset", "<u4"),  # of the next batch, from the segment's base offset
        ("position", "<u4"),  # in the file
        ("data", "<u4"),  # records from the beginning of the segment, as the next two
        ("aborted", "<u4"),
        ("control", "<u4"),
    ]
)
"""A rung is the end of a stretch of whole batches. The beginning of the segment is none."""

Rungs = NDArray[np.void]
"""An array of `RUNGS`, ascending."""

MOST = 2**32 - 1
"""The largest number in a rung. A segment has fewer than 2**31 bytes, and offsets up to 2**31 after its base (`LogSegment`)."""

_VERSION = 2  # 1 was counted without a look at CRCs
_HEAD = struct.Struct("<HqIIH?q")  # version, base offset, rungs, pending, bytes of the damage, whether it is cut off, sound from
_PENDING = struct.Struct("<qqI")
_CRC = struct.Struct("<I")


@dataclass(frozen=True, slots=True, eq=False)
class SegmentLadder:
    """``pending``: data of transactions that were open at its end, as far as it is known; it is counted as data, and not as aborted.

    ``damage``: the first damage of the file in words, "" if there is none. ``cut``: the ladder ends there. Else it goes on after a damaged
    batch, whose end is known; ``sound_from``: the offset after the last such batch, -1 if there is none.
    """

    base_offset: int
    rungs: Rungs
    pending: tuple[Pending, ...] = ()
    damage: str = ""
    cut: bool = False
    sound_from: int = -1

    @property
    def end_offset(self) -> int:
        """The offset after its last batch."""
        return self.base_offset + (int(self.rungs["offset"][-1]) if len(self.rungs) else 0)

    @property
    def totals(self) -> Counts:
        """What lies in all of it."""
        return self.before(len(self.rungs))

    @property
    def nbytes(self) -> int:
        """The memory that it takes, without Python's own."""
        return self.rungs.nbytes + sum(one.ends.nbytes + one.records.nbytes for one in self.pending)

    def before(self, stretch: int) -> Counts:
        """What lies before a stretch: the one that ends at the rung of that number, or what follows the last rung."""
        if stretch == 0:
            return Counts()
        _, _, position, data, aborted, control = self.rungs[stretch - 1].tolist()
        return Counts(data, aborted, control, position)

    def begin_of(self, stretch: int) -> tuple[int, int]:
        """The offset from which on the batches of a stretch are, and its position."""
        if stretch == 0:
            return self.base_offset, 0
        _, offset, position, *_ = self.rungs[stretch - 1].tolist()
        return self.base_offset + offset, position

    def stretch_of(self, offset: int) -> int:
        """The stretch that an offset of this segment lies in: the first that ends after it, or the number of stretches."""
        return int(np.searchsorted(self.rungs["offset"], np.uint32(min(max(0, offset - self.base_offset), MOST)), side="right"))

    def with_aborted(self, pending: Pending) -> "SegmentLadder":
        """The same, with this data of an aborted transaction counted as aborted; it must be part of it."""
        rungs = self.rungs.copy()
        add_aborted(rungs, pending, self.base_offset)
        return replace(self, rungs=rungs, pending=tuple(one for one in self.pending if one is not pending))

    def settled(self, aborted: Aborted) -> "SegmentLadder":
        """The same, with pending data of these transactions counted as aborted."""
        ladder = self
        for one in self.pending:
            if aborted.covers(one.producer_id, one.first_offset):
                ladder = ladder.with_aborted(one)
        return ladder

    def without_pending(self, producer_id: int) -> "SegmentLadder":
        """The same, with this producer's transaction committed."""
        return replace(self, pending=tuple(one for one in self.pending if one.producer_id != producer_id))

    def pack(self) -> bytes:
        """Its bytes for storage."""
        damage = self.damage.encode()[:1000]
        numbers = len(self.rungs), len(self.pending), len(damage)
        parts = [_HEAD.pack(_VERSION, self.base_offset, *numbers, self.cut, self.sound_from), damage, self.rungs.tobytes()]
        for one in self.pending:
            parts += [_PENDING.pack(one.producer_id, one.first_offset, len(one.ends)), _longs(one.ends), _longs(one.records)]
        body = b"".join(parts)
        return body + _CRC.pack(zlib.crc32(body))

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Read what `pack` has written.

        Raises:
            FormatError: it is damaged, or of another version.
        """
        if len(data) < _HEAD.size + _CRC.size or _CRC.unpack_from(data, len(data) - _CRC.size)[0] != zlib.crc32(data[: -_CRC.size]):
            raise FormatError("the ladder of a segment is damaged")
        version, base_offset, rungs, pending, damage, cut, sound_from = _HEAD.unpack_from(data)
        if version != _VERSION:
            raise FormatError(f"the ladder of a segment is of version {version}")
        at = _HEAD.size + damage
        found = np.frombuffer(data, RUNGS, rungs, at)
        rest = _unpack_pending(data, at + found.nbytes, pending)
        return cls(base_offset, found, rest, data[_HEAD.size : at].decode(errors="replace"), cut, sound_from)


def add_aborted(rungs: Rungs, pending: Pending, base_offset: int) -> None:
    """Count data as aborted, in place; ``rungs`` are of the segment with that base offset and reach to its end."""
    stretch = np.searchsorted(rungs["offset"], (pending.ends - base_offset).astype(np.uint32))
    rungs["aborted"] += np.cumsum(np.bincount(stretch, pending.records, len(rungs))).astype(np.uint32)


def _longs(values: Longs) -> bytes:
    return values.astype("<i8").tobytes()


def _unpack_pending(data: bytes, at: int, count: int) -> tuple[Pending, ...]:
    found = []
    for _ in range(count):
        producer_id, first_offset, items = _PENDING.unpack_from(data, at)
        at += _PENDING.size
        both = np.frombuffer(data, "<i8", 2 * items, at).astype(np.int64)
        at += both.nbytes
        found.append(Pending(producer_id, first_offset, both[:items], both[items:]))
    return tuple(found)
