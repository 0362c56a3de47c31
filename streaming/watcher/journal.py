"""The journal: events in order with the places that go with them, written together so that neither can run ahead of the other.

``seq`` is the position. Every event carries a running total of the log bytes published up to it, so how far a byte budget reaches is one look-up.
"""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

from streaming.rows import Kind
from streaming.watcher.database import Database
from streaming.watcher.events import Event, LogId, Place

_KEYED = ("kind", "broker", "topic", "partition", "topic_id", "base_offset", "next_offset", "detail")
_BODY = tuple(field.name for field in fields(Event) if field.name not in _KEYED)
_TUPLES = frozenset({"codec_bytes", "batch_bytes_buckets", "batch_records_buckets"})
_PLACE = tuple(field.name for field in fields(Place) if field.name != "log")
_COUNTED = (Kind.APPENDED, Kind.SKIPPED)
_ROW_OVERHEAD_BYTES = 200  # what SQLite needs for an event besides its body, about


@dataclass(frozen=True, slots=True)
class Mark:
    """A point in a journal: everything up to and with ``seq``, which is ``total`` bytes of logs published since its beginning."""

    seq: int
    total: int


class Journal:
    """The events of one agent. Safe to use from several threads."""

    def __init__(self, directory: Path, cluster_id: str, clock_ms: Callable[[], int]) -> None:
        """Open or make the journal in ``directory``. Raises JournalError as `Database` does."""
        self.database = Database(directory, cluster_id)
        self.id = self.database.id
        self._clock_ms = clock_ms
        self._published = threading.Condition()
        self._last: dict[LogId, tuple[int, Event]] = {}
        end = self.end()
        self._told = end.seq  # what an earlier process answered is not known: it may have told everything

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def end(self) -> Mark:
        """The end of what is published."""
        with self.database.reading() as run:
            (seq,) = run.execute("SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)").fetchone()
            (total,) = run.execute("SELECT published FROM totals").fetchone()
        return Mark(seq, total)

    def places(self) -> list[Place]:
        """Where reading stands for every log, as of the last event."""
        with self.database.reading() as run:
            rows = run.execute("SELECT * FROM places").fetchall()
        return [Place(log=LogId(*row[:4]), **dict(zip(_PLACE, row[4:], strict=True))) for row in rows]

    def publish(self, events: Sequence[Event], places: Iterable[Place] = (), gone: Iterable[LogId] = ()) -> None:
        """Write events and the places they lead to, durably. An append that continues the last event of its log is merged into it,
        as long as no answer to any reader has included that one."""
        with self.database.transaction() as run:
            (total,) = run.execute("SELECT published FROM totals").fetchone()
            at_ms = self._clock_ms()
            for event in events:
                total += event.bytes if event.kind in _COUNTED else 0
                merged = self._merge(event)
                if merged is not None:
                    run.execute("DELETE FROM events WHERE seq = ?", (self._last[event.log][0],))
                self._last[event.log] = (_insert(run, merged or event, total, at_ms), merged or event)
            run.execute("UPDATE totals SET published = ?", (total,))
            run.executemany(
                f"INSERT OR REPLACE INTO places VALUES ({','.join('?' * 16)})",
                [(*astuple(place.log), *(getattr(place, name) for name in _PLACE)) for place in places],
            )
            for log in gone:
                run.execute("DELETE FROM places WHERE broker = ? AND topic = ? AND partition = ? AND topic_id = ?", astuple(log))
        if events:
            with self._published:
                self._published.notify_all()

    def _merge(self, event: Event) -> Event | None:
        seq, last = self._last.get(event.log, (0, None))
        if last is None or seq <= self._told:
            return None
        return last.merged(event)

    def reach(self, after: int, budget: int | None) -> Mark:
        """How far ``budget`` bytes of logs reach after seq ``after`` (None: to the end). At least one event always passes, or nothing ever would."""
        with self.database.reading() as run:
            if budget is None:
                mark = self.end()
            else:
                (begin,) = run.execute("SELECT coalesce((SELECT total FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1), "
                                       "(SELECT trimmed_total FROM totals))", (after,)).fetchone()  # fmt: skip
                row = run.execute("SELECT seq, total FROM events WHERE seq > ? AND total <= ? ORDER BY seq DESC LIMIT 1", (after, begin + budget)).fetchone()
                first = run.execute("SELECT seq, total FROM events WHERE seq > ? ORDER BY seq LIMIT 1", (after,)).fetchone()
                mark = Mark(*(row or first or (after, begin)))
            self._told = max(self._told, mark.seq)
            return mark

    def at(self, seq: int) -> Mark:
        """The mark of an event that is in the journal, or was the last one to be forgotten."""
        with self.database.reading() as run:
            row = run.execute("SELECT total FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (seq,)).fetchone()
        return Mark(seq, row[0] if row else self.trimmed().total)

    def renew(self) -> None:
        """Be another journal from now on: a reader has seen this one at a point it does not reach (it was restored from a copy)."""
        self.id = self.database.renew()

    def read(self, after: int, upto: int) -> list[tuple[int, Event]]:
        """The events with ``after < seq <= upto``, in order."""
        with self.database.reading() as run:
            rows = run.execute(
                "SELECT seq, kind, broker, topic, partition, topic_id, base_offset, next_offset, detail, body FROM events "
                "WHERE seq > ? AND seq <= ? ORDER BY seq",
                (after, upto),
            ).fetchall()
            self._told = max(self._told, upto)
        return [(row[0], _event(row)) for row in rows]

    def wait(self, seconds: float) -> bool:
        """Wait until something is published; returns False when ``seconds`` have passed without."""
        with self._published:
            return seconds > 0 and self._published.wait(seconds)

    def trimmed(self) -> Mark:
        """Up to where events have been forgotten for good."""
        with self.database.reading() as run:
            return Mark(*run.execute("SELECT trimmed_seq, trimmed_total FROM totals").fetchone())

    def size(self) -> int:
        """How much the events take, bytes, about."""
        with self.database.reading() as run:
            (size,) = run.execute("SELECT coalesce(sum(size), 0) FROM events").fetchone()
        return int(size)

    def trim(self, upto: int) -> None:
        """Forget all events up to and with ``upto``."""
        with self.database.transaction() as run:
            row = run.execute("SELECT seq, total FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (upto,)).fetchone()
            if row is None:
                return
            run.execute("DELETE FROM events WHERE seq <= ?", (upto,))
            run.execute("UPDATE totals SET trimmed_seq = ?, trimmed_total = ?", row)
        self._last = {log: last for log, last in self._last.items() if last[0] > upto}

    def trim_losing(self, upto: int) -> int:
        """Forget events that some consumer has not had: each log's lost appends become one SKIPPED event in their place.

        Returns:
            How many bytes of logs will never reach that consumer.
        """
        lost: dict[LogId, Event] = {}
        for _, event in self.read(0, upto):
            if event.kind in _COUNTED:
                before = lost.get(event.log)
                skipped = replace(Event(kind=Kind.SKIPPED), **{name: getattr(event, name) for name in _SKIPPED_FROM})
                if before is not None:
                    skipped = replace(skipped, base_offset=min(before.base_offset, event.base_offset), bytes=before.bytes + event.bytes)
                lost[event.log] = skipped
        with self.database.transaction() as run:
            (total,) = run.execute("SELECT total FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (upto,)).fetchone()
            run.execute("DELETE FROM events WHERE seq <= ?", (upto,))
            # the lost ranges take the highest sequence numbers that became free: before everything that is kept, and in order
            for seq, event in zip(range(upto - len(lost) + 1, upto + 1), lost.values(), strict=True):
                _insert(run, event, total, self._clock_ms(), seq)
        self._last = {log: last for log, last in self._last.items() if last[0] > upto}
        return sum(event.bytes for event in lost.values())


_SKIPPED_FROM = ("broker", "log_dir", "topic", "partition", "topic_id", "segment", "base_offset", "next_offset", "end_position", "bytes", "settled")


def _insert(run: sqlite3.Connection, event: Event, total: int, at_ms: int, seq: int | None = None) -> int:
    body = json.dumps([getattr(event, name) for name in _BODY], separators=(",", ":"))
    size = _ROW_OVERHEAD_BYTES + len(body) + (len(event.detail) if event.detail is not None else 0)
    keys = (event.kind, event.broker, event.topic, event.partition, event.topic_id, event.base_offset, event.next_offset)
    cursor = run.execute("INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", (seq, at_ms, total, size, *keys, body, event.detail))
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _event(row: tuple[Any, ...]) -> Event:
    body = {name: tuple(value) if name in _TUPLES else value for name, value in zip(_BODY, json.loads(row[9]), strict=True)}
    keys = zip(_KEYED, row[1:9], strict=True)
    return Event(**{**dict(keys), "kind": Kind(row[1]), **body})
