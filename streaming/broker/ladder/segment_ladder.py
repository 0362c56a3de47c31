"""Builds the ladder of a segment, rung by rung."""

import struct
import zlib
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from streaming.broker.ladder.counts import Aborted, Counts, Pending
from streaming.common.arrays import Longs
from streaming.errors import FormatError
from streaming.kafka.scan.headers import Batches

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

SEEN_WITHIN_MS = 5_000

SEEN_WITHIN_AGE = 0.05
"""Thinning leaves the time of an append known to within this part of its age, or `SEEN_WITHIN_MS`."""

_FEW = 24

_FIRST_ROOM = 2
"""Most logs of a large broker rest, with a rung or two."""


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


@dataclass(slots=True, eq=False)
class RungBuilder:
    """The rungs from the beginning of a segment on. Rungs that were handed out do not change.

    Builds the rungs of a segment, range by range, and thins them as they grow old.
    """

    base_offset: int
    end_offset: int = field(init=False)
    position: int = 0
    _rungs: Rungs = field(default_factory=lambda: np.empty(_FIRST_ROOM, RUNGS))
    _count: int = 0
    _thin_at: int = _FEW
    _data: int = 0
    _aborted: int = 0
    _control: int = 0

    def __post_init__(self) -> None:
        self.end_offset = self.base_offset

    @property
    def rungs(self) -> Rungs:
        """The rungs so far; the last one is the end of what was added."""
        return self._rungs[: self._count]

    @property
    def counted(self) -> tuple[int, int, int, int]:
        """The offset after the last batch, and the records so far: of data, aborted ones among them, and in control batches."""
        return self.end_offset, self._data, self._aborted, self._control

    def add_plain(self, next_offset: int, records: int, size: int, seen_ms: int) -> None:
        """Add whole batches that follow directly, by the sums of their records and bytes; none of them is a control batch.

        Raises:
            FormatError: an offset that no batch of this segment can have.
        """
        if next_offset - self.base_offset > MOST:
            raise FormatError(f"offset {next_offset} in a segment that begins at {self.base_offset}")
        self._data += records
        self._end_stretch(size, next_offset, seen_ms)
        if self._count >= self._thin_at:
            self.thin(seen_ms)

    def add(self, batches: Batches, aborted: NDArray[np.bool_] | None, seen_ms: int) -> None:
        """Add whole batches that follow directly; ``aborted``: those that belong to aborted transactions, as far as that is known.

        Raises:
            FormatError: an offset that no batch of this segment can have.
        """
        if int(batches.last_offset[-1]) - self.base_offset >= MOST:
            raise FormatError(f"offset {batches.last_offset[-1]} in a segment that begins at {self.base_offset}")
        size = int(batches.size.sum()) if len(batches) > 1 else int(batches.size[0])
        if size <= RUNG_BYTES and aborted is None:
            self._add_one(batches, size, seen_ms)
        else:
            self._add_many(batches, aborted, seen_ms)
        if self._count >= self._thin_at:
            self.thin(seen_ms)

    def _add_one(self, batches: Batches, size: int, seen_ms: int) -> None:
        records = int(batches.records.sum()) if len(batches) > 1 else int(batches.records[0])
        control = batches.control
        in_control = int(batches.records[control].sum()) if control.any() else 0
        self._data += records - in_control
        self._control += in_control
        self._end_stretch(size, int(batches.last_offset[-1]) + 1, seen_ms)

    def _end_stretch(self, size: int, end_offset: int, seen_ms: int) -> None:
        self.position += size
        self.end_offset = end_offset
        if self._count == len(self._rungs):
            self._make_room(1)
        row = (seen_ms, end_offset - self.base_offset, self.position, self._data, self._aborted, self._control)
        self._rungs[self._count] = row
        self._count += 1

    def _add_many(self, batches: Batches, aborted: NDArray[np.bool_] | None, seen_ms: int) -> None:
        ends = self.position + np.cumsum(batches.size)
        items = _boundaries(ends, self.position)
        control = batches.control
        self._make_room(len(items))
        added = self._rungs[self._count : self._count + len(items)]
        added["seen_ms"] = seen_ms
        added["offset"] = batches.last_offset[items] + 1 - self.base_offset
        added["position"] = ends[items]
        added["data"] = self._data + np.cumsum(np.where(control, 0, batches.records))[items]
        added["control"] = self._control + np.cumsum(np.where(control, batches.records, 0))[items]
        added["aborted"] = self._aborted
        if aborted is not None:
            added["aborted"] += np.cumsum(np.where(aborted, batches.records, 0))[items].astype(np.uint32)
        self._count += len(items)
        _, _, self.position, self._data, self._aborted, self._control = added[-1].tolist()
        self.end_offset = int(batches.last_offset[-1]) + 1

    def _make_room(self, count: int) -> None:
        if self._count + count > len(self._rungs):
            larger = np.empty(max(self._count + count, self._count * 3 // 2), RUNGS)
            larger[: self._count] = self.rungs
            self._rungs = larger

    def abort(self, pending: Pending) -> None:
        """Count data that was added before as aborted."""
        self._rungs = self._rungs.copy()
        add_aborted(self.rungs, pending, self.base_offset)
        self._aborted = int(self.rungs["aborted"][-1])

    def thin(self, now_ms: int) -> None:
        """Leave out rungs that are not needed; ``now_ms``: the present time, Unix milliseconds."""
        rungs = self.rungs
        kept = _needed(rungs["position"].tolist(), rungs["seen_ms"].tolist(), now_ms)
        self._thin_at = max(_FEW, len(kept) + len(kept) // 4 + 8)
        if len(kept) < len(rungs):
            thinned = np.empty(self._thin_at, RUNGS)
            thinned[: len(kept)] = rungs[kept]
            self._rungs, self._count = thinned, len(kept)


def _boundaries(ends: Longs, begin: int) -> list[int]:
    """The last batches of stretches that begin at ``begin``; ``ends``: the positions after each batch."""
    found: list[int] = []
    item = -1
    while item < len(ends) - 1:
        item = max(item + 1, int(np.searchsorted(ends, begin + RUNG_BYTES, side="right")) - 1)
        begin = int(ends[item])
        found.append(item)
    return found


def _needed(positions: list[int], observed_ms: list[int], now_ms: int) -> list[int]:
    """The rungs to keep: one is left out if the stretches on both of its sides may be one.

    What was appended in a stretch was seen after the rung before it. So these two times must be near each other.
    """
    kept: list[int] = []
    begin, before = 0, -1
    for item in range(len(positions) - 1):
        position, at = positions[item + 1], observed_ms[item + 1]
        near = (at < 0 and observed_ms[item] < 0) or (
            before >= 0 and 0 <= at - before <= max(SEEN_WITHIN_MS, SEEN_WITHIN_AGE * (now_ms - at))
        )
        if not near or position - begin > RUNG_BYTES:
            kept.append(item)
            begin, before = positions[item], observed_ms[item]
    kept.append(len(positions) - 1)
    return kept
