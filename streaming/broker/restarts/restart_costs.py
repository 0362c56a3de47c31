"""What a start after a crash would cost a log dir, from the logs that are watched: computed again only for logs that have changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, count
from operator import attrgetter, is_not

import numpy as np

from streaming.broker.disk.log_inventory import LogInventory
from streaming.broker.watcher.offset_checkpoints import RecoveryPositions
from streaming.broker.watcher.tail import Tail
from streaming.rules.restart_cost import NOT_KNOWN, LogSegments, RecoveryPoints, not_fsynced_bytes, scanned_bytes

_SEEN = tuple(map(attrgetter, ("last_found", "segments", "cursor", "pace")))
"""Of what a log's values are made, besides its recovery point: its lists, then how far it has grown. Each is replaced when it changes."""


class RestartCosts:
    """One log dir. Only the watcher's thread uses it.

    Args:
        tails: its logs, without the metadata log.
    """

    def __init__(self, tails: Sequence[Tail], points: RecoveryPositions) -> None:
        self._tails = tails
        self._points = points
        self._version = -1  # of the recovery points
        self._seen: list[list[object]] = [[None] * len(tails)] * len(_SEEN)
        self._listed: list[_Listed | None] = [None] * len(tails)
        # by log: its recovery point and position, what a start would read of the list, what has grown since, the end
        self._point, self._position, self._scanned, self._grown, self._end = np.full((5, len(tails)), NOT_KNOWN, np.int64)
        self._sums = DirRestart(0, 0, 0)

    def look(self) -> DirRestart:
        """The log dir as it is now."""
        version, seen = self._points.version, [list(map(get, self._tails)) for get in _SEEN]
        changed = [set(compress(count(), map(is_not, now, before))) for now, before in zip(seen, self._seen, strict=True)]
        others = set(range(len(self._tails))) if version != self._version else set().union(*changed[:2])
        grown = others.union(*changed[2:])
        if grown:
            self._version, self._seen = version, seen
            self._take_lists([number for number in others if self._tails[number].last_found is not None])
            self._take_growth([number for number in grown if self._listed[number] is not None])
            self._sums = self._summed()
        return self._sums

    def _take_lists(self, numbers: Sequence[int]) -> None:
        """Bring up to date what a start would read of the lists of some logs."""
        others: list[int] = []
        points = self._points.of([self._tails[number] for number in numbers])
        for number, point in zip(numbers, points, strict=True):
            last, listed = self._tails[number].last_found, self._listed[number]
            assert last is not None
            if listed is None or listed.inventory is not last.inventory or point != (self._point[number], self._position[number]):
                active = last.inventory.segments[-1]
                self._listed[number] = _Listed(last.inventory, int(active["base_offset"]), int(active["size"]))
                self._point[number], self._position[number] = point
                others.append(number)
        if others:
            segments = LogSegments.of([each.inventory.segments for number in others if (each := self._listed[number]) is not None])
            recovery = RecoveryPoints(offset=self._point[others], position=self._position[others])
            self._scanned[others] = scanned_bytes(segments, recovery)

    def _take_growth(self, numbers: Sequence[int]) -> None:
        """Bring up to date how far some logs have grown. Nearly all do so all the time, while their lists and recovery points stay."""
        rows = [(self._tails[number], each) for number in numbers if (each := self._listed[number]) is not None]
        self._grown[numbers] = [_grown(tail, listed) for tail, listed in rows]
        self._end[numbers] = [_end(tail) for tail, _ in rows]

    def _summed(self) -> DirRestart:
        if any(each is None for each in self._listed) or (self._scanned < 0).any():
            return NOTHING_KNOWN
        scanned = self._scanned + self._grown
        not_fsynced = not_fsynced_bytes(scanned, RecoveryPoints(offset=self._point, position=self._position), self._end)
        return DirRestart(int(np.count_nonzero(scanned)), int(scanned.sum()), int(not_fsynced.sum()))


@dataclass(frozen=True, slots=True)
class _Listed:
    """The list by which a log was computed, with the base offset and the size of its active segment then."""

    inventory: LogInventory
    active: int
    size: int


@dataclass(frozen=True, slots=True)
class DirRestart:
    """A log dir, without the metadata log, which every start reads: logs that a start after a crash reads, bytes of them, and bytes above
    the recovery points. `NOT_KNOWN` where they are not known of every log."""

    logs: int
    scanned: int
    not_fsynced: int


def _grown(tail: Tail, before: _Listed) -> int:
    """What a log has grown by since it was listed, as far as that is read."""
    cursor = tail.cursor
    if cursor.segment > before.active:
        return cursor.position
    return max(0, cursor.position - before.size) if cursor.segment == before.active else 0


def _end(tail: Tail) -> int:
    """The end of a log, -1 if it is not read to its end."""
    return tail.cursor.next_offset if tail.live and not tail.has_later_segment else -1


NOTHING_KNOWN = DirRestart(NOT_KNOWN, NOT_KNOWN, NOT_KNOWN)
