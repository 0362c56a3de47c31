"""What retention frees, and when a disk is full with that reckoned in: the rule of `retention_rule`, carried on into the future.

A log grows as it did. Its existing segments go one by one, at the first check at which the rule lets them. What is appended from now on
goes in the same way; there the average is taken, so that a log counts as if half a segment of it were always filled.

Compaction frees an amount that nobody knows before. So a compacted log is taken as growing or as not growing, by the caller's choice.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.rules.growth import Floats, running_max
from streaming.rules.segment_columns import Logs, Longs

NEVER = np.inf

HORIZON_MS = 366 * 86_400_000
"""Nothing is said of what is further off: no growth stays the same for so long."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outlook:
    """The future of some logs. Times are Unix milliseconds, `NEVER` for what does not come.

    Of each segment: ``gone`` is when its space is free at the latest, ``freed`` the bytes that are free then, those that are appended to an
    active segment before it is rolled included. Of each log: ``growth`` in bytes a millisecond, 0 where it is not known, and ``level`` from
    when on as much is deleted as is appended.
    """

    gone: Floats
    freed: Floats
    growth: Floats
    level: Floats
    owner: Longs

    def freed_by(self, at_ms: float) -> Floats:
        """The bytes of each log's present segments that are free by then."""
        found: Floats = np.bincount(self.owner, self.freed * (self.gone <= at_ms), minlength=len(self.growth))  # type: ignore[assignment]
        return found

    def next_gone(self) -> Floats:
        """When the next space is freed, of each log."""
        found = np.full(len(self.growth), NEVER)
        np.minimum.at(found, self.owner, self.gone)
        return found

    def full_at(self, logs: NDArray[np.bool_], free: int, now_ms: int) -> float:
        """When a file system with so many free bytes is full, `NEVER` if not within `HORIZON_MS`.

        Args:
            logs: those that lie on it.
        """
        if free <= 0:
            return float(now_ms)
        segments = np.flatnonzero(logs[self.owner] & np.isfinite(self.gone))
        levels = np.flatnonzero(logs & np.isfinite(self.level))
        times = np.concatenate([np.maximum(self.gone[segments], now_ms), np.maximum(self.level[levels], now_ms), [now_ms + HORIZON_MS]])
        drops = np.concatenate([self.freed[segments], np.zeros(len(levels) + 1)])
        slows = np.concatenate([np.zeros(len(segments)), self.growth[levels], [0.0]])
        order = np.argsort(times, kind="stable")
        times, drops, slows = times[order], drops[order], slows[order]
        pace = float(self.growth[logs].sum()) - np.concatenate([[0.0], np.cumsum(slows)[:-1]])  # up to each of the times
        grown = np.cumsum(pace * np.diff(times, prepend=now_ms))
        before = grown - np.concatenate([[0.0], np.cumsum(drops)[:-1]])  # right before each of them
        over = np.flatnonzero((before >= free) & (times <= now_ms + HORIZON_MS))
        if not len(over):
            return NEVER
        at = int(over[0])
        return float(times[at] - (before[at] - free) / max(pace[at], 1e-12))


