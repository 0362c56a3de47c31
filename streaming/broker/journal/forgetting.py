"""Makes a journal smaller, a slice at a time: a plan or a publication waits for one slice at most.

What no consumer needs is *forgotten*. Appends that wait for an absent consumer are *joined*: between two seqs at which a consumer may be,
all appends to a log can be one range, and of several lists of its segments only the last one is needed. Nothing is lost by this, but a
plan can be cut less finely. What is beyond the bounds is *merged* into one loss of each log.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from streaming.broker.journal import blocks, consumer_states, database
from streaming.broker.journal.consumer_states import Partings, gaps, held
from streaming.broker.journal.joined_ranges import merged_entries, merged_steps, still_counts
from streaming.broker.journal.journal import Journal
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind
from streaming.kafka.scan.sums import joined, merged_expired

MERGED_BYTES_MAX = 16 << 20
"""Neighboring appends are joined up to this size, because a byte budget is kept only to within one event."""

MERGED_BLOBS_MAX = 256 << 10
"""The most bytes of transactions and coordinators up to which neighboring appends are joined, because a join writes them anew."""

SLICE = 1000
"""The number of events of one slice."""

LEAST = 200
"""A join waits until there are so many events."""

LOOKS = 4
"""A join waits until there are so many events for each log: it writes each log's last event anew, so a join of fewer saves little."""

WAIT_MS = 60_000
"""An event is joined when it is so old. A consumer that reads at a pace has it before."""

FORGOTTEN = b""
"""Stands for the batches of a range that was published again: it is still known as one."""

_GOES_ON = (
    *("broker", "log_dir", "topic", "partition", "topic_id", "segment", "base_offset", "next_offset", "log_epoch", "leads"),
    *("end_position", "bytes", "settled", "follows", "published_upto"),
)


@dataclass(frozen=True, slots=True)
class TrimLimits:
    """The events beyond the bounds: those published before ``before_ms``, and as many of the oldest ones as leave ``max_bytes``."""

    before_ms: int
    max_bytes: int


_Line = tuple[LogKey, bool]
"""The key of events whose neighbours may become one: a log's lists of segments, or all other events of that log."""


@dataclass(frozen=True, slots=True)
class _Last:
    """The last event of a line, up to the seq that this process has read."""

    seq: int
    event: Event


class _Slice:
    """A slice of events that become fewer. ``last``: of each line, the last event; the next slice goes on from it once this is written."""

    def __init__(self, run: sqlite3.Connection, journal: Journal, after: int, last: dict[_Line, _Last]) -> None:
        self.last = dict(last)
        self.gone: list[int] = []
        self.put: dict[int, Event] = {}
        self.partings = Partings(consumer_states.read_all(run), journal.trimmed().seq)
        self._after = after
        self._there = blocks.kinds(run, [each.seq for each in last.values()])

    def before(self, line: _Line, seq: int, kind: Kind | None = None) -> _Last | None:
        """The last event of a line, if it may become one with that at ``seq``: it may have been forgotten, or have become another kind."""
        last = self.last.get(line)
        if last is None or self.partings.part(last.seq, seq):
            return None
        there = last.seq > self._after or (last.seq in self._there if kind is None else self._there.get(last.seq) is kind)
        return last if there else None

    def join(self, last: _Last, seq: int, event: Event) -> None:
        """Put one event in the place of two."""
        self.gone.append(last.seq)
        self.put.pop(last.seq, None)
        self.put[seq] = event


