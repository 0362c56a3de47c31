"""The journal: events in order with the places that go with them, written together so that neither can run ahead of the other.

``seq`` is the position. An event that was told to a reader never changes again, and carries the running total of the log bytes published up
to it: how far a byte budget reaches is one look-up. Before that, the next append of its log may still be merged into it.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from pathlib import Path

from streaming.kafka.producers import Producers
from streaming.rows import Kind
from streaming.watcher import producers, registering
from streaming.watcher.blobs import merged_entries, merged_steps, still_counts
from streaming.watcher.database import Database
from streaming.watcher.events import Event, LogId, Place
from streaming.watcher.producers import Pages
from streaming.watcher.registering import Registration
from streaming.watcher.stored import COLUMNS, counted_bytes, event_of, insert

_PLACE = tuple(field.name for field in fields(Place) if field.name != "log")
_values = attrgetter(*_PLACE)
_PLACE_COLUMNS = ", ".join((*(field.name for field in fields(LogId)), *_PLACE))
_PUT_PLACE = f"INSERT OR REPLACE INTO places ({_PLACE_COLUMNS}) VALUES ({','.join('?' * (4 + len(_PLACE)))})"
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
)


_Line = tuple[LogId, bool]
"""Events of which one may be merged into the one before it: those of a log that are facts, or those that are not."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A point in a journal: everything up to and with ``seq``, which is ``total`` bytes of logs published since its beginning."""

    seq: int
    total: int


