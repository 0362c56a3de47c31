"""The journal: events in order with the places that go with them, written together so that neither can run ahead of the other.

``seq`` is the position. What is published together is a block; an event of it never changes again, and carries the running total of the
log bytes published up to it: how far a byte budget reaches is one look-up.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path

import numpy as np
import pyarrow as pa

from streaming.disk.scanned import SegmentKey
from streaming.kafka.producers import Producers
from streaming.watcher import producers, registering, stored
from streaming.watcher.blocks import BLOCK_BYTES, BLOCK_ROWS, Row, blob_bytes, block_of, counted_bytes, longs, part, rows_of
from streaming.watcher.database import Database
from streaming.watcher.events import Event, LogId, Place
from streaming.watcher.producers import Pages
from streaming.watcher.registering import Registration

_PLACE = tuple(field.name for field in fields(Place) if field.name != "log")
_values = attrgetter(*_PLACE)
_PLACE_COLUMNS = ", ".join((*(field.name for field in fields(LogId)), *_PLACE))
_PUT_PLACE = f"INSERT OR REPLACE INTO places ({_PLACE_COLUMNS}) VALUES ({','.join('?' * (4 + len(_PLACE)))})"
_SCANNED = ", ".join(SegmentKey._fields)


@dataclass(frozen=True, slots=True)
class Mark:
    """A point in a journal: everything up to and with ``seq``, which is ``total`` bytes of logs published since its beginning."""

    seq: int
    total: int


class Edit:
    """A transaction that forgets or changes events. ``grown``: by how much what is held has become larger, bytes, about."""

    def __init__(self, run: sqlite3.Connection) -> None:
        self.run = run
        self.grown = 0

    def delete(self, after: int, upto: int) -> None:
        """Delete the events with ``after < seq <= upto``."""
        self.grown += stored.delete(self.run, after, upto)

    def change(self, gone: Iterable[int], put: Mapping[int, Event]) -> None:
        """Delete events, and put others in the places of some."""
        self.grown += stored.change(self.run, gone, put)


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
        self._size: int
        with self.database.reading() as run:
            (self._size,) = run.execute("SELECT coalesce(sum(size), 0) FROM blocks").fetchone()

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
            row = run.execute("SELECT at_ms FROM blocks ORDER BY last DESC LIMIT 1").fetchone()
            (seen_ms,) = run.execute("SELECT max(seen_ms) FROM consumers").fetchone()
            last_ms = seen_ms if row is None else row[0]
            if last_ms is None:
                return
            # what is later than the last event was written by a clock that was ahead for a while
            run.execute("UPDATE blocks SET at_ms = ? WHERE at_ms > ?", (last_ms, last_ms))
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

        Args:
            registers: a consumer whose beginning these events are. It stands right before them.
        """
        with self.database.reading():  # the lock is held until what is remembered agrees with the file
            with self.database.transaction() as run:
                at_ms, end, grown = self.now_ms(), self.end(), 0
                if registers is not None:
                    registering.write(run, registers, end.seq, at_ms)
                for block in _blocks(events, end):
                    grown += stored.insert(run, block_of(block), at_ms)
                    end = Mark(block[-1].seq, block[-1].total)
                run.execute("UPDATE totals SET seq = ?, published = ?", (end.seq, end.total))
                run.executemany(_PUT_PLACE, [(*_key(place.log), *_values(place)) for place in places])
                run.executemany("DELETE FROM places WHERE broker = ? AND topic = ? AND partition = ? AND topic_id = ?", map(_key, gone))
                producers.write(run, pages)
                for log in gone:
                    producers.forget(run, log)
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
            return Mark(*run.execute("SELECT seq, published FROM totals").fetchone())

    def reach(self, after: int, budget: int | None) -> Mark:
        """How far ``budget`` bytes of logs reach after seq ``after`` (None: to the end).

        At least one event always passes, or nothing ever would.
        """
        with self.database.reading() as run:
            if budget is None:
                return self.end()
            begin = self.at(after)
            limit = begin.total + budget
            row = run.execute(
                "SELECT last, total FROM blocks WHERE last > ? AND total <= ? ORDER BY last DESC LIMIT 1", (after, limit)
            ).fetchone()
            whole = None if row is None else Mark(*row)
            block = stored.with_row_behind(run, after if whole is None else whole.seq)
            if block is None:
                return whole or begin
            rows = part(block.rows, after, block.last)
            seqs, fitting = longs(rows, "seq"), int(np.searchsorted(longs(rows, "total"), limit, side="right"))
            if fitting == 0 and whole is not None:
                return whole
            at = max(fitting - 1, 0)
            return Mark(int(seqs[at]), int(longs(rows, "total")[at]))

    def at(self, seq: int) -> Mark:
        """The mark of an event that is in the journal, or was the last one to be forgotten."""
        with self.database.reading() as run:
            trimmed, block = self.trimmed(), stored.with_row_behind(run, seq - 1)
            rows = None if block is None else part(block.rows, trimmed.seq, seq)  # what lies further back is held for somebody else
            if rows is not None and len(rows):
                return Mark(seq, int(longs(rows, "total")[-1]))
            row = run.execute(
                "SELECT total FROM blocks WHERE last > ? AND last < ? ORDER BY last DESC LIMIT 1", (trimmed.seq, seq)
            ).fetchone()
            return Mark(seq, row[0] if row else trimmed.total)

    def blocks(self, after: int, upto: int) -> list[pa.RecordBatch]:
        """The events with ``after < seq <= upto``, in order, as they lie: columns of `streaming.watcher.blocks.BLOCK`."""
        with self.database.reading() as run:
            found = list(stored.blocks(run, after, upto))
        return [part(block.rows, after, upto) for block in found]

    def read(self, after: int, upto: int) -> list[tuple[int, Event]]:
        """The events with ``after < seq <= upto``, in order."""
        return [(row.seq, row.event) for block in self.blocks(after, upto) for row in rows_of(block)]

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
            block = stored.with_row_behind(run, seq - 1)
            rows = () if block is None else part(block.rows, seq - 1, seq)
            return len(rows) > 0 and int(longs(rows, "total")[0]) == total

    def wait(self, seconds: float) -> bool:
        """Wait until something is published; returns False when ``seconds`` have passed without."""
        with self._published:
            return seconds > 0 and self._published.wait(seconds)

    # --- forgetting

    def trimmed(self) -> Mark:
        """Up to where events have been forgotten for good."""
        with self.database.reading() as run:
            return Mark(*run.execute("SELECT trimmed_seq, trimmed_total FROM totals").fetchone())

    def size(self) -> int:
        """How much the events take, bytes, about."""
        return self._size

    @contextmanager
    def edit(self) -> Iterator["Edit"]:
        """One transaction that changes or deletes events."""
        with self.database.reading():
            with self.database.transaction() as run:
                edit = Edit(run)
                yield edit
            self._size += edit.grown


def _key(log: LogId) -> tuple[int, str, int, str]:
    return log.broker, log.topic, log.partition, log.topic_id


def _blocks(events: Iterable[Event], end: Mark) -> Iterator[list[Row]]:
    """The rows of events that come behind ``end``, a block at a time."""
    block: list[Row] = []
    seq, total, size = end.seq, end.total, 0
    for event in events:
        seq, total, size = seq + 1, total + counted_bytes(event), size + blob_bytes(event)
        block.append(Row(seq, total, event))
        if len(block) == BLOCK_ROWS or size >= BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block
