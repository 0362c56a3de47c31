"""Appends that wait for a consumer that is away, while others have had them: neighbours become one, so a journal does not grow by looks.

A journal that waits for somebody for a week would hold each look at each log. What was appended to a log between two places at which some
consumer may be reads the same as one range: nothing is lost by it, only how finely a plan can be cut.
"""

from dataclasses import dataclass
from typing import Any

from streaming.rows import Kind
from streaming.watcher.events import Event, LogId
from streaming.watcher.journal import Edit, Journal
from streaming.watcher.losses import cuts, is_parted
from streaming.watcher.stored import COLUMNS, event_of, insert

SLICE = 1000
"""Of how many events one slice is."""

LEAST = 200
"""Fewer events than this are left for later: whenever there are so many, each log's last one is written anew."""


@dataclass(frozen=True, slots=True)
class _Last:
    """The last append of a log, up to where this process has looked."""

    seq: int
    event: Event


class Joining:
    """Joins appends of one journal. For one thread; others use the journal between two slices."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._looked = 0  # up to where this process has looked
        self._last: dict[LogId, _Last] = {}

    def join(self, upto: int) -> bool:
        """Join the next events up to and with ``upto``, which some consumer has committed. Returns whether there is more to join."""
        with self._journal.database.reading() as run:
            trimmed = self._journal.trimmed().seq
            self._looked = max(self._looked, trimmed)
            rows = run.execute(
                f"SELECT {COLUMNS}, total, at_ms FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?", (self._looked, upto, SLICE)
            ).fetchall()
            if len(rows) < LEAST:
                return False
            end = rows[-1][0]
            last = {
                log: each for log, each in self._last.items() if each.seq > trimmed
            }  # the next slice goes on from it once this is written
            with self._journal.edit(end) as edit:
                self._join(edit, rows, last)
                edit.run.execute("UPDATE totals SET merged_seq = max(merged_seq, ?)", (end,))
            self._looked, self._last = end, last
            return len(rows) == SLICE

    @staticmethod
    def _join(edit: Edit, rows: list[tuple[Any, ...]], last: dict[LogId, _Last]) -> None:
        parted = cuts(edit.run)
        gone: list[int] = []
        joined: dict[int, tuple[Event, int, int]] = {}
        for *row, total, at_ms in rows:
            seq, event = row[0], event_of(tuple(row))
            before = last.pop(event.log, None)
            if event.kind is not Kind.APPENDED:
                continue  # what comes behind something else is not joined with what was before that
            if before is not None and not is_parted(parted, before.seq, seq) and (before.seq in joined or _is_append(edit, before.seq)):
                together = before.event.merged(event)
                if together is not None:
                    gone.append(before.seq)
                    joined.pop(before.seq, None)
                    joined[seq] = (together, total, at_ms)
                    event = together
            last[event.log] = _Last(seq, event)
        for seq in [*gone, *joined]:
            edit.delete(seq - 1, seq)
        for seq, (event, total, at_ms) in joined.items():
            edit.grown += insert(edit.run, event, at_ms, seq=seq, total=total)[1]


def _is_append(edit: Edit, seq: int) -> bool:
    """Whether an event is still there, and still what was read of it: others may have been forgotten meanwhile."""
    return edit.run.execute("SELECT 1 FROM events WHERE seq = ? AND kind = ?", (seq, Kind.APPENDED)).fetchone() is not None