class Journal:
    """The events of one agent. Safe to use from several threads. Everything raises JournalError if the file cannot be used."""

    def __init__(self, directory: Path, cluster_id: str, clock_ms: Callable[[], int]) -> None:
        """Open or make the journal in ``directory``. Raises JournalError as `Database` does."""
        self.database = Database(directory, cluster_id)
        self.id = self.database.id
        self._clock_ms = clock_ms
        self._published = threading.Condition()
        self._last: dict[_Line, tuple[int, Event]] = {}
        self._told = self._last_told()
        self._size = self._sum_of_sizes("seq > 0", ())

    def close(self) -> None:
        """Close the file."""
        self.database.close()

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

        An append that continues the last event of its log is merged into it, and a full picture takes the place of the one before, as long
        as no answer to any reader has included that one.

        Args:
            registers: a consumer whose beginning these events are. It stands right before them: nothing is merged across that place.
        """
        last: dict[_Line, tuple[int, Event]] = {}
        with self.database.reading():  # the lock is held until what is remembered agrees with the file
            if registers is not None:
                self._tell(lambda *_: True)
            with self.database.transaction() as run:
                at_ms, grown = self._clock_ms(), 0
                if registers is not None:
                    registering.write(run, registers, self.end().seq, at_ms)
                for event in events:
                    line = (event.log, event.kind is Kind.FACTS)
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
            self._tell(lambda told, following: told.seq <= after or following.total <= limit)
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
            row = run.execute("SELECT total FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (seq,)).fetchone()
            return Mark(seq, row[0] if row else self.trimmed().total)

    def read(self, after: int, upto: int) -> list[tuple[int, Event]]:
        """The events with ``after < seq <= upto``, in order."""
        with self.database.reading() as run:
            self._tell(lambda _, following: following.seq <= upto)
            rows = run.execute(f"SELECT {COLUMNS} FROM events WHERE seq > ? AND seq <= ? ORDER BY seq", (after, upto)).fetchall()
        return [(row[0], event_of(row)) for row in rows]

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
        return Mark(*row) if row else self.trimmed()

    # --- forgetting

    def trimmed(self) -> Mark:
        """Up to where events have been forgotten for good."""
        with self.database.reading() as run:
            return Mark(*run.execute("SELECT trimmed_seq, trimmed_total FROM totals").fetchone())

    def size(self) -> int:
        """How much the events take, bytes, about."""
        return self._size

    def trim(self, upto: int) -> None:
        """Forget all events up to and with ``upto``."""
        with self.database.reading():
            self._tell(lambda _, following: following.seq <= upto)
            with self.database.transaction() as run:
                row = run.execute("SELECT seq, total FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (upto,)).fetchone()
                if row is None:
                    return
                forgotten = self._sum_of_sizes("seq <= ?", (upto,))
                run.execute("DELETE FROM events WHERE seq <= ?", (upto,))
                run.execute("UPDATE totals SET trimmed_seq = ?, trimmed_total = ?", row)
            self._size -= forgotten
            self._last = {line: last for line, last in self._last.items() if last[0] > upto}

    def trim_losing(self, upto: int) -> int:
        """Forget what some consumer has not had: of each log the appends that follow each other become one SKIPPED event in their place.

        It still tells which transactions they have opened and closed, and what coordinators wrote in them: without that, what ended there
        would seem open for ever.

        Returns:
            How many bytes of logs will never reach that consumer, besides those that would not anyway.
        """
        with self.database.reading() as run:
            self._tell(lambda _, following: following.seq <= upto)
            runs: dict[LogId, tuple[int, int, Event]] = {}
            kept, lost = [], 0
            for *row, total in run.execute(f"SELECT {COLUMNS}, total FROM events WHERE seq <= ? ORDER BY seq", (upto,)):
                event = event_of(tuple(row))
                if event.kind is Kind.APPENDED or (event.kind is Kind.SKIPPED and not _tells_what_is_open(event)):
                    lost += event.bytes if event.kind is Kind.APPENDED else 0
                    runs[event.log] = (row[0], total, _skipped(runs.get(event.log), event))
                elif event.kind not in (Kind.BEAT, Kind.FACTS):  # the next full picture tells all of it again
                    kept += [runs.pop(event.log)] if event.log in runs else []
                    kept.append((row[0], total, event))
            kept += runs.values()
            with self.database.transaction() as write:
                forgotten, at_ms = self._sum_of_sizes("seq <= ?", (upto,)), self._clock_ms()
                write.execute("DELETE FROM events WHERE seq <= ?", (upto,))
                left = sum(insert(write, event, at_ms, seq=seq, total=total)[1] for seq, total, event in kept)
            self._size += left - forgotten
            self._last = {line: last for line, last in self._last.items() if last[0] > upto}
        return lost

    def _sum_of_sizes(self, where: str, values: tuple[int, ...]) -> int:
        with self.database.reading() as run:
            (size,) = run.execute(f"SELECT coalesce(sum(size), 0) FROM events WHERE {where}", values).fetchone()
        return int(size)


def _key(log: LogId) -> tuple[int, str, int, str]:
    return log.broker, log.topic, log.partition, log.topic_id


def _merged(before: Event, event: Event) -> Event | None:
    if before.kind is event.kind is Kind.FACTS:
        return replace(event, facts=before.facts) if event.facts is None else event
    return event if before.kind is event.kind is Kind.BEAT else before.merged(event)


def _skipped(run: tuple[int, int, Event] | None, event: Event) -> Event:
    """A run of lost events of one log with one more."""
    one = replace(
        Event(kind=Kind.SKIPPED, reason="journal_trimmed", transactions=still_counts(event.transactions), coordinator=event.coordinator),
        **{name: getattr(event, name) for name in _GOES_ON},
    )
    if run is None:
        return one
    before = run[2]
    return replace(
        one,
        base_offset=min(before.base_offset, one.base_offset),
        bytes=before.bytes + one.bytes,
        transactions=still_counts(merged_steps(before.transactions, one.transactions, before.bytes)),
        coordinator=merged_entries(before.coordinator, one.coordinator),
    )


def _tells_what_is_open(event: Event) -> bool:
    """Whether a loss says anew what is open behind it; then nothing of what was before it can be told together with it."""
    return event.base_offset < event.next_offset and event.reason != "journal_trimmed"
