"""The readers among the consumers of a journal: the tables ``readers`` and ``reader_backlogs``.

A reader is a query of somebody who wants rows, each once. It keeps no state, so it is sent exactly what it has planned. What lay on disk
before its beginning is no event of its own in the journal: it is a list of excerpts, which are scanned when they are read.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import zstandard

from streaming.broker.journal.tables import StoredTable

TABLES = (
    "CREATE TABLE IF NOT EXISTS readers (consumer TEXT PRIMARY KEY, holds INTEGER NOT NULL, excerpts INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE IF NOT EXISTS reader_backlogs (
  consumer TEXT NOT NULL, first INTEGER NOT NULL, excerpts BLOB NOT NULL, PRIMARY KEY (consumer, first)) WITHOUT ROWID""",
)

PART = 1000
"""The excerpts of a row."""


@dataclass(frozen=True, slots=True)
class StoredReader:
    """``holds``: the journal keeps what the reader has not read yet, as for a job. ``excerpts``: how many its backlog has."""

    consumer: str
    holds: int
    excerpts: int


@dataclass(frozen=True, slots=True)
class BacklogExcerpt:
    """A part of a segment, as `streaming.broker.protocol.excerpt_messages.Excerpt` has it."""

    broker: int
    log_dir: str
    topic: str
    partition: int
    topic_id: str
    segment: int
    begin: int
    end: int
    bytes: int
    from_offset: int
    until_offset: int
    until_epoch: int


@dataclass(frozen=True, slots=True)
class _Part:
    consumer: str
    first: int
    excerpts: bytes


_READERS, _PARTS = StoredTable("readers", StoredReader), StoredTable("reader_backlogs", _Part)


def make(run: sqlite3.Connection) -> None:
    """Make the tables in a journal that has none."""
    for statement in TABLES:
        run.execute(statement)


def read(run: sqlite3.Connection, consumer: str) -> StoredReader | None:
    """A reader, None if the consumer is none."""
    return _READERS.first(run, "WHERE consumer = ?", consumer)


def loose(run: sqlite3.Connection) -> set[str]:
    """The readers for which the journal keeps nothing."""
    return {each.consumer for each in _READERS.all(run, "WHERE NOT holds")}


def names(run: sqlite3.Connection) -> set[str]:
    """All readers."""
    return {each.consumer for each in _READERS.all(run)}


def write(run: sqlite3.Connection, reader: StoredReader, excerpts: Sequence[BacklogExcerpt]) -> None:
    """Write a reader that begins, with what lay on disk before."""
    _READERS.put(run, [reader])
    for first in range(0, len(excerpts), PART):
        packed = zstandard.compress(json.dumps([astuple(each) for each in excerpts[first : first + PART]]).encode())
        _PARTS.put(run, [_Part(reader.consumer, first, packed)])


def backlog(run: sqlite3.Connection, consumer: str, begin: int, end: int) -> list[BacklogExcerpt]:
    """The excerpts of a reader from one number to another."""
    found: list[BacklogExcerpt] = []
    parts = _PARTS.all(run, "WHERE consumer = ? AND first > ? AND first < ? ORDER BY first", consumer, begin - PART, end)
    for part in parts:
        excerpts = json.loads(zstandard.decompress(part.excerpts))
        found += [BacklogExcerpt(*each) for each in excerpts[max(0, begin - part.first) : end - part.first]]
    return found


def forget(run: sqlite3.Connection, consumer: str) -> None:
    """Delete a reader."""
    for table in ("readers", "reader_backlogs"):
        run.execute(f"DELETE FROM {table} WHERE consumer = ?", (consumer,))
