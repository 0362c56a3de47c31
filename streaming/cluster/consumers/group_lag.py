"""The lag of groups, and what changes it: newer ends of logs, records that share groups are done with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streaming.cluster.view.transaction_columns import READ_AFTER_MS
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.groups.number_ranges import after, between

Codes = NDArray[np.int8]

ABSENT = -1
"""A number that is not known, or a time that does not exist."""

KNOWN = np.int8(-1)
"""The code of a partition whose lag is known; every other code is an index in `REASONS`."""

RETRIED_ROUNDS = 4
"""A position that is not known is asked for again after so many rounds: an agent fills its ladders for minutes. One that was known in the
round before is asked for again in the next: a file was deleted while its agent looked, and its next listing shows that."""

LOOKED_MS = 10_000
"""An agent that is not behind has looked at each log within so long."""

WAITS_MS = 60_000
"""For so long an offset within the log counts in place of the newer one, and then nothing is known."""


def done_between(rows: CommitRows, first: Longs, end: Longs) -> Done:
    """What each commit's group is done with from one offset on and before another; 0 of all that are no share groups."""
    least, most = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for row in np.flatnonzero(rows.share & (rows.offset >= 0) & (end > first)).tolist():
        ranges = rows.done[row]
        if ranges is None:
            most[row] = min(int(rows.delivered[row]), int(end[row] - first[row]))
        else:
            least[row] = most[row] = between(ranges, int(first[row]), int(end[row]))
    return Done(least, most)


class Done(NamedTuple):
    """How many offsets of each range are done with, at least and at most: the same, but where only the number of all is known."""

    least: Longs
    most: Longs


def first(*codes: Codes) -> Codes:
    """The first code of each item that is a reason."""
    found = codes[0]
    for each in codes[1:]:
        found = np.where(found == KNOWN, each, found)
    return found


