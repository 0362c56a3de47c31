"""The tables of a journal's file, and how a file of an earlier version is brought to this one.

Each table belongs to one module, which has all statements about it: `stored_blocks`, `stored_cursors`, `producer_pages`, `consumer_rows`,
`losses` (two tables), `scanned_segments`, `stored_ladders`, `totals`. The table ``journal`` is this module's.
"""

import sqlite3
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from streaming.journal import totals
from streaming.journal.earlier_events import into_blocks
from streaming.journal.tables import Table, value

VERSION = 9

_BLOCKS = """CREATE TABLE blocks (
  last INTEGER PRIMARY KEY, first INTEGER NOT NULL, count INTEGER NOT NULL, at_ms INTEGER NOT NULL, total INTEGER NOT NULL,
  size INTEGER NOT NULL, published INTEGER NOT NULL, rows BLOB NOT NULL)"""

_LADDERS = """CREATE TABLE ladders (
  base_offset INTEGER NOT NULL, size INTEGER NOT NULL, modified_ms INTEGER NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
  ladder BLOB NOT NULL, PRIMARY KEY (inode, base_offset, device, size, modified_ms))"""

_SCHEMA = f"""
{_BLOCKS};
{_LADDERS};
CREATE TABLE journal (id TEXT NOT NULL, cluster_id TEXT NOT NULL);
CREATE TABLE cursors (
  broker INTEGER NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, topic_id TEXT NOT NULL,
  segment INTEGER NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL, position INTEGER NOT NULL, next_offset INTEGER NOT NULL,
  log_epoch INTEGER NOT NULL, anchor BLOB NOT NULL, anchor_position INTEGER NOT NULL, frontier INTEGER NOT NULL, stopped TEXT NOT NULL,
  skipped INTEGER NOT NULL, backlog_segment INTEGER NOT NULL, backlog_position INTEGER NOT NULL,
  first_timestamp INTEGER NOT NULL, largest_timestamp INTEGER NOT NULL, epochs BLOB NOT NULL DEFAULT x'',
  replay TEXT NOT NULL DEFAULT '', wanted TEXT NOT NULL DEFAULT '',
  entries_upto INTEGER NOT NULL DEFAULT -1, reread INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (broker, topic, partition, topic_id)) WITHOUT ROWID;
CREATE TABLE producers (
  broker INTEGER NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, topic_id TEXT NOT NULL, page INTEGER NOT NULL,
  entries BLOB NOT NULL, PRIMARY KEY (broker, topic, partition, topic_id, page)) WITHOUT ROWID;
CREATE TABLE consumers (
  id TEXT PRIMARY KEY, streamed INTEGER NOT NULL, committed INTEGER NOT NULL, seen_ms INTEGER NOT NULL,
  missed INTEGER NOT NULL DEFAULT 0, begun INTEGER NOT NULL DEFAULT -1,
  generation TEXT NOT NULL DEFAULT '', principal TEXT NOT NULL DEFAULT '', resumed INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE reads (consumer TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (consumer, seq)) WITHOUT ROWID;
CREATE TABLE losses (
  consumer TEXT NOT NULL, after INTEGER NOT NULL, upto INTEGER NOT NULL, bytes INTEGER NOT NULL,
  PRIMARY KEY (consumer, upto)) WITHOUT ROWID;
CREATE TABLE scanned (
  base_offset INTEGER NOT NULL, size INTEGER NOT NULL, modified_ms INTEGER NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
  largest_timestamp INTEGER NOT NULL, PRIMARY KEY (inode, base_offset, device, size, modified_ms)) WITHOUT ROWID;
CREATE TABLE totals (
  seq INTEGER NOT NULL DEFAULT 0, published INTEGER NOT NULL,
  trimmed_seq INTEGER NOT NULL, trimmed_total INTEGER NOT NULL, merged_seq INTEGER NOT NULL DEFAULT 0);
"""

