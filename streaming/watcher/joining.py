"""Appends that wait for a consumer that is away: neighbours become one, so a journal does not grow by looks.

A journal that waits for somebody for a week would hold each look at each log. What was appended to a log between two places at which some
consumer may be reads the same as one range: nothing is lost by it, only how finely a plan can be cut. Of the lists of a log's segments the
last one is as good as all.
"""

from dataclasses import dataclass

from streaming.rows import Kind
from streaming.watcher.events import Event, LogId, merged_found
from streaming.watcher.journal import Edit, Journal
from streaming.watcher.losses import cuts, is_parted
from streaming.watcher.stored import kinds, rows

SLICE = 1000
"""Of how many events one slice is."""

LEAST = 200
"""Fewer events than this are left for later."""

LOOKS = 4
"""So many events for each log are left for later too: whenever there are more, each log's last one is written anew."""

WAIT_MS = 60_000
"""An event that has not waited for so long is left: who reads at a pace has it before."""


_Line = tuple[LogId, bool]
"""Events of which neighbours may become one: a log's lists of segments, or all others of that log."""


_JOINED = (Kind.APPENDED, Kind.FOUND)


@dataclass(frozen=True, slots=True)
class _Last:
    """The last append of a log, or list of its segments, up to where this process has looked."""

    seq: int
    event: Event


class Joining:
    """Joins appends of one journal. For one thread; others use the journal between two slices."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._looked = 0  # up to where this process has looked
        self._upto = 0  # how far this round goes
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
                sql = "SELECT coalesce(sum(count), 0), max(last) FROM blocks WHERE last > ? AND at_ms <= ?"
                waiting, end = run.execute(sql, (self._looked, now_ms - WAIT_MS)).fetchone()
                if waiting < max(LEAST, LOOKS * len(self._last)):
                    return False
                self._upto = end
            last = {line: each for line, each in self._last.items() if each.seq > trimmed}
            with self._journal.edit() as edit:
                end = self._join(edit, last)
                edit.run.execute("UPDATE totals SET merged_seq = max(merged_seq, ?)", (end,))
            self._looked, self._last = end, last  # the next slice goes on from them once this is written
            return end < self._upto

    def _join(self, edit: Edit, last: dict[_Line, _Last]) -> int:
        """Join a slice; returns up to where."""
        parted, there = cuts(edit.run), kinds(edit.run, [each.seq for each in last.values()])
        gone: list[int] = []
        joined: dict[int, Event] = {}
        found = rows(edit.run, self._looked, self._upto, SLICE)
        for row in found:
            event, line = row.event, (row.event.log, row.event.kind is Kind.FOUND)
            before = last.pop(line, None)
            if event.kind not in _JOINED:
                continue  # what comes behind something else is not joined with what was before that
            # others may have been forgotten meanwhile, or be appends no more
            if before is not None and (before.seq > self._looked or there.get(before.seq) is event.kind):
                together = None if is_parted(parted, before.seq, row.seq) else _together(before.event, event)
                if together is not None:
                    gone.append(before.seq)
                    joined.pop(before.seq, None)
                    joined[row.seq] = event = together
            last[line] = _Last(row.seq, event)
        edit.change(gone, joined)
        return found[-1].seq if found else self._upto


def _together(before: Event, event: Event) -> Event | None:
    return merged_found(before, event) if event.kind is Kind.FOUND else before.merged(event)
