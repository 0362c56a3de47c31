"""Builds the rungs of a segment, range by range, and thins them as they grow old."""

import numpy as np
from numpy.typing import NDArray

from streaming.broker.ladder.runs import Pending
from streaming.broker.ladder.segment_ladder import MOST, RUNG_BYTES, RUNGS, Rungs, add_aborted
from streaming.common.arrays import Longs
from streaming.errors import FormatError
from streaming.kafka.scan.headers import Batches

SEEN_WITHIN_MS = 5_000
SEEN_WITHIN_AGE = 0.05
"""Thinning leaves the time of an append known to within this part of its age, or `SEEN_WITHIN_MS`."""

_FEW = 24

_FIRST_ROOM = 2
"""Most logs of a large broker rest, with a rung or two."""


class RungBuilder:
    """The rungs from the beginning of a segment on. Rungs that were handed out do not change."""

    __slots__ = (
        "_aborted",
        "_control",
        "_count",
        "_data",
        "_rungs",
        "_thin_at",
        "base_offset",
        "end_offset",
        "position",
    )  # one for each log

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.position = 0
        self._rungs: Rungs = np.empty(_FIRST_ROOM, RUNGS)
        self._count = 0
        self._thin_at = _FEW
        self._data = self._aborted = self._control = 0

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
