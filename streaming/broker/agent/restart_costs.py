"""What a start after a crash would cost each log dir, from the logs that are watched: computed again only for logs that have changed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streaming.broker.disk.log_inventory import LogInventory
from streaming.broker.watcher.recovery_points import Point
from streaming.broker.watcher.tail import Tail
from streaming.rules.restart_cost import NOT_KNOWN, LogSegments, RecoveryPoints, not_fsynced_bytes, scanned_bytes

PointOf = Callable[[Tail], Point]


@dataclass(frozen=True, slots=True)
class DirRestart:
    """A log dir, without the metadata log, which every start reads: logs that a start after a crash reads, bytes of them, and bytes above
    the recovery points. `NOT_KNOWN` where they are not known of every log."""

    logs: int
    scanned: int
    not_fsynced: int


NOTHING_KNOWN = DirRestart(NOT_KNOWN, NOT_KNOWN, NOT_KNOWN)


@dataclass(frozen=True, slots=True)
class _Known:
    """A log as it was when it was computed: ``listed`` bytes of the active segment are in ``scanned``."""

    inventory: LogInventory
    point: Point
    active: int
    listed: int
    scanned: int


class RestartCosts:
    """Only the watcher's thread uses it.

    Args:
        point_of: the recovery point of a log.
    """

    def __init__(self, point_of: PointOf) -> None:
        self._point_of = point_of
        self._known: dict[Tail, _Known] = {}

    def look(self, tails: Mapping[Path, Sequence[Tail]]) -> dict[Path, DirRestart]:
        """Some log dirs by path, from the logs in each, without the metadata log."""
        self._compute([tail for inside in tails.values() for tail in inside if tail.last_found is not None])
        return {path: self._sums(inside) for path, inside in tails.items()}

    def scanned(self, tail: Tail) -> int:
        """Bytes of a log that a start after a crash would read, by the last look."""
        known = self._known.get(tail)
        return NOT_KNOWN if known is None else known.scanned if known.scanned < 0 else known.scanned + _grown(tail, known)

    def _compute(self, tails: list[Tail]) -> None:
        """Bring up to date what is known of some logs, and forget all others."""
        before, self._known = self._known, {}
        changed: list[tuple[Tail, LogInventory, Point]] = []
        for tail in tails:
            known, point = before.get(tail), self._point_of(tail)
            assert tail.last_found is not None
            inventory = tail.last_found.inventory
            if known is not None and known.inventory is inventory and known.point == point:
                self._known[tail] = known
            else:
                changed.append((tail, inventory, point))
        if not changed:
            return
        segments = LogSegments.of([inventory.segments for _, inventory, _ in changed])
        scanned = scanned_bytes(segments, _points([point for *_, point in changed]))
        for (tail, inventory, point), found in zip(changed, scanned.tolist(), strict=True):
            last = inventory.segments[-1]
            self._known[tail] = _Known(inventory, point, int(last["base_offset"]), int(last["size"]), found)

    def _sums(self, tails: Sequence[Tail]) -> DirRestart:
        known = [self._known.get(tail) for tail in tails]
        scanned = np.array([self.scanned(tail) for tail in tails], np.int64)
        if (scanned < 0).any():
            return NOTHING_KNOWN
        points = _points([each.point for each in known if each is not None])
        ends = np.array([_end(tail) for tail in tails], np.int64)
        not_fsynced = not_fsynced_bytes(scanned, points, ends)
        return DirRestart(int(np.count_nonzero(scanned)), int(scanned.sum()), int(not_fsynced.sum()))


def _points(points: list[Point]) -> RecoveryPoints:
    offsets, positions = zip(*points, strict=True)
    return RecoveryPoints(offset=np.array(offsets, np.int64), position=np.array(positions, np.int64))


def _grown(tail: Tail, before: _Known) -> int:
    """What a log has grown by since it was listed, as far as that is read."""
    cursor = tail.cursor
    if cursor.segment > before.active:
        return cursor.position
    return max(0, cursor.position - before.listed) if cursor.segment == before.active else 0


def _end(tail: Tail) -> int:
    """The end of a log, -1 if it is not read to its end."""
    return tail.cursor.next_offset if tail.live and not tail.has_later_segment else -1
