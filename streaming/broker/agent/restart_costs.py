"""What a start after a crash would cost each log dir, from the logs that are watched: computed again only for logs that have changed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress, count
from operator import attrgetter, is_not

import numpy as np

from streaming.broker.disk.log_inventory import LogInventory
from streaming.broker.watcher.recovery_points import RecoveryPositions
from streaming.broker.watcher.tail import Tail
from streaming.rules.restart_cost import NOT_KNOWN, LogSegments, RecoveryPoints, not_fsynced_bytes, scanned_bytes


@dataclass(frozen=True, slots=True)
class DirRestart:
    """A log dir, without the metadata log, which every start reads: logs that a start after a crash reads, bytes of them, and bytes above
    the recovery points. `NOT_KNOWN` where they are not known of every log."""

    logs: int
    scanned: int
    not_fsynced: int


NOTHING_KNOWN = DirRestart(NOT_KNOWN, NOT_KNOWN, NOT_KNOWN)


_SEEN = tuple(map(attrgetter, ("last_found", "cursor", "segments", "pace")))
"""Of what a log's values are made, besides its recovery point. Each of these is replaced when it changes."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """The list by which a log was computed, with the base offset and the size of its active segment then."""

    inventory: LogInventory
    active: int
    size: int


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
        changed = {number for now, before in zip(seen, self._seen, strict=True) for number in compress(count(), map(is_not, now, before))}
        if version != self._version:
            changed.update(range(len(self._tails)))
        if changed:
            self._version, self._seen = version, seen
            self._compute(changed)
            self._sums = self._summed()
        return self._sums

    def _compute(self, numbers: Iterable[int]) -> None:
        """Bring up to date what is known of some logs."""
        others: list[int] = []
        for number in numbers:
            tail, point, listed = self._tails[number], self._points.of(self._tails[number]), self._listed[number]
            if tail.last_found is None:
                continue
            inventory = tail.last_found.inventory
            if listed is None or listed.inventory is not inventory or point != (self._point[number], self._position[number]):
                last = inventory.segments[-1]
                self._listed[number] = listed = _Listed(inventory, int(last["base_offset"]), int(last["size"]))
                self._point[number], self._position[number] = point
                others.append(number)
            self._grown[number], self._end[number] = _grown(tail, listed), _end(tail)
        if others:
            segments = LogSegments.of([each.inventory.segments for number in others if (each := self._listed[number]) is not None])
            points = RecoveryPoints(offset=self._point[others], position=self._position[others])
            self._scanned[others] = scanned_bytes(segments, points)

    def _summed(self) -> DirRestart:
        if any(each is None for each in self._listed) or (self._scanned < 0).any():
            return NOTHING_KNOWN
        scanned = self._scanned + self._grown
        not_fsynced = not_fsynced_bytes(scanned, RecoveryPoints(offset=self._point, position=self._position), self._end)
        return DirRestart(int(np.count_nonzero(scanned)), int(scanned.sum()), int(not_fsynced.sum()))


def _grown(tail: Tail, before: _Listed) -> int:
    """What a log has grown by since it was listed, as far as that is read."""
    cursor = tail.cursor
    if cursor.segment > before.active:
        return cursor.position
    return max(0, cursor.position - before.size) if cursor.segment == before.active else 0


def _end(tail: Tail) -> int:
    """The end of a log, -1 if it is not read to its end."""
    return tail.cursor.next_offset if tail.live and not tail.has_later_segment else -1
