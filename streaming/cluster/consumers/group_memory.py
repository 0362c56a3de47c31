"""What rounds remember of each partition of a group: since when it stands still or is held up, what it has read, and what it has lost.

Counters are differences of positions of one edition. What cannot be counted so is counted in offsets, or waits until its position is known.
A share group moves with all that it is done with, also where its start offset stays; it loses nothing of what it is done with.
"""

from dataclasses import dataclass

import numpy as np

from streaming.cluster.consumers.commit_times import committed_ms, is_ahead
from streaming.cluster.consumers.group_lag import ABSENT, CODES, KNOWN, Ends, LagReason, Lags, Places
from streaming.cluster.consumers.group_past import AppendedNext, GroupPast
from streaming.cluster.consumers.group_places import carried, padded
from streaming.cluster.consumers.group_rates import FadingRates, Rates
from streaming.cluster.consumers.group_shares import done_between
from streaming.cluster.consumers.lost_lately import LossMemory, LostLately
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.groups.group_rows import NOT_REPLICATED

PAIR_BITS = 32
"""A key of commits, without so many low bits, is the number of its pair of group and topic."""

LASTING_MS, SILENT_MS = 30_000, 300_000
"""A rate of less time says nothing of the next hours, nor does that of a group that has passed nothing for so long."""

