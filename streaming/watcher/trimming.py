"""What a journal forgets, a slice at a time: who wants to plan or to publish waits for one slice and no longer."""

import sqlite3
from dataclasses import dataclass, replace

from streaming.rows import Kind
from streaming.watcher.blobs import merged_entries, merged_steps, still_counts
from streaming.watcher.events import Event, LogId, merged_found
from streaming.watcher.journal import Edit, Journal
from streaming.watcher.losses import cuts, gaps, held, is_parted, lose
from streaming.watcher.stored import Entry, entries, kinds, rows

SLICE = 1000
"""Of how many events one slice is."""

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
    "end_position",
    "bytes",
    "settled",
    "follows",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What is beyond the bounds: what was published before ``before_ms``, and as many of the oldest events as leave ``max_bytes``."""

    before_ms: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class _Kept:
    seq: int
    event: Event


class Trimming:
    """Forgets events of one journal. For one thread; others use the journal between two slices."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._merged = 0  # up to where this process has looked for what can be merged
        self._runs: dict[LogId, _Kept] = {}  # the last loss of each log up to there
        self._found: dict[LogId, _Kept] = {}  # and its last list of segments

    def forget(self, upto: int, limits: Limits | None = None) -> bool:
        """Forget the next events up to and with ``upto``, but for those that some consumer was sent and has not committed.

        Args:
            limits: forget no more than what is beyond them.

        Returns:
            Whether there is more to forget.
        """
        with self._journal.database.reading() as run:
            trimmed, holds = self._journal.trimmed(), held(run)
            if self._release(run, trimmed.seq, holds):
                return True
            found = entries(run, trimmed.seq, upto, SLICE)
            free = found if limits is None else found[: self._beyond(found, limits)]
            if not free:
                return False
            end = self._journal.at(free[-1].seq)
            with self._journal.edit() as edit:
                lose(edit.run, trimmed.seq, end.seq)
                for after, last in gaps(holds, end.seq):
                    edit.delete(max(after, trimmed.seq), last)
                edit.run.execute("UPDATE totals SET trimmed_seq = ?, trimmed_total = ?", (end.seq, end.total))
            return len(free) == SLICE

    def _release(self, run: sqlite3.Connection, trimmed: int, holds: list[tuple[int, int]]) -> bool:
        """Forget some of what was held for a consumer that has committed it since; returns whether there was any."""
        for after, last in gaps(holds, trimmed):
            found = entries(run, after, last, SLICE)
            if found:
                with self._journal.edit() as edit:
                    edit.delete(after, found[-1].seq)
                return True
        return False

    def merge(self, upto: int, limits: Limits) -> tuple[int, bool]:
        """Merge the next events up to ``upto`` that are beyond ``limits`` and that some consumer has not had.

        Of each log the appends that follow each other become one SKIPPED event in the place of the last of them. It still tells which
        transactions they have opened and closed, and what coordinators wrote in them: without that, what ended there would seem open for
        ever. Of each log the list of segments is kept that was told last: nobody tells them again. Nothing is merged across a place where
        some consumer may be.

        Returns:
            How many bytes of logs will never reach that consumer, besides those that would not anyway; and whether there is more to merge.
        """
        with self._journal.database.reading() as run:
            found = entries(run, self._merged, upto, SLICE)
            beyond = found[: self._beyond(found, limits)]
            if not beyond:
                return 0, False
            with self._journal.edit() as edit:
                lost = self._merge(edit, beyond[-1].seq)
            self._merged = beyond[-1].seq
            return lost, len(beyond) == SLICE

    def _merge(self, edit: Edit, upto: int) -> int:
        run, parted, lost = edit.run, cuts(edit.run), 0
        runs, found = dict(self._runs), dict(self._found)  # the next slice goes on from them only if this one is written
        there = kinds(run, [each.seq for each in (*runs.values(), *found.values())]).keys()  # others may have been forgotten meanwhile
        changed: dict[int, Event] = {}
        gone: list[int] = []

        def before(known: dict[LogId, _Kept], seq: int, event: Event) -> Event | None:
            """What is to become one with an event, and goes."""
            kept = known.get(event.log)
            if kept is None or is_parted(parted, kept.seq, seq) or not (kept.seq in there or kept.seq > self._merged):
                return None
            gone.append(kept.seq)
            changed.pop(kept.seq, None)
            return kept.event

        for row in rows(run, self._merged, upto, SLICE):
            seq, event = row.seq, row.event
            if event.kind is Kind.APPENDED or (event.kind is Kind.SKIPPED and not _tells_what_is_open(event)):
                changed[seq] = _skipped(before(runs, seq, event), event)
                runs[event.log] = _Kept(seq, changed[seq])
                lost += event.bytes if event.kind is Kind.APPENDED else 0
            elif event.kind is Kind.FOUND:
                earlier = before(found, seq, event)
                if earlier is not None:
                    changed[seq] = event = merged_found(earlier, event)
                found[event.log] = _Kept(seq, event)
            else:
                runs.pop(event.log, None)
                if event.kind is Kind.GONE:
                    found.pop(event.log, None)
        edit.change(gone, changed)
        run.execute("UPDATE totals SET merged_seq = max(merged_seq, ?)", (upto,))
        self._runs, self._found = runs, found
        return lost

    def _beyond(self, found: list[Entry], limits: Limits) -> int:
        """How many of these events are beyond the limits, from the first one on."""
        excess: float = self._journal.size() - limits.max_bytes
        for count, entry in enumerate(found):
            if excess <= 0 and entry.at_ms >= limits.before_ms:
                return count
            excess -= entry.size
        return len(found)


def _skipped(before: Event | None, event: Event) -> Event:
    """A run of lost events of one log with one more."""
    one = replace(
        Event(kind=Kind.SKIPPED, reason="journal_trimmed", transactions=still_counts(event.transactions), coordinator=event.coordinator),
        **{name: getattr(event, name) for name in _GOES_ON},
    )
    if before is None:
        return one
    return replace(
        one,
        base_offset=min(before.base_offset, one.base_offset),
        follows=before.follows,
        bytes=before.bytes + one.bytes,
        transactions=still_counts(merged_steps(before.transactions, one.transactions, before.bytes)),
        coordinator=merged_entries(before.coordinator, one.coordinator),
    )


def _tells_what_is_open(event: Event) -> bool:
    """Whether a loss says anew what is open behind it; then nothing of what was before it can be told together with it."""
    return event.base_offset < event.next_offset and event.reason != "journal_trimmed"
