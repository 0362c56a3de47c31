"""The journal: events in order with the places that go with them, written together so that neither can run ahead of the other.

``seq`` is the position. An event that was told to a reader never changes again, and carries the running total of the log bytes published up
to it: how far a byte budget reaches is one look-up. Before that, the next append of its log may still be merged into it.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from pathlib import Path

from streaming.disk.scanned import SegmentKey
from streaming.kafka.producers import Producers
from streaming.rows import Kind
from streaming.watcher import producers, registering
from streaming.watcher.database import Database
from streaming.watcher.events import Event, LogId, Place
from streaming.watcher.producers import Pages
from streaming.watcher.registering import Registration
from streaming.watcher.stored import COLUMNS, counted_bytes, event_of, insert

_PLACE = tuple(field.name for field in fields(Place) if field.name != "log")
_values = attrgetter(*_PLACE)
_PLACE_COLUMNS = ", ".join((*(field.name for field in fields(LogId)), *_PLACE))
_PUT_PLACE = f"INSERT OR REPLACE INTO places ({_PLACE_COLUMNS}) VALUES ({','.join('?' * (4 + len(_PLACE)))})"
_SCANNED = ", ".join(SegmentKey._fields)
_Line = tuple[LogId, bool]
"""Events of which one may be merged into the one before it: those that list a log's segments, or those that do not."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A point in a journal: everything up to and with ``seq``, which is ``total`` bytes of logs published since its beginning."""

    seq: int
    total: int


class Edit:
    """A transaction that forgets events. ``grown``: by how much what is held has become larger, bytes, about."""

    def __init__(self, run: sqlite3.Connection) -> None:
        self.run = run
        self.grown = 0

    def delete(self, after: int, upto: int) -> None:
        """Delete the events with ``after < seq <= upto``."""
        where = "FROM events WHERE seq > ? AND seq <= ?"
        (size,) = self.run.execute(f"SELECT coalesce(sum(size), 0) {where}", (after, upto)).fetchone()
        self.run.execute(f"DELETE {where}", (after, upto))
        self.grown -= size


