"""Forgets events of a journal, a slice at a time: a plan or a publication waits for one slice at most."""

import sqlite3
from dataclasses import dataclass, replace

from streaming.broker.journal import totals
from streaming.broker.journal.blobs import merged_entries, merged_steps, still_counts
from streaming.broker.journal.joining import merged_found
from streaming.broker.journal.journal import Edit, Journal
from streaming.broker.journal.losses import cuts, gaps, held, is_parted, lose
from streaming.broker.journal.stored_blocks import RowsUpto, entries, first_rows, heads, kinds, rows
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind

SLICE = 1000
"""The number of events of one slice."""

FORGOTTEN = b""
"""Stands for the batches of a range that was published again: it is still known as one."""

_GOES_ON = (
    "broker",
    "log_dir",
    "topic",
    "partition",
    "topic_id",
    "segment",
    "base_offset",
    "next_offset",
    "log_epoch",
    "leads",
    "end_position",
    "bytes",
    "settled",
    "follows",
    "published_upto",
)


@dataclass(frozen=True, slots=True)
class TrimLimits:
    """The events beyond the bounds: those published before ``before_ms``, and as many of the oldest ones as leave ``max_bytes``."""

    before_ms: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class _LastEvent:
    seq: int
    event: Event


class Trimming:
    """Forgets events of one journal. For one thread; others use the journal between two slices."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._merged = 0  # the seq up to which this process has merged events
        self._runs: dict[LogKey, _LastEvent] = {}  # the last loss of each log up to there
        self._lists: dict[LogKey, _LastEvent] = {}  # and its last list of segments

    def forget(self, upto: int, limits: TrimLimits | None = None) -> bool:
        """Forget the next events up to and with ``upto``, except those that some consumer was sent and has not committed.

        Args:
            limits: forget only events that are beyond them.

        Returns:
            Whether there is more to forget.
        """
        with self._journal.database.reading() as run:
            trimmed, holds = self._journal.trimmed(), held(run)
            if self._release(run, trimmed.seq, holds):
                return True
            free = first_rows(run, trimmed.seq, upto, SLICE) if limits is None else self._beyond(run, trimmed.seq, upto, limits)
            if not free.rows:
                return False
            end = self._journal.at(free.last)
            with self._journal.edit() as edit:
                lose(edit.run, trimmed.seq, end.seq)
                for after, last in gaps(holds, end.seq):
                    edit.delete(max(after, trimmed.seq), last)
                totals.note_trimmed(edit.run, end.seq, end.total)
            return free.rows == SLICE

    def _release(self, run: sqlite3.Connection, trimmed: int, holds: list[tuple[int, int]]) -> bool:
        """Forget some events that were held for a consumer and are committed now; returns whether there were any."""
        for after, last in gaps(holds, trimmed):
            found = first_rows(run, after, last, SLICE)
            if found.rows:
                with self._journal.edit() as edit:
                    edit.delete(after, found.last)
                return True
        return False

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
            beyond = self._beyond(run, self._merged, upto, limits)
            if not beyond.rows:
                return 0, False
            with self._journal.edit() as edit:
                lost = self._merge(edit, beyond.last)
            self._merged = beyond.last
            return lost, beyond.rows == SLICE

    def _merge(self, edit: Edit, upto: int) -> int:
        run, parted, lost = edit.run, cuts(edit.run), 0
        runs, found = dict(self._runs), dict(self._lists)  # the next slice goes on from them only if this one is written
        there = kinds(run, [each.seq for each in (*runs.values(), *found.values())]).keys()  # some may have been forgotten meanwhile
        changed: dict[int, Event] = {}
        gone: list[int] = []

        def before(lasts: dict[LogKey, _LastEvent], seq: int, event: Event) -> Event | None:
            """The earlier event that is merged with an event, and is deleted."""
            last = lasts.get(event.log)
            if last is None or is_parted(parted, last.seq, seq) or not (last.seq in there or last.seq > self._merged):
                return None
            if _is_again(last.event) is not _is_again(event):
                return None
            gone.append(last.seq)
            changed.pop(last.seq, None)
            return last.event

        for row in rows(run, self._merged, upto, SLICE):
            seq, event = row.seq, row.event
            if event.kind is Kind.APPENDED or (event.kind is Kind.SKIPPED and not _has_what_is_open(event)):
                changed[seq] = _skipped(before(runs, seq, event), event)
                runs[event.log] = _LastEvent(seq, changed[seq])
                lost += event.bytes if event.kind is Kind.APPENDED else 0
            elif event.kind is Kind.FOUND:
                earlier = before(found, seq, event)
                if earlier is not None:
                    changed[seq] = event = merged_found(earlier, event)
                found[event.log] = _LastEvent(seq, event)
            else:
                runs.pop(event.log, None)
                if event.kind is Kind.GONE:
                    found.pop(event.log, None)
        edit.change(gone, changed)
        totals.note_merged(run, upto)
        self._runs, self._lists = runs, found
        return lost

    def _beyond(self, run: sqlite3.Connection, after: int, upto: int, limits: TrimLimits) -> RowsUpto:
        """Those of the next events up to ``upto`` that are beyond the limits, from the first one on."""
        excess: float = self._journal.size() - limits.max_bytes
        beyond, first = RowsUpto(0, after), next(heads(run, after, upto), None)
        if first is None or (excess <= 0 and first.at_ms >= limits.before_ms):  # nearly always
            return beyond
        for entry in entries(run, after, upto, SLICE):
            if excess <= 0 and entry.at_ms >= limits.before_ms:
                break
            excess -= entry.size
            beyond = RowsUpto(beyond.rows + 1, entry.seq)
        return beyond


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