def outlook_of(logs: Logs, growth: Floats, active_first_ms: Longs, now_ms: int, *, compacted_grow: bool = False) -> Outlook:
    """The future of logs that grow as they did.

    Everything is taken as replicated by the time at which it may go, and as copied to remote storage if it has to be.

    Args:
        growth: bytes a millisecond, nan if it is not known.
        active_first_ms: the largest time of the first batch of each active segment, -1 if that is not known.
        compacted_grow: logs that are compacted and not deleted grow as if nothing were ever compacted; else they stay as they are.
    """
    deletes = logs.limit("deletes") > 0
    pace = np.where(np.isnan(growth), 0.0, growth)
    if not compacted_grow:
        pace = np.where((logs.limit("compacts") > 0) & ~deletes, 0.0, pace)
    if not len(pace):
        return Outlook(gone=np.empty(0), freed=np.empty(0), growth=pace, level=np.empty(0), owner=logs.owner)
    rolled, fill = _rolls(logs, pace, active_first_ms, now_ms)
    timed = np.where(deletes & (logs.limit("retention_ms") >= 0), logs.limit("retention_ms"), NEVER)
    sized = np.where(deletes & (logs.limit("retention_bytes") >= 0), logs.limit("retention_bytes"), NEVER)
    gone = _gone(logs, timed, sized, pace, rolled, now_ms)
    freed = logs.size.astype(np.float64)
    freed[logs.last] += np.where(np.isfinite(gone[logs.last]), pace * np.maximum(rolled - now_ms, 0.0), 0.0)
    late = logs.limit("check_interval_ms") + logs.limit("file_delete_delay_ms")
    level = np.where(pace > 0, gone[logs.last] + fill / 2, NEVER)
    return Outlook(gone=np.maximum(gone, now_ms) + late[logs.owner], freed=freed, growth=pace, level=level, owner=logs.owner)


def _rolls(logs: Logs, pace: Floats, active_first_ms: Longs, now_ms: int) -> tuple[Floats, Floats]:
    """When each active segment is rolled (`now_ms` if its log does not grow), and how long a segment is filled."""
    segment_bytes, segment_ms = logs.limit("segment_bytes"), logs.limit("roll_ms").astype(np.float64)
    with np.errstate(divide="ignore"):
        full = np.where(pace > 0, np.maximum(segment_bytes - logs.size[logs.last], 0) / pace, NEVER)
        fill = np.where(pace > 0, np.minimum(segment_bytes / pace, segment_ms), 0.0)
    aged = np.where(active_first_ms >= 0, active_first_ms + segment_ms - now_ms, segment_ms)
    return np.where(pace > 0, now_ms + np.maximum(np.minimum(full, aged), 0.0), float(now_ms)), fill


def _gone(logs: Logs, timed: Floats, sized: Floats, pace: Floats, rolled: Floats, now_ms: int) -> Floats:
    """When the rule lets each segment go: a size, or its time once those before it are gone, or the log start."""
    owner, last = logs.owner, logs.last
    below = ~logs.active & (logs.following <= logs.log_start[owner])  # they hold up nothing
    own = np.where(below, 0, np.maximum(logs.largest, 0))
    own[last] = np.where(pace > 0, np.maximum(own[last], rolled), own[last])
    expires = own + timed[owner] + 1
    prefix = running_max(own, owner) + timed[owner] + 1
    after = logs.before[last + 1][owner] - logs.before[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        until = np.where(pace[owner] > 0, (sized[owner] - after) / pace[owner], NEVER)
    surplus = np.where(after >= sized[owner], float(now_ms), now_ms + until)
    surplus[last] = np.where(pace > 0, rolled + _ratio(sized, pace), np.where(sized == 0, float(now_ms), NEVER))
    both = np.isfinite(timed) & np.isfinite(sized)
    gone = np.where(np.isfinite(sized)[owner], np.minimum(surplus, prefix), prefix)
    _after_size(logs, np.flatnonzero(both), surplus, expires, gone)
    gone = np.where(below, float(now_ms), gone)
    empty = (logs.size[last] == 0) & (pace <= 0)  # an empty active segment never goes
    gone[last] = np.where(empty, NEVER, gone[last])
    return gone


def _after_size(logs: Logs, both: Longs, surplus: Floats, expires: Floats, gone: Floats) -> None:
    """Of logs with both limits: the time counts for what the size has left, which may have taken a segment that held the others up."""
    before = np.zeros(len(both))
    for rank in range(int(logs.count[both].max(initial=0))):
        there = logs.count[both] > rank
        at = logs.first[both[there]] + rank
        gone[at] = np.minimum(surplus[at], np.maximum(before[there], expires[at]))
        before[there] = gone[at]


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(denominator > 0, numerator / np.maximum(denominator, 1e-300), NEVER)
    return found