class Forgetting:
    """Forgets, joins and merges events of one journal. For one thread; others use the journal between two slices."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._looked = 0  # the seq up to which this process has read for joining
        self._upto = 0  # the seq up to which this round of joining goes
        self._last: dict[_Line, _Last] = {}
        self._merged = 0  # the seq up to which this process has merged events
        self._runs: dict[_Line, _Last] = {}  # the last loss of each log up to there, and its last list of segments

    @contextmanager
    def _changing(self) -> Iterator[list[int]]:
        """A transaction that deletes or changes events; the list is for how many bytes the stored ones grow."""
        grown: list[int] = []
        with self._journal.database.transaction():
            yield grown
        self._journal.note_grown(sum(grown))

    @contextmanager
    def _slice(self, run: sqlite3.Connection, after: int, last: dict[_Line, _Last]) -> Iterator[_Slice]:
        with self._changing() as grown:
            work = _Slice(run, self._journal, after, last)
            yield work
            grown.append(blocks.change(run, work.gone, work.put))

    def forget(self, upto: int, limits: TrimLimits | None = None) -> bool:
        """Forget the next events up to and with ``upto``, except those that some consumer was sent and has not committed.

        Args:
            limits: forget only events that are beyond them.

        Returns:
            Whether there is more to forget.
        """
        with self._journal.database.reading() as run:
            trimmed, holds = self._journal.trimmed().seq, held(consumer_states.read_all(run))
            for after, last in gaps(holds, trimmed):  # what was held for a consumer, and is committed now
                count, end = blocks.first_rows(run, after, last, SLICE)
                if count:
                    with self._changing() as grown:
                        grown.append(blocks.delete(run, after, end))
                    return True
            count, end = blocks.first_rows(run, trimmed, upto, SLICE) if limits is None else self._beyond(run, trimmed, upto, limits)
            if not count:
                return False
            at = self._journal.at(end)
            with self._changing() as grown:
                consumer_states.lose(run, trimmed, at.seq)
                grown += [blocks.delete(run, max(after, trimmed), last) for after, last in gaps(holds, at.seq)]
                database.note(run, trimmed_seq=at.seq, trimmed_total=at.total)
            return count == SLICE

    def join(self, now_ms: int) -> bool:
        """Join the next events that have waited. Returns whether there is more to join.

        Args:
            now_ms: the journal's own time.
        """
        with self._journal.database.reading() as run:
            trimmed = self._journal.trimmed().seq
            self._looked = max(self._looked, trimmed)
            if self._looked >= self._upto:
                waiting, last = blocks.waiting_since(run, self._looked, now_ms - WAIT_MS)
                if waiting < max(LEAST, LOOKS * len(self._last)):
                    return False
                self._upto = last
            with self._slice(run, self._looked, {line: each for line, each in self._last.items() if each.seq > trimmed}) as work:
                end = self._join(run, work)
                database.note_merged(run, end)
            self._looked, self._last = end, work.last
            return end < self._upto

    def _join(self, run: sqlite3.Connection, work: _Slice) -> int:
        """Join a slice; returns the seq up to which it goes."""
        found = blocks.rows(run, self._looked, self._upto, SLICE)
        for row in found:
            event, line = row.event, (row.event.log, row.event.kind is Kind.FOUND)
            if event.kind not in (Kind.APPENDED, Kind.FOUND):
                work.last.pop(line, None)  # appends before and after another event are not joined
                continue
            before = work.before(line, row.seq, event.kind)
            if before is not None:
                together = merged_found(before.event, event) if event.kind is Kind.FOUND else merged(before.event, event)
                if together is not None:
                    work.join(before, row.seq, together)
                    event = together
            work.last[line] = _Last(row.seq, event)
        return found[-1].seq if found else self._upto

    def merge(self, upto: int, limits: TrimLimits) -> tuple[int, bool]:
        """Merge the next events up to ``upto`` that are beyond ``limits`` and that some consumer has not had.

        Appends of a log that follow each other become one SKIPPED event at the seq of the last of them. It still contains which
        transactions they have opened and closed, and what coordinators wrote in them. Without that, transactions that ended there would
        seem open for ever. The last list of segments of each log is kept, because it is not published again. Nothing is merged across a
        seq where some consumer may be, nor what was published again with what was not: a consumer that had it before would not know how
        much of the sum is new to it.

        Returns:
            How many more bytes of logs will never reach that consumer because of this merge; and whether there is more to merge.
        """
        with self._journal.database.reading() as run:
            count, end = self._beyond(run, self._merged, upto, limits)
            if not count:
                return 0, False
            with self._slice(run, self._merged, self._runs) as work:
                lost = self._merge(run, work, end)
                database.note_merged(run, end)
            self._merged, self._runs = end, work.last
            return lost, count == SLICE

    def _merge(self, run: sqlite3.Connection, work: _Slice, upto: int) -> int:
        lost = 0
        for row in blocks.rows(run, self._merged, upto, SLICE):
            seq, event = row.seq, row.event
            line, lists = (event.log, False), (event.log, True)
            if event.kind is Kind.APPENDED or (event.kind is Kind.SKIPPED and not _has_what_is_open(event)):
                lost += event.bytes if event.kind is Kind.APPENDED else 0
                before = work.before(line, seq)
                if before is None or _is_again(before.event) is not _is_again(event):
                    work.put[seq] = _skipped(None, event)
                else:
                    work.join(before, seq, _skipped(before.event, event))
                work.last[line] = _Last(seq, work.put[seq])
            elif event.kind is Kind.FOUND:
                before = work.before(lists, seq)
                if before is not None and _is_again(before.event) is _is_again(event):
                    event = merged_found(before.event, event)
                    work.join(before, seq, event)
                work.last[lists] = _Last(seq, event)
            else:
                work.last.pop(line, None)
                if event.kind is Kind.GONE:
                    work.last.pop(lists, None)
        return lost

    def _beyond(self, run: sqlite3.Connection, after: int, upto: int, limits: TrimLimits) -> tuple[int, int]:
        """How many of the next events up to ``upto`` are beyond the limits, from the first one on, and the last seq of them."""
        excess: float = self._journal.size() - limits.max_bytes
        count, end, first = 0, after, next(blocks.heads(run, after, upto), None)
        if first is None or (excess <= 0 and first.at_ms >= limits.before_ms):  # nearly always
            return count, end
        for seq, size, at_ms in blocks.entries(run, after, upto, SLICE):
            if excess <= 0 and at_ms >= limits.before_ms:
                break
            excess, count, end = excess - size, count + 1, seq
        return count, end


def merged(before: Event, later: Event) -> Event | None:
    """An append and the one right after it as one event, or None if they must stay separate."""
    same = ("kind", "segment", "log_epoch", "leads", "log", "log_dir", "detail")
    fits = (
        later.kind is Kind.APPENDED
        and later.detail is None
        and all(getattr(before, name) == getattr(later, name) for name in same)
        and before.end_position == later.start_position
        and before.bytes + later.bytes <= MERGED_BYTES_MAX
        and _blobs(before) + _blobs(later) <= MERGED_BLOBS_MAX
    )
    if not fits:
        return None
    return replace(
        joined(before, later),
        start_position=before.start_position,
        follows=before.follows,
        transactions=merged_steps(before.transactions, later.transactions, before.bytes),
        coordinator=merged_entries(before.coordinator, later.coordinator),
        expired=merged_expired(before.expired, later.expired),
    )


def merged_found(before: Event, event: Event) -> Event:
    """Two FOUND events of one log as one event: if the later one has no list of segments, the earlier list stays."""
    return replace(
        event,
        segments=before.segments if event.segments is None else event.segments,
        rolled=_both(before.rolled, event.rolled),
        deleted=_both(before.deleted, event.deleted),
    )


def _both(first: bytes | None, later: bytes | None) -> bytes | None:
    return later if first is None else first + (later or b"")


def _blobs(event: Event) -> int:
    return len(event.transactions or b"") + len(event.coordinator or b"")


def _skipped(before: Event | None, event: Event) -> Event:
    """A run of lost events of one log, with one more event added."""
    one = replace(
        Event(kind=Kind.SKIPPED, reason="journal_trimmed", transactions=still_counts(event.transactions), coordinator=event.coordinator),
        detail=FORGOTTEN if _is_again(event) else None,
        **{name: getattr(event, name) for name in _GOES_ON},
    )
    if before is None:
        return one
    return replace(
        one,
        base_offset=min(before.base_offset, one.base_offset),
        follows=before.follows,
        bytes=before.bytes + one.bytes,
        leads=one.leads if one.leads == before.leads else -1,
        transactions=still_counts(merged_steps(before.transactions, one.transactions, before.bytes)),
        coordinator=merged_entries(before.coordinator, one.coordinator),
    )


def _is_again(event: Event) -> bool:
    """Whether a range had been published before: some consumers know it already."""
    return event.detail is not None


def _has_what_is_open(event: Event) -> bool:
    """Whether a loss contains anew what is open after it; then earlier events cannot be merged with it."""
    return event.base_offset < event.next_offset and event.reason != "journal_trimmed"
