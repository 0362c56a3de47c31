"""What rounds remember of each partition of a group: since when it stands still, what it has read, and what it has lost.

Counters are differences of positions of one edition. What cannot be counted so is counted in offsets, or waits until its position is known.
"""

from dataclasses import dataclass

import numpy as np

from streaming.groups.commit_table import CommitRows
from streaming.metrics.group_lag import ABSENT, CODES, KNOWN, Ends, Flags, Lags, Longs, Places, Reason
from streaming.metrics.group_places import carried, padded
from streaming.metrics.group_rates import FadingRates, Rates

PAIR_BITS = 32
"""A key of commits, without so many low bits, is the number of its pair of group and topic."""

_COLUMNS = ("offset", "since_ms", "readable_ms", "watched_ms", "start", "kept", "edition", "beyond")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Progress:
    """What is remembered of each partition after a round.

    ``stopped_since_ms``: since when its offset stays although a record is readable, `ABSENT` if that is not so; ``stopped_earlier``: that
    is the first round in which it was known, and it may have stopped before. ``rate``: records a second
    that it has read lately, `ABSENT` if that is not known yet.
    """

    stopped_since_ms: Longs
    stopped_earlier: Flags
    rate: Rates


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counters:
    """Totals of each pair of group and topic, by its number: they only grow."""

    committed_records: Longs
    lost_records: Longs
    lost_offsets: Longs


class GroupMemory:
    """For one thread."""

    def __init__(self) -> None:
        self._key: Longs = np.empty(0, np.int64)
        self._columns: dict[str, Longs] = {name: np.empty(0, np.int64) for name in _COLUMNS}
        self._rates = FadingRates()
        self._last_ms = 0
        self._counters = {name: np.empty(0, np.int64) for name in Counters.__slots__}

    def begin(self, rows: CommitRows, steady_ms: int) -> Flags:
        """A round begins, with these commits, at ``steady_ms`` of a clock that nobody sets. Returns which of them were beyond the end of
        their log in the round before.
        """
        if not np.array_equal(rows.key, self._key):
            of, there = carried(self._key, rows.key)
            self._columns = {name: np.where(there, padded(column)[of], ABSENT) for name, column in self._columns.items()}
            self._rates.begin(of, there, steady_ms)
            self._key = rows.key
            pairs = int(rows.key[-1] >> PAIR_BITS) + 1 if len(rows) else 0
            self._counters = {
                name: np.pad(column, (0, max(pairs - len(column), 0))) if len(column) < pairs else column
                for name, column in self._counters.items()
            }
        self._rates.begin_round(steady_ms)
        was_beyond: Flags = (self._columns["beyond"] > 0) & (self._columns["offset"] == rows.offset)
        return was_beyond

    @property
    def counters(self) -> Counters:
        """The totals as they are now; nothing changes them later."""
        return Counters(**{name: column.copy() for name, column in self._counters.items()})

    def update(self, rows: CommitRows, lags: Lags, places: Places, ends: Ends, *, now_ms: int, steady_ms: int) -> Progress:
        """Take over what a round has found. Commits are dated by their coordinators, so how long one stands is seen by the present time; if
        the clock is set back, nothing stands since a time to come.

        Args:
            places: the positions of the commits.
            ends: of each commit.
        """
        self._count(rows, lags, places, ends, steady_ms)
        at = self._columns
        new = at["since_ms"] == ABSENT
        stored = np.where(rows.commit_ms >= 0, np.minimum(rows.commit_ms, now_ms), now_ms)
        moved = new | (at["offset"] != rows.offset)
        for name in ("since_ms", "readable_ms", "watched_ms"):
            at[name] = np.minimum(at[name], now_ms)
        at["since_ms"] = np.where(new, stored, np.where(moved, np.maximum(stored, min(self._last_ms, now_ms)), at["since_ms"]))
        self._last_ms = now_ms
        at["offset"] = rows.offset
        at["beyond"] = lags.beyond.astype(np.int64)
        known, readable = lags.reason == KNOWN, lags.read_committed > 0
        begins = readable & (at["readable_ms"] == ABSENT)
        at["readable_ms"] = np.where(known & ~readable, ABSENT, np.where(begins, now_ms, at["readable_ms"]))
        at["watched_ms"] = np.where(known & (at["watched_ms"] == ABSENT), now_ms, at["watched_ms"])
        since = np.where(known & readable, np.maximum(at["since_ms"], at["readable_ms"]), ABSENT)
        earlier = (since != ABSENT) & (since <= at["watched_ms"])
        return Progress(stopped_since_ms=since, stopped_earlier=earlier, rate=self._rates.now(steady_ms))

    def _count(self, rows: CommitRows, lags: Lags, places: Places, ends: Ends, steady_ms: int) -> None:
        """Count what lies between where each partition was read from in the round before and where it is read from now."""
        at, start = self._columns, lags.start
        judged = np.isin(lags.reason, (KNOWN, CODES[Reason.FILLING], CODES[Reason.DAMAGED])) & (start <= ends.high_watermark)
        kept, edition = _kept(start, places, ends)
        waits = (lags.reason == CODES[Reason.FILLING]) & (kept == ABSENT) & (edition == ABSENT)
        moved = judged & ~waits & (at["start"] != ABSENT) & (start > at["start"])
        same = moved & (edition != ABSENT) & (edition == at["edition"])
        passed = np.where(same, np.maximum(kept - at["kept"], 0), 0)
        below = moved & (lags.below > 0)
        whole = below & same & (rows.offset <= at["start"])
        lost = np.where(below & ~whole, start - np.maximum(at["start"], rows.offset), 0)
        self._add("committed_records", np.where(below, 0, passed))
        self._add("lost_records", np.where(whole, passed, 0))
        self._add("lost_offsets", lost)
        self._rates.passed(np.where(below, 0, passed), steady_ms)
        taken = judged & ~waits
        at["start"] = np.where(taken, start, at["start"])
        at["kept"] = np.where(taken, kept, at["kept"])
        at["edition"] = np.where(taken, edition, at["edition"])

    def _add(self, name: str, values: Longs) -> None:
        some = np.flatnonzero(values)
        np.add.at(self._counters[name], self._key[some] >> PAIR_BITS, values[some])


def _kept(start: Longs, places: Places, ends: Ends) -> tuple[Longs, Longs]:
    """Records of committed data before each start, and the edition of that count; `ABSENT` twice where it is not known."""
    counted = ends.counted == KNOWN
    at = (
        (places.reason == KNOWN) & (places.offset == start),
        counted & (start == ends.last_stable),
        counted & (start == ends.high_watermark),
    )
    edition = np.select(at, (places.edition, ends.edition, ends.edition), ABSENT)
    kept = np.select(at, (places.data - places.aborted, ends.kept, ends.end_kept), ABSENT)
    return kept, edition