UPGRADES: dict[int, tuple[str | Callable[[sqlite3.Connection], None], ...]] = {
    3: (
        "ALTER TABLE places ADD COLUMN epochs BLOB NOT NULL DEFAULT x''",
        "ALTER TABLE consumers ADD COLUMN missed INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE consumers ADD COLUMN begun INTEGER NOT NULL DEFAULT -1",
        "CREATE TABLE reads (consumer TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (consumer, seq)) WITHOUT ROWID",
        "CREATE TABLE losses (consumer TEXT NOT NULL, after INTEGER NOT NULL, upto INTEGER NOT NULL, bytes INTEGER NOT NULL, "
        "PRIMARY KEY (consumer, upto)) WITHOUT ROWID",
        "ALTER TABLE totals ADD COLUMN merged_seq INTEGER NOT NULL DEFAULT 0",
        "UPDATE totals SET merged_seq = coalesce((SELECT max(seq) FROM events WHERE kind = 'skipped'), 0)",
        # the losses of these consumers were not measured (`streaming.journal.losses.UNKNOWN`)
        "INSERT INTO losses SELECT id, committed, trimmed_seq, -1 FROM consumers, totals WHERE committed < trimmed_seq",
        "UPDATE consumers SET missed = (SELECT trimmed_seq FROM totals) WHERE committed < (SELECT trimmed_seq FROM totals)",
        "ALTER TABLE places ADD COLUMN replay TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE places ADD COLUMN wanted TEXT NOT NULL DEFAULT ''",
        """CREATE TABLE scanned (
  base_offset INTEGER NOT NULL, size INTEGER NOT NULL, modified_ms INTEGER NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
  largest_timestamp INTEGER NOT NULL, PRIMARY KEY (inode, base_offset, device, size, modified_ms)) WITHOUT ROWID""",
    ),
    4: (
        "ALTER TABLE places ADD COLUMN told INTEGER NOT NULL DEFAULT -1",
        "ALTER TABLE places ADD COLUMN reread INTEGER NOT NULL DEFAULT 0",
        # consumers do not know whether they have all entries of these logs
        "UPDATE places SET reread = 1 WHERE topic = '__transaction_state'",
    ),
    5: (
        # full pictures, and the known state of each log: these kinds do not exist any more; an agent publishes the state anew at its start
        "UPDATE totals SET merged_seq = max(merged_seq, coalesce((SELECT max(seq) FROM events WHERE kind IN ('beat', 'facts')), 0))",
        "DELETE FROM events WHERE kind IN ('beat', 'facts')",
        "ALTER TABLE events RENAME COLUMN facts TO segments",
    ),
    6: (
        _BLOCKS,
        "ALTER TABLE totals ADD COLUMN seq INTEGER NOT NULL DEFAULT 0",
        "UPDATE totals SET seq = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)",
        into_blocks,
        "DROP TABLE events",
        "ALTER TABLE places RENAME TO cursors",
        "ALTER TABLE cursors RENAME COLUMN settled_segment TO backlog_segment",
        "ALTER TABLE cursors RENAME COLUMN settled_position TO backlog_position",
        "ALTER TABLE cursors RENAME COLUMN told TO entries_upto",
    ),
    7: (_LADDERS,),
    8: (
        "ALTER TABLE consumers ADD COLUMN generation TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE consumers ADD COLUMN principal TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE consumers ADD COLUMN resumed INTEGER NOT NULL DEFAULT 0",
    ),
}
"""The steps that upgrade a journal from each earlier version that is still read to the next version."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The journal's own id, and that of the cluster that its logs belong to."""

    id: str
    cluster_id: str


_JOURNAL = Table("journal", Identity)


def version(run: sqlite3.Connection) -> int:
    """The version of a file, 0 if it has no tables yet."""
    return int(value(run, "PRAGMA user_version"))


def make(run: sqlite3.Connection, cluster_id: str) -> str:
    """Make all tables of a new journal; returns its id. In the caller's transaction."""
    journal_id = str(uuid.uuid4())
    for statement in _SCHEMA.split(";"):
        run.execute(statement)
    _JOURNAL.insert(run, Identity(journal_id, cluster_id))
    totals.begin(run)
    run.execute(f"PRAGMA user_version={VERSION}")
    return journal_id


def upgrade(run: sqlite3.Connection, found: int) -> None:
    """Bring a journal of an earlier version to this one. In the caller's transaction."""
    for step in range(found, VERSION):
        for statement in UPGRADES[step]:
            if isinstance(statement, str):
                run.execute(statement)
            else:
                statement(run)
    run.execute(f"PRAGMA user_version={VERSION}")


def identity(run: sqlite3.Connection) -> Identity:
    """Whose journal this is."""
    found = _JOURNAL.first(run)
    assert found is not None  # it is written with the tables
    return found