def lags(committed: Committed, ends: Ends, places: Places) -> Lags:
    """Compute the lag of partitions; all three have one item for each."""
    start = committed.start
    after_end = (committed.offset > ends.log_end) & (ends.log_end >= 0)
    beyond = after_end & committed.beyond
    cut_short = ends.damaged & (committed.offset >= ends.log_end) & (ends.log_end >= 0)
    outside = coded(beyond, LagReason.BEYOND), coded(after_end, LagReason.NEWER)
    blocked = first(committed.reason, ends.reason, coded(cut_short, LagReason.DAMAGED), *outside)
    at_end = (start >= ends.high_watermark) & (ends.high_watermark >= 0)
    aborted = ends.data - ends.end_kept > places.aborted  # one of them may be next, and is looked up only if it was asked for
    missing = (places.offset != start) | ((places.reason == KNOWN) & (places.edition != ends.edition))
    missing |= (places.reason == KNOWN) & committed.reads_uncommitted & (places.reads_uncommitted < 1) & aborted
    uncounted = first(ends.counted, coded(missing, LagReason.FILLING), places.reason)
    reason = first(blocked, np.where(at_end, KNOWN, uncounted))
    known = reason == KNOWN
    left = known & ~at_end
    uncommitted = np.where(left, np.maximum(ends.data - places.data, 0), 0)
    below_stable = left & (start < ends.last_stable)
    kept = np.where(below_stable, np.maximum(ends.kept - (places.data - places.aborted), 0), 0)
    # of a share group, offsets are done with, markers too, and it reads aborted records unless it is told otherwise
    delivered = np.where(committed.share, np.maximum(committed.delivered, 0), 0)
    bound = np.minimum(uncommitted, np.maximum(ends.high_watermark - start - np.maximum(delivered - committed.done_most, 0), 0))
    unread = left & (places.next_offset >= 0) & (places.next_offset < ends.high_watermark) & ~(committed.share & (bound == 0))
    offsets = np.where(blocked == KNOWN, np.maximum(ends.high_watermark - committed.offset - delivered, 0), ABSENT)
    offsets = np.where(ends.high_watermark >= 0, offsets, ABSENT)
    there = (ends.log_start >= 0) & (committed.offset >= 0)
    gone, below = (
        np.where(there, np.maximum(first - committed.offset - committed.done_least, 0), 0) for first in (start, committed.deleted_to)
    )
    return Lags(
        reason=reason,
        start=start,
        offsets=offsets,
        offsets_there=np.where(offsets >= 0, np.maximum(offsets - gone, 0), ABSENT),
        read_committed=np.where(known, np.where(committed.share, bound, kept), ABSENT),
        read_uncommitted=np.where(known, np.where(committed.share, bound, uncommitted), ABSENT),
        bytes=np.where(known, np.where(left & ~(committed.share & (bound == 0)), np.maximum(ends.bytes - places.bytes, 0), 0), ABSENT),
        **{name: np.where(unread, getattr(places, name), ABSENT) for name in _OF_NEXT},
        beyond=beyond,
        below=below,
        deleted_to=committed.deleted_to,
        held=unread & (places.next_offset >= ends.last_stable) & ~committed.share & ~committed.reads_uncommitted,
        reads_uncommitted=committed.reads_uncommitted,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Committed:
    """What is known of partitions without their logs, one item for each.

    ``share``: of a share group, of which ``offset`` is the start offset, and ``delivered`` offsets after it are done with; between
    ``done_least`` and ``done_most`` of these are before ``start``.
    """

    offset: Longs  # the committed one
    start: Longs  # from where on there is something to read
    reason: Codes  # the code of why it cannot count
    beyond: Flags  # if it is after the end of the log that is known, it is known to be beyond the end
    reads_uncommitted: Flags  # of a group that is known to read with ``read_uncommitted``
    share: Flags
    delivered: Longs
    done_least: Longs
    done_most: Longs
    deleted_to: Longs  # what is before it is deleted, and the commit is no older; ``start``, but where the commit is perhaps older


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ends:
    """Logs that groups read, one item for each. `ABSENT` where a number is not known.

    ``data``, ``control``, ``bytes``: up to the high watermark.
    """

    reason: Codes  # the code of why nothing can be known of it
    counted: Codes  # why its records cannot be
    log_start: Longs
    start_after_crash: Longs  # where it begins again if its broker is killed now, `ABSENT`: there
    log_end: Longs
    high_watermark: Longs
    last_stable: Longs
    open_from: Longs  # as in `GroupLogs`
    edition: Longs  # of the counts below
    data: Longs
    stable_data: Longs  # up to the last stable offset
    kept: Longs  # data that is not aborted up to there
    end_kept: Longs  # up to the high watermark, where transactions that are open still count
    control: Longs
    bytes: Longs
    damaged: Flags  # what comes after ``log_end`` is no batch, so that the log may have gone on

    def take(self, items: Longs) -> Ends:
        """The logs of some partitions, each by its index."""
        return Ends(**{name: getattr(self, name)[items] for name in self.__slots__})

    @property
    def undecided(self) -> Flags:
        """Whether a transaction is open from before the log start: how much of what is deleted is aborted is not known yet."""
        return (self.open_from >= 0) & (self.open_from < self.log_start)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """The positions from which partitions are read, one item for each; ``offset`` is `ABSENT` where none was answered yet.

    ``edition`` to ``bytes``: counts of everything before the offset. ``next_`` are of the next data record: its offset, `ABSENT` for none,
    its own time, the time when it was appended, the size of its batch, the base offset of its segment, and its batch's position there; if
    its append was not seen, it was between ``next_earliest_ms`` and ``next_latest_ms``.
    ``reads_uncommitted``: 1 if that may be an aborted one. ``deleted_``: as in `streaming.broker.ladder.positions.Position`.
    """

    reason: Codes
    offset: Longs
    edition: Longs
    data: Longs
    aborted: Longs
    control: Longs
    bytes: Longs
    next_offset: Longs
    next_timestamp_ms: Longs
    next_append_ms: Longs
    next_batch_bytes: Longs
    next_segment: Longs
    next_position: Longs
    reads_uncommitted: Longs
    deleted_least: Longs
    deleted_most: Longs
    next_earliest_ms: Longs
    next_latest_ms: Longs

    @property
    def kept(self) -> Longs:
        """Records of committed data before each position."""
        return self.data - self.aborted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lags:
    """The lag of partitions, one item for each, `ABSENT` where it is not known.

    ``offsets`` may be known all the same. ``read_committed`` and ``read_uncommitted``: records. ``below``: so many offsets before the log
    start, without those that a share group is known to be done with, nor what is after ``deleted_to``, which is as in `Committed`.
    ``next_``: as in `Places`, `ABSENT` where nothing is left. ``held``: the next record is behind an open transaction, and not known to be
    readable: ``reads_uncommitted``, as in `Committed`, is not set.
    """

    reason: Codes  # the code of why the records are not known
    start: Longs  # the offset from which they are counted
    offsets: Longs
    offsets_there: Longs  # what is left of ``offsets`` without all that are before the log start
    read_committed: Longs
    read_uncommitted: Longs
    bytes: Longs
    next_offset: Longs
    next_timestamp_ms: Longs
    next_append_ms: Longs
    next_batch_bytes: Longs
    next_segment: Longs
    next_position: Longs
    next_earliest_ms: Longs
    next_latest_ms: Longs
    beyond: Flags  # the committed offset is after the log's end
    below: Longs
    deleted_to: Longs
    held: Flags
    reads_uncommitted: Flags

    @property
    def left(self) -> Longs:
        """The records that the group has yet to get: by the isolation that it is known to have, else with ``read_committed``."""
        return np.where(self.reads_uncommitted, self.read_uncommitted, self.read_committed)

    @property
    def next_ms(self) -> Longs:
        """Since when the next record of each partition is there: since it was appended, or since its own time where that was not seen."""
        return np.where(self.next_append_ms >= 0, self.next_append_ms, self.next_timestamp_ms)


def coded(flags: Flags, reason: LagReason) -> Codes:
    """The reason where a flag is set."""
    return np.where(flags, CODES[reason], KNOWN)


class LagReason(StrEnum):
    """Why the lag of a partition is not known; the first one that applies is shown."""

    NOT_OBSERVED = "coordinator_not_observed"  # no agent reads the current replica of the coordinator's log
    UNREAD = "coordinator_behind"  # its agent has not read all of that log yet
    CHECKPOINT = "checkpoint_unread"  # the checkpoint of a streaming query cannot be read now
    NOT_REPLICATED = "commit_not_replicated"  # only commits above the high watermark of the coordinator's log are known
    NOT_UNDERSTOOD = "not_understood"  # the commit is damaged or of a later version
    ELSEWHERE = "not_in_cluster"  # a streaming query reads a topic that is not there: perhaps one of another cluster
    TOPIC_GONE = "topic_gone"
    MADE_ANEW = "topic_made_anew"  # the commit is of an earlier topic with this name
    LEADER = "leader_not_observed"  # no agent reads the partition's leader, or it does not answer
    UNREADABLE = "log_unreadable"  # its log dir is read, but not its log: it may not be, or cannot be now
    NEWER = "commit_newer"  # the committed offset is after the end of the log as it is known, which is perhaps older
    BEYOND = "beyond_end"  # the committed offset is after the end of the log: where the consumer will begin is not on disk
    REMOTE = "remote_log_start"  # the next record is only in remote storage
    DAMAGED = "damaged"
    FILLING = "filling"  # the agent has not counted the log so far yet


REASONS = tuple(LagReason)


CODES = {reason: np.int8(code) for code, reason in enumerate(REASONS)}


_OF_NEXT = tuple(name for name in Places.__slots__ if name.startswith("next_"))
"""The columns of `Places` about the next record."""


def unanswered(lag: Lags, silent: Flags) -> Lags:
    """The same, where the agents of some partitions do not answer: what they have not counted yet no agent counts now."""
    return replace(lag, reason=np.where(silent & (lag.reason == CODES[LagReason.FILLING]), CODES[LagReason.LEADER], lag.reason))


def first_undone(rows: CommitRows) -> Longs:
    """The first offset of each commit that its group is not done with, whatever has been deleted.

    What share groups are done with after their start offsets: from where on they have something left, and how much before it was
    done. Kafka moves a start offset on only now and then: until then the first offsets after it may all be done with.
    """
    return starts(rows, rows.offset)


def starts(rows: CommitRows, log_start: Longs) -> Longs:
    """The offset from which each commit has something to read: the log start if that is later, and not what is done already."""
    found = np.maximum(rows.offset, log_start)
    for row in np.flatnonzero(rows.share & (rows.offset >= 0) & (rows.delivered > 0)).tolist():
        found[row] = after(rows.done[row] or (), int(found[row]))
    return found


class PlaceMemory:
    """Positions by the keys of commits. Only the thread that polls uses it.

    The positions from which groups' partitions are read, kept from round to round: what has to be asked again, and what was answered.
    A position stays right as long as its log's edition does, if its next record was below the last stable offset, or may be an
    aborted one. Else a transaction that ends may change which record is next.
    """

    def __init__(self) -> None:
        self._key: Longs = np.empty(0, np.int64)
        self._decided: Flags = np.empty(0, np.bool_)
        self._lately: Flags = np.empty(0, np.bool_)  # not known, but known in the answer before
        self._reason: Codes = np.empty(0, np.int8)
        self._for_all: Flags = np.empty(0, np.bool_)  # asked for, whether the agent knows that or not
        self._columns: dict[str, Longs] = {name: np.empty(0, np.int64) for name in ("offset", "edition", *NUMBERS)}
        self._round = 0

    def begin(self, key: Longs) -> None:
        """A round begins, with these keys in ascending order: what is known of the others is forgotten."""
        self._round += 1
        if np.array_equal(key, self._key):
            return
        rows, there = carried(self._key, key)
        self._columns = {name: np.where(there, padded(column)[rows], ABSENT) for name, column in self._columns.items()}
        self._decided, self._lately = (there & np.append(each, False)[rows] for each in (self._decided, self._lately))
        self._for_all = there & np.append(self._for_all, False)[rows]
        self._reason = np.where(there, np.append(self._reason, KNOWN)[rows], CODES[LagReason.FILLING])
        self._key = key

    @property
    def places(self) -> Places:
        """The positions, in the order of the keys, until the next answer."""
        return Places(reason=self._reason, **self._columns)

    def wanted(self, start: Longs, ends: Ends, moved: Flags, reads_uncommitted: Flags) -> Longs:
        """The rows whose position has to be asked, the most important first.

        Args:
            start: where each row is read from.
            ends: of each row.
            moved: whether the last stable offset or the high watermark of its log is another one than in the round before.
            reads_uncommitted: whether the group reads records of aborted transactions, too.
        """
        needed = (ends.reason == KNOWN) & (start < ends.high_watermark) & (start >= 0)
        known = self._reason == KNOWN
        other = needed & ((self._columns["offset"] != start) | (self._for_all != reads_uncommitted))
        old = needed & ~other & known & (self._columns["edition"] != ends.edition) & (ends.edition != ABSENT)
        undecided = needed & ~other & ~old & known & ~self._decided & moved
        again = needed & ~other & ~known
        again = again & (self._lately | np.bool_(self._round % RETRIED_ROUNDS == 0))
        return np.concatenate([np.flatnonzero(each) for each in (other, old, undecided, again)])

    def answer(self, rows: Longs, offset: Longs, reads_uncommitted: Flags, positions: Answered) -> None:
        """Set the positions of some rows that were asked for."""
        self._lately[rows] = (self._reason[rows] == KNOWN) & (positions.reason != KNOWN)
        self._reason[rows], self._decided[rows], self._for_all[rows] = positions.reason, positions.decided, reads_uncommitted
        self._columns["offset"][rows], self._columns["edition"][rows] = offset, positions.edition
        for name in NUMBERS:
            self._columns[name][rows] = positions.numbers[name]


NUMBERS = tuple(name for name in Places.__slots__ if name not in ("reason", "offset", "edition"))
"""The columns of `Places` that an answer has by these names."""


def carried(before: Longs, after: Longs) -> tuple[Longs, Flags]:
    """For each key after, its row among the keys before, and whether it was there; both in ascending order."""
    rows = np.searchsorted(before, after)
    there = padded(before)[rows] == after
    there[rows == len(before)] = False
    return rows, there


def padded(column: Longs) -> Longs:
    """The column with one more number, which is `ABSENT`."""
    return np.append(column, ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answered:
    """Positions, one item for each offset that was asked for. ``decided``: no transaction that ends changes the next record."""

    reason: Codes
    edition: Longs
    decided: Flags
    numbers: dict[str, Longs]


class NewerCommits:
    """Has a commit beyond the end of its log count once the log has grown so far, and the one before it until then.

    Commits that are newer than what is known of the log that they are of: after its end, as that is known in this round. The log of a
    coordinator and the log that a group reads may be of two agents, and the leader's may be behind, stand still or be away. So an
    offset is beyond the end of a log only if its leader's agent has found the log to end before it later than the job knew of the
    offset. Until then the newest offset counts that is within the log, for a while; where there is none, nothing is known.

    Only the thread that polls uses it.
    """

    def __init__(self) -> None:
        self._key: Longs = np.empty(0, np.int64)
        self._counted = _Offsets.none(0)  # the newest that was within the log
        self._next = _Offsets.none(0)  # the first that came after it: it counts once the log has grown so far
        self._next_ms: Longs = np.empty(0, np.int64)  # since when it waits for that
        self._newest: Longs = np.empty(0, np.int64)  # that of the round before, `ABSENT` unless it was after the end
        self._newest_ms: Longs = np.empty(0, np.int64)  # since when it is so
        self._proven: Longs = np.empty(0, np.int64)  # whether that is known

    def take(self, rows: CommitRows, log_end: Longs, data_ms: Longs, steady_ms: int) -> tuple[CommitRows, Flags]:
        """Returns the commits that count in this round, and which of them are known to be beyond the end.

        Args:
            log_end: of each commit's log, `ABSENT` where it is not known.
            data_ms: up to when that is known from its leader, by the clock of ``steady_ms``; `ABSENT` where it is not.
        """
        self._carry(rows.key)
        present = _Offsets(rows.offset, rows.delivered, rows.done)
        known = log_end >= 0
        after = known & (rows.offset > log_end)
        same = after & (self._newest == rows.offset)
        since_ms = np.where(same, self._newest_ms, steady_ms)
        newer_ms = np.where(data_ms == ABSENT, ABSENT, data_ms - since_ms)
        proven = same & ((self._proven > 0) | (newer_ms >= READ_AFTER_MS))
        self._counted = _Offsets.chosen((known & ~after, self._next.within(log_end)), (present, self._next, self._counted))
        waits = after & (self._next.offset != ABSENT) & ~self._next.within(log_end)
        self._next = _Offsets.chosen((waits, after), (self._next, present, _Offsets.none(len(rows))))
        self._next_ms = np.where(waits, self._next_ms, steady_ms)
        self._newest, self._newest_ms, self._proven = np.where(after, rows.offset, ABSENT), since_ms, proven.astype(np.int64)
        lately = (newer_ms < LOOKED_MS) & (steady_ms - self._next_ms < WAITS_MS)
        older = after & ~proven & lately & self._counted.within(log_end)
        if not np.any(older):
            return rows, proven
        counting = _Offsets.chosen((older,), (self._counted, present))
        return replace(rows, offset=counting.offset, delivered=counting.delivered, done=counting.done), proven

    def _carry(self, key: Longs) -> None:
        if np.array_equal(key, self._key):
            return
        of, there = carried(self._key, key)
        self._counted, self._next = self._counted.carried(of, there), self._next.carried(of, there)
        columns = (self._next_ms, self._newest, self._newest_ms, self._proven)
        self._next_ms, self._newest, self._newest_ms, self._proven = (np.where(there, padded(column)[of], ABSENT) for column in columns)
        self._key = key


@dataclass(frozen=True, slots=True, eq=False)
class _Offsets:
    """Offsets of commits. ``offset``: `ABSENT` for none. Of a share group, what it is done with after it belongs to it."""

    offset: Longs
    delivered: Longs
    done: NDArray[np.object_]

    @classmethod
    def none(cls, count: int) -> _Offsets:
        return cls(np.full(count, ABSENT, np.int64), np.zeros(count, np.int64), np.full(count, None, np.object_))

    def carried(self, before: Longs, there: Flags) -> _Offsets:
        offset = np.where(there, padded(self.offset)[before], ABSENT)
        return _Offsets(offset, padded(self.delivered)[before], np.append(self.done, np.array([None], np.object_))[before])

    def within(self, log_end: Longs) -> Flags:
        within: Flags = (self.offset >= 0) & (self.offset <= log_end)
        return within

    @classmethod
    def chosen(cls, flags: Sequence[Flags], some: Sequence[_Offsets]) -> _Offsets:
        """The offsets of each item from the first of some whose flag is set; from the last one if none is."""
        columns = ([getattr(each, column.name) for each in some] for column in fields(cls))
        return cls(*(np.select(flags, each[:-1], each[-1]) for each in columns))
