"""Joins neighbouring appends that wait for an absent consumer, so that a journal does not grow with every poll.

A journal that waits for a consumer for a week would contain the events of every poll of every log. Between two seqs at which a consumer may
be, all appends to a log can be one range. Nothing is lost by this, but a plan can be cut less finely. Of several lists of a log's segments
only the last one is needed.
"""

from dataclasses import dataclass, replace

from streaming.broker.journal import totals
from streaming.broker.journal.blobs import merged_entries, merged_steps
from streaming.broker.journal.journal import Edit, Journal
from streaming.broker.journal.losses import cuts, frozen, is_parted
from streaming.broker.journal.stored_blocks import kinds, rows, waiting_since
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind
from streaming.kafka.scan.arrivals import merged_expired
from streaming.kafka.scan.sums import joined

MERGED_BYTES_MAX = 16 << 20
"""Neighbouring appends are merged up to this size, because a byte budget is kept only to within one event."""

MERGED_BLOBS_MAX = 256 << 10
"""The most bytes of transactions and coordinators up to which neighbouring appends are merged, because a merge writes them anew."""

SLICE = 1000
"""The number of events of one slice."""

LEAST = 200
"""A join waits until there are so many events."""

LOOKS = 4
"""A join waits until there are so many events for each log: it writes each log's last event anew, so a join of fewer saves little."""

WAIT_MS = 60_000
"""An event is joined when it is so old. A consumer that reads at a pace has it before."""


_Line = tuple[LogKey, bool]
"""The key of events whose neighbours may become one: a log's lists of segments, or all other events of that log."""


_JOINED = (Kind.APPENDED, Kind.FOUND)


@dataclass(frozen=True, slots=True)
class _Last:
    """The last append of a log, or the last list of its segments, up to the seq that this process has read."""

    seq: int
    event: Event


class Joining:
    """Joins appends of one journal. For one thread; others use the journal between two slices."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._looked = 0  # the seq up to which this process has read
        self._upto = 0  # the seq up to which this round goes
        self._last: dict[_Line, _Last] = {}

    def join(self, now_ms: int) -> bool:
        """Join the next events that have waited. Returns whether there is more to join.

        Args:
            now_ms: the journal's own time.
        """
        with self._journal.database.reading() as run:
            trimmed = self._journal.trimmed().seq
            self._looked = max(self._looked, trimmed)
            if self._looked >= self._upto:
                waiting = waiting_since(run, self._looked, now_ms - WAIT_MS)
                if waiting.rows < max(LEAST, LOOKS * len(self._last)):
                    return False
                self._upto = waiting.last
            last = {line: each for line, each in self._last.items() if each.seq > trimmed}
            with self._journal.edit() as edit:
                end = self._join(edit, last)
                totals.note_merged(edit.run, end)
            self._looked, self._last = end, last  # the next slice goes on from here, once this one is written
            return end < self._upto

    def _join(self, edit: Edit, last: dict[_Line, _Last]) -> int:
        """Join a slice; returns the seq up to which it goes."""
        parted, there = cuts(edit.run), kinds(edit.run, [each.seq for each in last.values()])
        frozen_ranges = frozen(edit.run)
        gone: list[int] = []
        joined: dict[int, Event] = {}
        found = rows(edit.run, self._looked, self._upto, SLICE)
        for row in found:
            event, line = row.event, (row.event.log, row.event.kind is Kind.FOUND)
            before = last.pop(line, None)
            if event.kind not in _JOINED:
                continue  # appends before and after another event are not joined
            # an earlier event may have been forgotten meanwhile, or may be no append any more
            if before is not None and (before.seq > self._looked or there.get(before.seq) is event.kind):
                stays = is_parted(parted, before.seq, row.seq) or any(
                    after < before.seq and row.seq <= upto for after, upto in frozen_ranges
                )
                together = None if stays else _together(before.event, event)
                if together is not None:
                    gone.append(before.seq)
                    joined.pop(before.seq, None)
                    joined[row.seq] = event = together
            last[line] = _Last(row.seq, event)
        edit.change(gone, joined)
        return found[-1].seq if found else self._upto


def _together(before: Event, event: Event) -> Event | None:
    return merged_found(before, event) if event.kind is Kind.FOUND else merged(before, event)


def merged(before: Event, later: Event) -> Event | None:
    """An append and the one right after it as one event, or None if they must stay separate."""
    fits = (
        before.kind is Kind.APPENDED
        and later.kind is Kind.APPENDED
        and before.end_position == later.start_position
        and before.segment == later.segment
        and before.log_epoch == later.log_epoch
        and before.leads == later.leads
        and before.detail is None
        and later.detail is None
        and before.bytes + later.bytes <= MERGED_BYTES_MAX
        and _blobs(before) + _blobs(later) <= MERGED_BLOBS_MAX
        and before.log == later.log
        and before.log_dir == later.log_dir
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