class Journal:
    """The events of one agent. Safe to use from several threads. Everything raises JournalError if the file cannot be used."""

    def __init__(self, directory: Path | None, cluster_id: str, clock_ms: Callable[[], int]) -> None:
        """Open or make the journal in ``directory``, in memory where that is None. Raises JournalError as `Database` does.

        Args:
            clock_ms: milliseconds of a clock that only goes forward, from any beginning; see `now_ms`.
        """
        self.database = Database(directory, cluster_id)
        self.id = self.database.id
        self._clock_ms = clock_ms
        self._ahead_ms = 0  # how far the journal's own time is ahead of that clock
        self._go_on_in_time()
        self._published = threading.Condition()
        self._last: dict[_Line, tuple[int, Event]] = {}
        self._told = self._last_told()
        self._size = self._sum_of_sizes("seq > 0", ())

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def now_ms(self) -> int:
        """The journal's own time: it goes on from where an earlier process left it, and only while somebody holds the journal.

        So neither a clock that is set nor an agent that was down makes anything old that was not.
        """
        return self._clock_ms() + self._ahead_ms

    def _go_on_in_time(self) -> None:
        with self.database.transaction() as run:
            row = run.execute("SELECT at_ms FROM events ORDER BY seq DESC LIMIT 1").fetchone()
            (seen_ms,) = run.execute("SELECT max(seen_ms) FROM consumers").fetchone()
            last_ms = seen_ms if row is None else row[0]
            if last_ms is None:
                return
            # what is later than the last event was written by a clock that was ahead for a while
            run.execute("UPDATE events SET at_ms = ? WHERE at_ms > ?", (last_ms, last_ms))
            run.execute("UPDATE consumers SET seen_ms = ? WHERE seen_ms > ?", (last_ms, last_ms))
            self._ahead_ms = last_ms - self._clock_ms()

    # --- writing

    def places(self) -> list[Place]:
        """Where reading stands for every log, as of the last event."""
        with self.database.reading() as run:
            rows = run.execute(f"SELECT {_PLACE_COLUMNS} FROM places").fetchall()
        return [Place(log=LogId(*row[:4]), **dict(zip(_PLACE, row[4:], strict=True))) for row in rows]

    def producers(self, log: LogId, limit: int) -> Producers | None:
        """The producers of a log as of its place, None where they are not known."""
        with self.database.reading() as run:
            return producers.read(run, log, limit)

    def publish(
        self,
        events: Sequence[Event],
        places: Iterable[Place] = (),
        gone: Sequence[LogId] = (),
        pages: Iterable[Pages] = (),
        registers: Registration | None = None,
    ) -> None:
        """Write events, the places they lead to, and what they change of the logs' producers, durably: all of it or nothing.

        An append that continues the last event of its log is merged into it, and so is a list of segments into the one before, as long as
        no answer to any reader has included that one.

        Args:
            registers: a consumer whose beginning these events are. It stands right before them: nothing is merged across that place.
        """
        last: dict[_Line, tuple[int, Event]] = {}
        with self.database.reading():  # the lock is held until what is remembered agrees with the file
            if registers is not None:
                self._tell(lambda *_: True)
            with self.database.transaction() as run:
                at_ms, grown = self.now_ms(), 0
                if registers is not None:
                    registering.write(run, registers, self.end().seq, at_ms)
                for event in events:
                    line = (event.log, event.kind is Kind.FOUND)
                    seq, before = last.get(line) or self._last.get(line) or (0, event)
                    merged = _merged(before, event) if seq > self._told.seq else None
                    if merged is not None:
                        grown -= self._sum_of_sizes("seq = ?", (seq,))
                        run.execute("DELETE FROM events WHERE seq = ?", (seq,))
                    seq, size = insert(run, merged or event, at_ms)
                    grown += size
                    last[line] = (seq, merged or event)
                run.execute("UPDATE totals SET published = published + ?", (sum(map(counted_bytes, events)),))
                run.executemany(_PUT_PLACE, [(*_key(place.log), *_values(place)) for place in places])
                run.executemany("DELETE FROM places WHERE broker = ? AND topic = ? AND partition = ? AND topic_id = ?", map(_key, gone))
                producers.write(run, pages)
                for log in gone:
                    producers.forget(run, log)
            self._last.update(last)
            self._size += grown
        if events:
            with self._published:
                self._published.notify_all()

    def scanned(self) -> dict[SegmentKey, int]:
        """What scans of closed segments have found: their largest timestamps, Unix milliseconds, -1 none."""
        with self.database.reading() as run:
            rows = run.execute(f"SELECT {_SCANNED}, largest_timestamp FROM scanned").fetchall()
        return {SegmentKey(*row[:-1]): row[-1] for row in rows}

    def keep_scanned(self, found: Iterable[tuple[SegmentKey, int]], gone: Iterable[SegmentKey]) -> None:
        """Remember what further scans have found, and forget segments that are no more."""
        with self.database.transaction() as run:
            run.executemany(
                f"INSERT OR REPLACE INTO scanned ({_SCANNED}, largest_timestamp) VALUES (?,?,?,?,?,?)",
                [(*key, time) for key, time in found],
            )
            run.executemany(f"DELETE FROM scanned WHERE ({_SCANNED}) = (?,?,?,?,?)", list(gone))

    def renew(self) -> None:
        """Be another journal from now on: a reader has seen this one at a point it does not reach (it was restored from a copy)."""
        self.id = self.database.renew()

    # --- reading

    def end(self) -> Mark:
        """The end of what is published."""
        with self.database.reading() as run:
            (seq,) = run.execute("SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)").fetchone()
            (total,) = run.execute("SELECT published FROM totals").fetchone()
        return Mark(seq, total)

    def reach(self, after: int, budget: int | None) -> Mark:
        """How far ``budget`` bytes of logs reach after seq ``after`` (None: to the end).

        At least one event always passes, or nothing ever would.
        """
        with self.database.reading() as run:
            if budget is None:
                self._tell(lambda *_: True)
                return self.end()
            begin = self.at(after)
            limit = begin.total + budget
            (least,) = run.execute("SELECT min(seq) FROM events WHERE seq > ?", (after,)).fetchone()
            self._tell(lambda _, following: following.seq <= (least or 0) or following.total <= limit)
            beyond = run.execute("SELECT seq FROM events WHERE seq > ? AND total > ? ORDER BY seq LIMIT 1", (after, limit)).fetchone()
            upto = self._told.seq if beyond is None else beyond[0] - 1
            fits = "SELECT seq, total FROM events WHERE seq > ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
            first = "SELECT seq, total FROM events WHERE seq > ? ORDER BY seq LIMIT 1"
            row = run.execute(fits, (after, upto)).fetchone() or run.execute(first, (after,)).fetchone()
            return begin if row is None else Mark(*row)

    def at(self, seq: int) -> Mark:
        """The mark of an event that is in the journal, or was the last one to be forgotten."""
        with self.database.reading() as run:
            self._tell(lambda _, following: following.seq <= seq)
            trimmed, last = self.trimmed(), "SELECT total FROM events WHERE seq > ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
            row = run.execute(last, (trimmed.seq, seq)).fetchone()  # what lies further back is held for somebody else
            return Mark(seq, row[0] if row else trimmed.total)

    def read(self, after: int, upto: int) -> list[tuple[int, Event]]:
        """The events with ``after < seq <= upto``, in order."""
        with self.database.reading() as run:
            self._tell(lambda _, following: following.seq <= upto)
            rows = run.execute(f"SELECT {COLUMNS} FROM events WHERE seq > ? AND seq <= ? ORDER BY seq", (after, upto)).fetchall()
        return [(row[0], event_of(row)) for row in rows]

    def has_been_at(self, seq: int, total: int) -> bool:
        """Whether somebody can have read so far here; if not, this is an earlier copy of the journal that was read.

        What was forgotten or merged since cannot be told; neither can it where ``total`` is not known (-1).
        """
        with self.database.reading() as run:
            trimmed_seq, trimmed_total, merged = run.execute("SELECT trimmed_seq, trimmed_total, merged_seq FROM totals").fetchone()
            if seq > self.end().seq:
                return False
            if total < 0 or seq < trimmed_seq or seq <= merged:
                return True
            if seq == trimmed_seq:
                return bool(total == trimmed_total)
            row = run.execute("SELECT total FROM events WHERE seq = ?", (seq,)).fetchone()
            return row is not None and row[0] == total

    def wait(self, seconds: float) -> bool:
        """Wait until something is published; returns False when ``seconds`` have passed without."""
        with self._published:
            return seconds > 0 and self._published.wait(seconds)

    def _tell(self, fits: Callable[[Mark, Mark], bool]) -> None:
        """Fix the running totals of the next events as long as ``fits`` (last one told, next one): from now on they never change."""
        with self.database.reading() as run:
            mark, totals = self._told, []
            for seq, size in run.execute("SELECT seq, bytes FROM events WHERE seq > ? ORDER BY seq", (mark.seq,)):
                following = Mark(seq, mark.total + size)
                if not fits(mark, following):
                    break
                mark = following
                totals.append((mark.total, mark.seq))
            if totals:
                with self.database.transaction() as write:
                    write.executemany("UPDATE events SET total = ? WHERE seq = ?", totals)
                self._told = mark

    def _last_told(self) -> Mark:
        with self.database.reading() as run:
            row = run.execute("SELECT seq, total FROM events WHERE total IS NOT NULL ORDER BY seq DESC LIMIT 1").fetchone()
        trimmed = self.trimmed()  # what is held for some consumer may lie before that
        return Mark(*row) if row and row[0] > trimmed.seq else trimmed

    # --- forgetting

    def trimmed(self) -> Mark:
        """Up to where events have been forgotten for good."""
        with self.database.reading() as run:
            return Mark(*run.execute("SELECT trimmed_seq, trimmed_total FROM totals").fetchone())

    def size(self) -> int:
        """How much the events take, bytes, about."""
        return self._size

    @contextmanager
    def edit(self, upto: int) -> Iterator["Edit"]:
        """One transaction that changes or deletes events up to and with ``upto``: nothing is merged into them any more."""
        with self.database.reading():
            self._tell(lambda _, following: following.seq <= upto)
            with self.database.transaction() as run:
                edit = Edit(run)
                yield edit
            self._size += edit.grown
            self._last = {line: last for line, last in self._last.items() if last[0] > upto}

    def _sum_of_sizes(self, where: str, values: tuple[int, ...]) -> int:
        with self.database.reading() as run:
            (size,) = run.execute(f"SELECT coalesce(sum(size), 0) FROM events WHERE {where}", values).fetchone()
        return int(size)


def _key(log: LogId) -> tuple[int, str, int, str]:
    return log.broker, log.topic, log.partition, log.topic_id


def _merged(before: Event, event: Event) -> Event | None:
    return merged_found(before, event) if before.kind is event.kind is Kind.FOUND else before.merged(event)


def merged_found(before: Event, event: Event) -> Event:
    """What two FOUND events of one log say."""
    return replace(event, segments=before.segments) if event.segments is None else event