_COLUMNS = (
    "offset",
    "stamp",
    "committed_ms",
    "delivered",
    "since_ms",
    "readable_ms",
    "seen_ms",
    "watched_ms",
    "held_next",
    "held_ms",
    "lost_ms",
    "lost",
    "start",
    "done",
    "before",
    "isolation",
    "edition",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupProgress:
    """What is known of each partition over the rounds so far.

    ``committed_ms``: when it was last committed, as far as stamps can be believed. ``stopped_since_ms``: since when its offset stays
    although a record is readable, `ABSENT` if that is not so; ``stopped_earlier``: that is the first round in which it was known, or when
    its next record was appended at the latest, and it may have stopped before. ``perhaps_since_ms``: since when it may have stopped, by
    the earliest time of that append. ``unmoved_ms``: since when its offset stays, whatever is readable. ``held_since_ms``: since when its
    next record is held back by a transaction: it was appended then at the latest; `ABSENT` if it is not. ``lost_ms``: when a round last
    found that records were deleted before it had read them, `ABSENT` if none did; ``lost_lately``: what they found so of late.
    ``lost_records``: what the rounds have seen deleted of what is after the offset, `ABSENT` if they have not seen or counted all of it.
    ``rate``: records a second that it has read lately, `ABSENT` if that is not known yet; ``lasting_rate``: the same of one that has read
    for `LASTING_MS`, and within the last `SILENT_MS`.
    """

    committed_ms: Longs
    stopped_since_ms: Longs
    stopped_earlier: Flags
    perhaps_since_ms: Longs
    unmoved_ms: Longs
    held_since_ms: Longs
    lost_ms: Longs
    lost_lately: LostLately
    lost_records: Longs
    rate: Rates
    lasting_rate: Rates


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counters:
    """Totals of each pair of group and topic, by its number: they only grow."""

    committed_records: Longs
    lost_records: Longs
    lost_offsets: Longs


class GroupMemory:
    """For one thread.

    Args:
        past: for whoever looks once: then a record is readable since it was appended. None for whoever watches: what happened before the
            first round is not known.
    """

    def __init__(self, past: GroupPast | None = None) -> None:
        self._past = past
        self._key: Longs = np.empty(0, np.int64)
        self._columns: dict[str, Longs] = {name: np.empty(0, np.int64) for name in _COLUMNS}
        self._rates, self._losses = FadingRates(), LossMemory()
        self._last_ms = 0
        self._counters = {name: np.empty(0, np.int64) for name in Counters.__slots__}

    def begin(self, rows: CommitRows, steady_ms: int) -> None:
        """A round begins, with these commits, at ``steady_ms`` of a clock that nobody sets."""
        if not np.array_equal(rows.key, self._key):
            of, there = carried(self._key, rows.key)
            self._columns = {name: np.where(there, padded(column)[of], ABSENT) for name, column in self._columns.items()}
            self._rates.begin(of, there, steady_ms)
            self._losses.keep(rows.key)
            self._key = rows.key
            pairs = int(rows.key[-1] >> PAIR_BITS) + 1 if len(rows) else 0
            self._counters = {
                name: np.pad(column, (0, max(pairs - len(column), 0))) if len(column) < pairs else column
                for name, column in self._counters.items()
            }
        self._rates.begin_round(steady_ms)

    @property
    def counters(self) -> Counters:
        """The totals as they are now; nothing changes them later."""
        return Counters(**{name: column.copy() for name, column in self._counters.items()})

    def update(
        self, rows: CommitRows, lags: Lags, appended: AppendedNext, places: Places, ends: Ends, *, now_ms: int, steady_ms: int
    ) -> GroupProgress:
        """Take over what a round has found. Commits are dated by their coordinators, so how long one stands is seen by the present time; if
        the clock is set back, nothing stands since a time to come.

        Args:
            appended: when their next records were.
            places: the positions of the commits.
            ends: of each commit.
        """
        losing = self._count(rows, lags, places, ends, now_ms=now_ms, steady_ms=steady_ms)
        at = self._columns
        new = at["since_ms"] == ABSENT
        stored = np.where(rows.commit_ms >= 0, np.minimum(rows.commit_ms, now_ms), now_ms)
        waits = rows.offset == NOT_REPLICATED  # what counts is not known for a moment: it has not moved by that
        moved = ~waits & (new | (at["offset"] != rows.offset) | (rows.share & (at["delivered"] != rows.delivered)))
        for name in ("since_ms", "readable_ms", "seen_ms", "watched_ms", "held_ms", "lost_ms"):
            at[name] = np.minimum(at[name], now_ms)
        at["lost_ms"] = np.where(losing, now_ms, at["lost_ms"])
        self._date(rows, waits, now_ms)
        undated: Flags = np.zeros(len(rows), np.bool_)
        if self._past is not None:
            since_ms = self._past.since(rows)
            stored, undated = np.where(since_ms >= 0, np.minimum(since_ms, now_ms), now_ms), is_ahead(since_ms, now_ms)
        at["since_ms"] = np.where(new & ~waits, stored, np.where(moved, np.maximum(stored, min(self._last_ms, now_ms)), at["since_ms"]))
        self._last_ms = now_ms
        at["offset"] = np.where(waits, at["offset"], rows.offset)
        at["delivered"] = np.where(waits, at["delivered"], rows.delivered)
        known, readable = lags.reason == KNOWN, lags.left > 0
        begins = readable & (at["readable_ms"] == ABSENT)
        began_ms = now_ms if self._past is None else np.minimum(appended.latest_ms, now_ms)
        at["readable_ms"] = np.where(known & ~readable, ABSENT, np.where(begins, began_ms, at["readable_ms"]))
        at["seen_ms"] = np.where(known, np.where(readable, now_ms, ABSENT), at["seen_ms"])
        at["watched_ms"] = np.where(known & (at["watched_ms"] == ABSENT), now_ms, at["watched_ms"])
        recounted = (lags.reason == CODES[LagReason.FILLING]) & (lags.offsets > 0)  # as after each compaction: it stands on meanwhile
        stands = (known & readable) | (recounted & (at["seen_ms"] != ABSENT) & (at["seen_ms"] >= at["since_ms"]))
        since = np.where(stands, np.maximum(at["since_ms"], at["readable_ms"]), ABSENT)
        least_ms = np.where(undated, 0, at["since_ms"])  # a coordinator's stamp of a time to come shows nothing
        perhaps = since if self._past is None else np.where(since != ABSENT, np.maximum(least_ms, appended.earliest_ms), ABSENT)
        earlier = (since != ABSENT) & ((perhaps < since) | ((since <= at["watched_ms"]) & np.bool_(self._past is None)))
        return GroupProgress(
            committed_ms=at["committed_ms"],
            stopped_since_ms=since,
            stopped_earlier=earlier,
            perhaps_since_ms=perhaps,
            unmoved_ms=at["since_ms"],
            held_since_ms=self._held(lags, appended, now_ms),
            lost_ms=at["lost_ms"],
            lost_lately=self._losses.of(rows.key) if self._past is None else LostLately.unwatched(len(rows)),
            lost_records=np.where(at["start"] == lags.start, at["lost"], ABSENT),
            rate=self._rates.now(steady_ms),
            lasting_rate=self._rates.steady(steady_ms, for_ms=LASTING_MS, silent_ms=SILENT_MS),
        )

    def _date(self, rows: CommitRows, waits: Flags, now_ms: int) -> None:
        """Take over when the commits were made; of one that is not known for a moment it stays."""
        at = self._columns
        dated = committed_ms(rows.commit_ms, at["committed_ms"], at["stamp"], self._last_ms, now_ms)
        at["committed_ms"] = np.where(waits, np.minimum(at["committed_ms"], now_ms), dated)
        at["stamp"] = np.where(waits, at["stamp"], rows.commit_ms)

    def _held(self, lags: Lags, appended: AppendedNext, now_ms: int) -> Longs:
        """Since when the next record of each is held back. Nothing above the last stable offset was ever readable, so since its append."""
        at, held = self._columns, lags.held
        began_ms = np.minimum(appended.latest_ms, now_ms)
        begins = held & ((at["held_ms"] == ABSENT) | (at["held_next"] != lags.next_offset))
        goes_on = held | (lags.reason != KNOWN)  # what is not known for a moment has not ended by that
        at["held_ms"] = np.where(begins, began_ms, np.where(goes_on, at["held_ms"], ABSENT))
        at["held_next"] = np.where(begins, lags.next_offset, at["held_next"])
        return np.where(held, at["held_ms"], ABSENT)

    def _count(self, rows: CommitRows, lags: Lags, places: Places, ends: Ends, *, now_ms: int, steady_ms: int) -> Flags:
        """Count what lies between where each partition was read from in the round before and where it is read from now.

        Returns which of them have lost something.
        """
        at, start = self._columns, lags.start
        done = np.where(rows.share, np.maximum(rows.delivered - done_between(rows, rows.offset, start).most, 0), 0)
        judged = np.isin(lags.reason, (KNOWN, CODES[LagReason.FILLING], CODES[LagReason.DAMAGED])) & (start <= ends.high_watermark)
        before, edition = records_before(start, places, ends, lags.reads_uncommitted)
        waits = (lags.reason == CODES[LagReason.FILLING]) & (before == ABSENT) & (edition == ABSENT)
        further = (start > at["start"]) | ((start == at["start"]) & (done > at["done"]))
        moved = judged & ~waits & (at["start"] != ABSENT) & further
        same = moved & (edition != ABSENT) & (edition == at["edition"]) & (at["isolation"] == lags.reads_uncommitted)
        between = np.where(same, np.maximum(before - at["before"], 0), 0)
        passed = np.where(same, np.maximum(before - at["before"] + done - at["done"], 0), 0)
        below = moved & (lags.below > 0)
        whole = below & same & (rows.offset <= at["start"])
        began = np.maximum(at["start"], rows.offset)
        done_before = done_between(rows, began, np.where(below, start, began)).most
        lost_records = np.where(whole, np.maximum(between - done_before, 0), 0)
        lost = np.where(below & ~whole, np.maximum(start - began - done_before, 0), 0)
        self._add("committed_records", np.where(below, 0, passed))
        self._add("lost_records", lost_records)
        self._add("lost_offsets", lost)
        self._rates.passed(np.where(below, 0, passed), steady_ms)
        taken = judged & ~waits
        self._rates.restart(np.flatnonzero(taken & (start < at["start"])), steady_ms)  # it was set back
        uncounted = (lost > 0) | (at["offset"] != rows.offset) | (at["lost"] == ABSENT) | rows.share
        so_far = np.where(uncounted, ABSENT, at["lost"] + lost_records)
        at["lost"] = np.where(taken, np.where(lags.below == 0, 0, so_far), at["lost"])
        at["start"] = np.where(taken, start, at["start"])
        at["done"] = np.where(taken, done, at["done"])
        at["before"] = np.where(taken, before, at["before"])
        at["isolation"] = np.where(taken, lags.reads_uncommitted, at["isolation"])
        at["edition"] = np.where(taken, edition, at["edition"])
        losing: Flags = (lost_records > 0) | (lost > 0)
        self._losses.add(rows.key[losing], lost_records[losing], lost[losing], now_ms)
        return losing

    def _add(self, name: str, values: Longs) -> None:
        some = np.flatnonzero(values)
        np.add.at(self._counters[name], self._key[some] >> PAIR_BITS, values[some])


def records_before(start: Longs, places: Places, ends: Ends, reads_uncommitted: Flags) -> tuple[Longs, Longs]:
    """Records before each start that a group of that isolation gets, and the edition of that count; `ABSENT` twice where it is not
    known."""
    counted = ends.counted == KNOWN
    at = (
        (places.reason == KNOWN) & (places.offset == start),
        counted & (start == ends.last_stable),
        counted & (start == ends.high_watermark),
    )
    edition = np.select(at, (places.edition, ends.edition, ends.edition), ABSENT)
    kept = np.select(at, (places.kept, ends.kept, ends.end_kept), ABSENT)
    data = np.select(at, (places.data, ends.stable_data, ends.data), ABSENT)
    return np.where(reads_uncommitted, data, kept), edition
