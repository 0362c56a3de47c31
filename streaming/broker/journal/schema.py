"""The tables of a journal's file, and their version.

Each table belongs to one module, which has all statements about it: `stored_blocks`, `stored_logs` (three tables), `producer_pages`,
`cursor_moves`, `consumer_rows`, `reader_rows` (two tables), `published_ends`, `published_lists`, `losses` (two tables), `totals`. The table
``journal`` is this module's.
"""

import sqlite3
import uuid
from dataclasses import dataclass

from streaming.broker.journal import cursor_moves, published_ends, published_lists, reader_rows, totals
from streaming.broker.journal.tables import StoredTable, value

VERSION = 10

MOVED_VERSION = 11
"""The version of a file while moves wait in it."""

_SCHEMA = """
CREATE TABLE blocks (
  last INTEGER PRIMARY KEY, first INTEGER NOT NULL, count INTEGER NOT NULL, at_ms INTEGER NOT NULL, total INTEGER NOT NULL,
  size INTEGER NOT NULL, published INTEGER NOT NULL, rows BLOB NOT NULL);
CREATE TABLE ladders (
  base_offset INTEGER NOT NULL, size INTEGER NOT NULL, modified_ms INTEGER NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
  ladder BLOB NOT NULL, PRIMARY KEY (inode, base_offset, device, size, modified_ms));
CREATE TABLE journal (id TEXT NOT NULL, cluster_id TEXT NOT NULL);
CREATE TABLE cursors (
  broker INTEGER NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, topic_id TEXT NOT NULL,
  segment INTEGER NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL, position INTEGER NOT NULL, next_offset INTEGER NOT NULL,
  log_epoch INTEGER NOT NULL, anchor BLOB NOT NULL, anchor_position INTEGER NOT NULL, frontier INTEGER NOT NULL, stopped TEXT NOT NULL,
  skipped INTEGER NOT NULL, backlog_segment INTEGER NOT NULL, backlog_position INTEGER NOT NULL,
  first_timestamp INTEGER NOT NULL, largest_timestamp INTEGER NOT NULL, epochs BLOB NOT NULL,
  replay TEXT NOT NULL, wanted TEXT NOT NULL, entries_upto INTEGER NOT NULL, reread INTEGER NOT NULL,
  PRIMARY KEY (broker, topic, partition, topic_id)) WITHOUT ROWID;
CREATE TABLE producers (
  broker INTEGER NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, topic_id TEXT NOT NULL, page INTEGER NOT NULL,
  entries BLOB NOT NULL, PRIMARY KEY (broker, topic, partition, topic_id, page)) WITHOUT ROWID;
CREATE TABLE consumers (
  id TEXT PRIMARY KEY, committed INTEGER NOT NULL, seen_ms INTEGER NOT NULL,
  missed INTEGER NOT NULL, begun INTEGER NOT NULL,
  generation TEXT NOT NULL, principal TEXT NOT NULL, resumed INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE reads (consumer TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (consumer, seq)) WITHOUT ROWID;
CREATE TABLE losses (
  consumer TEXT NOT NULL, after INTEGER NOT NULL, upto INTEGER NOT NULL, bytes INTEGER NOT NULL,
  PRIMARY KEY (consumer, upto)) WITHOUT ROWID;
CREATE TABLE scanned (
  base_offset INTEGER NOT NULL, size INTEGER NOT NULL, modified_ms INTEGER NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
  largest_timestamp INTEGER NOT NULL, PRIMARY KEY (inode, base_offset, device, size, modified_ms)) WITHOUT ROWID;
CREATE TABLE totals (
  seq INTEGER NOT NULL, published INTEGER NOT NULL,
  trimmed_seq INTEGER NOT NULL, trimmed_total INTEGER NOT NULL, merged_seq INTEGER NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class JournalIdentity:
    """The journal's own id, and that of the cluster that its logs belong to."""

    id: str
    cluster_id: str


_JOURNAL = StoredTable("journal", JournalIdentity)


def belongs(run: sqlite3.Connection, cluster_id: str) -> None:
    """Note the cluster of a journal that was made when it was not known."""
    run.execute("UPDATE journal SET cluster_id = ? WHERE cluster_id = ''", (cluster_id,))


def version(run: sqlite3.Connection) -> int:
    """The version of a file, 0 if it has no tables yet."""
    return int(value(run, "PRAGMA user_version"))


def make(run: sqlite3.Connection, cluster_id: str) -> str:
    """Make all tables of a new journal; returns its id. In the caller's transaction."""
    journal_id = str(uuid.uuid4())
    for statement in _SCHEMA.split(";"):
        run.execute(statement)
    _JOURNAL.insert(run, JournalIdentity(journal_id, cluster_id))
    totals.begin(run)
    run.execute(f"PRAGMA user_version={VERSION}")
    return journal_id


def add_later(run: sqlite3.Connection) -> None:
    """Make the tables that came later, in a journal that lacks them. An earlier version of segtail does not know them and leaves them."""
    run.execute(published_ends.TABLE)
    run.execute(published_lists.TABLE)
    run.execute(cursor_moves.TABLE)
    reader_rows.make(run)


def readable(number: int) -> bool:
    """Whether this segtail reads a journal of that version."""
    return number in (VERSION, MOVED_VERSION)


def moves_wait(run: sqlite3.Connection) -> bool:
    """Whether moves may wait in the file."""
    return version(run) == MOVED_VERSION


def note_moves(run: sqlite3.Connection, *, waiting: bool) -> None:
    """Note in the file whether moves wait in it. In the caller's transaction."""
    run.execute(f"PRAGMA user_version={MOVED_VERSION if waiting else VERSION}")


def identity(run: sqlite3.Connection) -> JournalIdentity:
    """Whose journal this is."""
    found = _JOURNAL.first(run)
    assert found is not None  # it is written with the tables
    return found
