"""What rounds count of each partition of a group: the records that it has read, and those that were deleted before it had read them.

Counters are differences of positions of one edition. Steps that cannot be counted so are counted in offsets, or wait for their positions.
So are records that are deleted while their transaction is open: readers of committed data never get them if it is aborted.
A commit that is perhaps older than the log start waits, too: what its group had read by then is not known yet. A record that is deleted
after a commit is lost when no consumer has it in memory. A share group has done more than its start offset shows; it loses nothing of what
it is done with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streaming.broker.protocol.history_json import KeptCommit
from streaming.cluster.consumers.below_start import (
    MEMBERS,
    NOBODY,
    BelowStart,
    Pace,
    Step,
    kept_pieces,
    recalled_pieces,
)
from streaming.cluster.consumers.group_lag import ABSENT, CODES, KNOWN, Ends, LagReason, Lags, Places, done_between, padded
from streaming.cluster.view.fading_rates import FadingRates, Rates
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows

LOST_LATELY_MS = 24 * 3_600_000
"""For so long a loss is remembered."""

_HOUR_MS = 3_600_000
_NONE: Longs = np.empty(0, np.int64)

PAIR_BITS = 32
"""A key of commits, without so many low bits, is the number of its pair of group and topic."""

LASTING_MS, SETTLED_MS, SILENT_MS = 30_000, 120_000, 300_000
"""A rate of less time says nothing of the next hours, nor does that of a group that has passed nothing for so long. That a group is too
slow is said after a longer time: what it had read when it was first seen is not known, so that its first rates are too low."""

_COLUMNS = (
    "lost_ms",
    "losing_ms",
    "lost",
    "open",
    "below_ms",
    "moved_ms",
    "looked_ms",
    "offset",
    "start",
    "done",
    "before",
    "isolation",
    "edition",
)


class CountingMemory:
    """Remembers from poll to poll where each commit was read from, and counts what was read and what was lost since then.

    ``watches``: there are polls before and after, which see what was lost of late; a command that polls once has not seen it. Only the
    thread that polls uses it.
    """

    def __init__(self, *, watches: bool) -> None:
        self._watches = watches
        self._columns: dict[str, Longs] = {name: np.empty(0, np.int64) for name in _COLUMNS}
        self._rates, self._losses = FadingRates(), LossMemory()
        self._below: dict[int, BelowStart] = {}
        self._counters = {name: np.empty(0, np.int64) for name in Counters.__slots__}

    def keep(self, rows_before: Longs, there: Flags, key: Longs, steady_ms: int) -> None:
        """There are other commits now, with these keys: each was that row before, if it was there."""
        self._columns = {name: np.where(there, padded(column)[rows_before], ABSENT) for name, column in self._columns.items()}
        self._rates.begin(rows_before, there, steady_ms)
        self._losses.keep(key)
        some = {*key.tolist()} if self._below else ()
        self._below = {each: below for each, below in self._below.items() if each in some}
        pairs = int(key[-1] >> PAIR_BITS) + 1 if len(key) else 0
        self._counters = {
            name: np.pad(column, (0, max(pairs - len(column), 0))) if len(column) < pairs else column
            for name, column in self._counters.items()
        }

    def recall(self, key: Longs, items: Longs, kept: Sequence[KeptCommit]) -> None:
        """Take over what a job before has seen these rows lose; ``key``: of all rows."""
        lost_ms = np.array([each.lost_ms for each in kept])
        self._columns["lost_ms"][items] = lost_ms
        self._columns["losing_ms"][items] = [each.losing_since_ms for each in kept]
        lost = np.flatnonzero(lost_ms != ABSENT)
        amounts = np.array([(each.lost_records, each.lost_offsets) for each in kept])[lost]
        self._losses.recall(key[items[lost]], amounts[:, 0], amounts[:, 1], lost_ms[lost])
        for item, each in zip(items.tolist(), kept, strict=True):
            if each.deleted:
                self._below[int(key[item])] = recalled_pieces(each.offset, each.deleted)
                self._columns["below_ms"][item], self._columns["moved_ms"][item], self._columns["open"][item] = 0, each.unmoved_ms, 1

    def begin_round(self, steady_ms: int) -> None:
        """A round begins."""
        self._rates.begin_round(steady_ms)

    @property
    def counters(self) -> Counters:
        """The totals as they are now; nothing changes them later."""
        return Counters(**{name: column.copy() for name, column in self._counters.items()})

    def update(
        self,
        rows: CommitRows,
        lags: Lags,
        places: Places,
        ends: Ends,
        *,
        holders: Longs,
        moves: tuple[Longs, Longs],
        holds_ms: Longs,
        now_ms: int,
        steady_ms: int,
    ) -> Counted:
        """Count what lies between where each partition was read from in the round before and where it is read from now.

        Args:
            holders: as `below_start.holders`.
            moves: when each commit moved last, as of the round before and now.
            holds_ms: for so long after that a consumer may have in memory what comes after it.
        """
        at, start = self._columns, lags.start
        done = np.where(rows.share, np.maximum(rows.delivered - done_between(rows, rows.offset, start).most, 0), 0)
        before, edition = records_before(start, places, ends, lags.reads_uncommitted)
        passed = self._passed(rows, lags, ends, done=done, before=before, edition=edition)
        below = passed.taken & (lags.below > 0)
        at["below_ms"] = np.where(below & (at["below_ms"] == ABSENT), np.where(at["start"] == ABSENT, 0, now_ms), at["below_ms"])
        at["moved_ms"] = np.where(passed.taken & (at["offset"] != ABSENT) & (at["offset"] != rows.offset), now_ms, at["moved_ms"])
        quiet_ms = np.where(holders == MEMBERS, np.maximum(moves[1], at["below_ms"]), at["moved_ms"])
        holds = (holders != NOBODY) & (quiet_ms >= 0) & (now_ms - quiet_ms < holds_ms)
        self._pass_below(rows, ends, passed, below, holds, (moves[1] - moves[0]) / 1000, steady_ms)
        at["looked_ms"] = np.where(passed.taken, steady_ms, at["looked_ms"])
        self._add(rows, passed, now_ms, steady_ms)
        self._rates.restart(np.flatnonzero(passed.taken & (start < at["start"])), steady_ms)  # it was set back
        new = {
            "offset": rows.offset,
            "done": done,
            "before": before,
            "isolation": lags.reads_uncommitted,
            "edition": edition,
            "start": start,
        }
        for name, values in new.items():
            at[name] = np.where(passed.taken, values, at[name])
        at["lost"] = np.where(rows.share, np.where(lags.below == 0, 0, ABSENT), at["lost"])
        losing = (passed.lost_records > 0) | (passed.lost_offsets > 0)
        goes_on = (at["lost_ms"] != ABSENT) & (now_ms - at["lost_ms"] <= LOST_LATELY_MS)
        at["losing_ms"] = np.where(losing & ~goes_on, now_ms, np.minimum(at["losing_ms"], now_ms))
        at["lost_ms"] = np.where(losing, now_ms, np.minimum(at["lost_ms"], now_ms))
        return Counted(
            lost_ms=at["lost_ms"],
            losing_since_ms=at["losing_ms"],
            lost_lately=self._losses.of(rows.key) if self._watches else LostLately.unwatched(len(rows)),
            lost_records=np.where((at["start"] == lags.deleted_to) & (at["offset"] == rows.offset), at["lost"], ABSENT),
            buffered=(lags.below > 0) & (at["below_ms"] != ABSENT) & holds,
            rate=self._rates.now(steady_ms),
            lasting_rate=self._rates.steady(steady_ms, for_ms=LASTING_MS, silent_ms=SILENT_MS),
            settled_rate=self._rates.steady(steady_ms, for_ms=SETTLED_MS, silent_ms=SILENT_MS),
        )

    def deleted(self, key: Longs) -> dict[int, list[int]]:
        """What `recall` takes back of what is deleted after commits and perhaps not lost, by their keys."""
        return {each: kept_pieces(self._below[each]) for each in key[self._columns["open"] > 0].tolist()}

    def deleted_to(self, rows: CommitRows, start: Longs, doubtful: Flags) -> Longs:
        """Up to where it is known that what is before is deleted, and was so after the commit: of doubtful commits up to where it was known
        before."""
        known = np.where(self._columns["start"] == ABSENT, rows.offset, self._columns["start"])
        return np.where(doubtful, np.minimum(known, start), start)

    def _passed(self, rows: CommitRows, lags: Lags, ends: Ends, *, done: Longs, before: Longs, edition: Longs) -> _Passed:
        at, start = self._columns, lags.start
        judged = np.isin(lags.reason, (KNOWN, CODES[LagReason.FILLING], CODES[LagReason.DAMAGED])) & (start <= ends.high_watermark)
        filling = (lags.reason == CODES[LagReason.FILLING]) & (before == ABSENT) & (edition == ABSENT)
        waits = filling | (lags.deleted_to < start)
        further = (start > at["start"]) | ((start == at["start"]) & (done > at["done"]))
        moved = judged & ~waits & (at["start"] != ABSENT) & further
        same = moved & (edition != ABSENT) & (edition == at["edition"]) & (at["isolation"] == lags.reads_uncommitted)
        between = np.where(same, np.maximum(before - at["before"], 0), ABSENT)
        below = moved & (lags.below > 0)
        began = np.maximum(at["start"], rows.offset)
        done_before = done_between(rows, began, np.where(below, start, began)).most
        shared, whole = below & rows.share, same & (rows.offset <= at["start"])
        return _Passed(
            taken=judged & ~waits,
            records=np.where(same & ~below, np.maximum(between + done - at["done"], 0), 0),
            offsets=np.zeros(len(rows), np.int64),
            deleted=np.where(below & (lags.reads_uncommitted | ~ends.undecided), between, ABSENT),
            lost_records=np.where(shared & whole, np.maximum(between - done_before, 0), 0),
            lost_offsets=np.where(shared & ~whole, np.maximum(start - began - done_before, 0), 0),
        )

    def _pass_below(self, rows: CommitRows, ends: Ends, passed: _Passed, below: Flags, holds: Flags, stood: Rates, steady_ms: int) -> None:
        """Put in what has become of records that are deleted after commits, where that has changed."""
        at = self._columns
        seen, start = passed.taken & ~rows.share, np.maximum(rows.offset, ends.log_start)
        concerned = seen & (at["below_ms"] != ABSENT)
        changed = concerned & ((start != at["start"]) | (rows.offset != at["offset"]) | ((at["open"] > 0) & ~holds))
        at_once = seen & ~concerned & holds & (at["start"] != ABSENT) & (at["start"] < ends.log_start)  # deleted and passed in one round
        if not (changed | at_once).any():
            return
        rate, looked = np.maximum(self._rates.now(steady_ms), 0), (steady_ms - at["looked_ms"]) / 1000
        for row in np.flatnonzero(changed | (at_once & (rate > 0))).tolist():
            log_start, upto = int(ends.log_start[row]), int(at["start"][row])
            pace, after_crash = Pace(rate[row], stood[row], looked[row]), int(ends.start_after_crash[row])
            lasting = log_start if after_crash == ABSENT else after_crash
            state, step = self._step(row, rows, log_start, lasting, int(passed.deleted[row]), pace, holds=bool(holds[row]))
            unseen = max(log_start - upto, 0) if holds[row] and not below[row] and upto != ABSENT else 0
            self._below[int(rows.key[row])] = state  # without pieces it is kept for its moves: how the group reads is known the next time
            if below[row]:
                at["lost"][row], at["open"][row] = state.records, state.is_open
            else:
                at["lost"][row], at["open"][row], at["below_ms"][row] = 0, 0, ABSENT
            passed.lost_records[row], passed.lost_offsets[row] = step.lost_records, step.lost_offsets
            passed.records[row] = max(passed.records[row] - (unseen if step.jumped else 0), 0) + step.read_records
            passed.offsets[row] = max(step.read_offsets - (0 if step.jumped else unseen), 0)

    def _step(
        self, row: int, rows: CommitRows, log_start: int, lasting: int, deleted: int, pace: Pace, *, holds: bool
    ) -> tuple[BelowStart, Step]:
        """What is deleted after a commit by now.

        Args:
            lasting: the log start that no crash takes back.
            deleted: records since the round before, `ABSENT` if they are not counted.
        """
        offset, before = int(rows.offset[row]), int(self._columns["start"][row])
        state, step = self._below.get(int(rows.key[row]), BelowStart(offset)), Step()
        back = state.take_back(log_start)  # as of a topic that was created again, or where a crash has brought records back
        if not state.pieces:
            state = BelowStart(offset if before == ABSENT or back else before, moves=state.moves)
        if log_start > state.end:
            told = before == ABSENT or any(each.told for each in back) or (offset >= log_start and not holds)
            state.delete(log_start, deleted, told=told)
        if offset != state.begin:
            state.move(offset, log_start, None if before == ABSENT else pace, step)
        if not holds:
            state.give_up(lasting, step)
        return state, step

    def _add(self, rows: CommitRows, passed: _Passed, now_ms: int, steady_ms: int) -> None:
        """Add up what is passed and lost, by pair and lately."""
        totals = {"committed_records": passed.records, "lost_records": passed.lost_records, "lost_offsets": passed.lost_offsets}
        for name, values in totals.items():
            some = np.flatnonzero(values)
            np.add.at(self._counters[name], rows.key[some] >> PAIR_BITS, values[some])
        self._rates.passed(passed.records + passed.offsets, steady_ms)
        losing = (passed.lost_records > 0) | (passed.lost_offsets > 0)
        self._losses.add(rows.key[losing], passed.lost_records[losing], passed.lost_offsets[losing], now_ms)


class LossMemory:
    """Remembers losses by the keys of their commits. Only the thread that polls uses it.

    What the partitions of groups have lost within the last 24 hours: how much, and when last. Few partitions lose something, and few
    of those often. So losses are kept apart from the commits, those of one hour as one: they go together, a day after the last of
    them.
    """

    def __init__(self) -> None:
        self._key, self._hour, self._last_ms, self._records, self._offsets = (_NONE,) * 5

    def keep(self, key: Longs) -> None:
        """Forget the losses of commits that are not among these, sorted."""
        if len(self._key):
            self._choose(np.isin(self._key, key))

    def add(self, key: Longs, records: Longs, offsets: Longs, now_ms: int) -> None:
        """Losses of now. Losses that are a day old are forgotten, and none was at a time to come, if the clock was set back."""
        if len(self._key):
            self._last_ms = np.minimum(self._last_ms, now_ms)
            self._choose(now_ms - self._last_ms <= LOST_LATELY_MS)
        self.recall(key, records, offsets, np.full(len(key), now_ms))

    def recall(self, key: Longs, records: Longs, offsets: Longs, at_ms: Longs) -> None:
        """Losses of other times."""
        if not len(key):
            return
        hour = at_ms // _HOUR_MS
        both = np.stack([np.append(self._key, key), np.append(self._hour, hour)])
        (self._key, self._hour), item = np.unique(both, axis=1, return_inverse=True)
        self._last_ms = self._joined(np.maximum, item, self._last_ms, at_ms)
        self._records = self._joined(np.add, item, self._records, records)
        self._offsets = self._joined(np.add, item, self._offsets, offsets)

    def of(self, key: Longs) -> LostLately:
        """What each of these commits, sorted by their keys, has lost."""
        records, offsets, last_ms = np.zeros(len(key), np.int64), np.zeros(len(key), np.int64), np.full(len(key), ABSENT)
        if len(self._key):
            item = np.searchsorted(key, self._key)
            np.add.at(records, item, self._records)
            np.add.at(offsets, item, self._offsets)
            np.maximum.at(last_ms, item, self._last_ms)
        return LostLately(records=records, offsets=offsets, last_ms=last_ms)

    def _joined(self, how: np.ufunc, item: Longs, before: Longs, now: Longs) -> Longs:
        joined = np.zeros(len(self._key), np.int64)
        how.at(joined, item.ravel(), np.append(before, now))
        return joined

    def _choose(self, some: Flags) -> None:
        if not some.all():
            columns = self._key, self._hour, self._last_ms, self._records, self._offsets
            self._key, self._hour, self._last_ms, self._records, self._offsets = (column[some] for column in columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LostLately:
    """One item for each commit: what was lost in records, and in offsets whose records were not counted, and when last, Unix
    milliseconds; 0, 0 and `ABSENT` where no loss was seen, and `ABSENT` in all where it was polled only once.
    """

    records: Longs
    offsets: Longs
    last_ms: Longs

    @classmethod
    def unwatched(cls, count: int) -> LostLately:
        """The losses of so many commits that are polled only once: what was lost before is not known."""
        unknown = np.full(count, ABSENT, np.int64)
        return cls(records=unknown, offsets=unknown, last_ms=unknown)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counters:
    """Totals of each pair of group and topic, by its number: they only grow."""

    committed_records: Longs
    lost_records: Longs
    lost_offsets: Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counted:
    """How much each partition has read and lost over the rounds so far.

    ``lost_records``: what the rounds have seen deleted of what is after the offset, `ABSENT` if they have not seen or counted all of it.
    """

    lost_ms: Longs  # when a round last found that records were deleted before it had read them, `ABSENT` if none did
    losing_since_ms: Longs  # the first of those losses that came within `LOST_LATELY_MS` of each other up to that one
    lost_lately: LostLately  # what rounds found so of late
    lost_records: Longs
    buffered: Flags  # some of its consumers may have that in memory
    rate: Rates  # records a second that it has read lately, `ABSENT` if that is not known yet
    lasting_rate: Rates  # the same of one that has read for `LASTING_MS`, and within the last `SILENT_MS`
    settled_rate: Rates  # the same of one that has read for `SETTLED_MS`


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Passed:
    """What lies between where each partition was read from before and where it is read from now."""

    taken: Flags  # it is known where that is
    records: Longs
    offsets: Longs  # what is read, where records are not counted
    deleted: Longs  # records that were deleted after the commit, `ABSENT` if they are not counted
    lost_records: Longs
    lost_offsets: Longs  # what is lost, where records are not counted
