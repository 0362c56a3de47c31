"""The tables of a journal's file, and their version. Each belongs to one module, which has all statements about it."""

import sqlite3
import uuid
from dataclasses import dataclass

from streaming.broker.journal import blocks, consumer_states, producer_pages, published, stored_logs
from streaming.broker.journal.tables import StoredTable, value

VERSION = 12

_TABLES = """
CREATE TABLE journal (id TEXT NOT NULL, cluster_id TEXT NOT NULL);
CREATE TABLE totals (
  seq INTEGER NOT NULL, published INTEGER NOT NULL,
  trimmed_seq INTEGER NOT NULL, trimmed_total INTEGER NOT NULL, merged_seq INTEGER NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class JournalIdentity:
    """The journal's own id, and that of the cluster that its logs belong to."""

    id: str
    cluster_id: str


@dataclass(frozen=True, slots=True)
class JournalTotals:
    """The last seq, and the bytes of logs that were published up to it; the same of what is forgotten for ever.

    ``merged_seq``: up to here, events may have been joined or merged with later ones.
    """

    seq: int = 0
    published: int = 0
    trimmed_seq: int = 0
    trimmed_total: int = 0
    merged_seq: int = 0


_JOURNAL, _TOTALS = StoredTable("journal", JournalIdentity), StoredTable("totals", JournalTotals)


def belongs(run: sqlite3.Connection, cluster_id: str) -> None:
    """Note the cluster of a journal that was made when it was not known."""
    run.execute("UPDATE journal SET cluster_id = ? WHERE cluster_id = ''", (cluster_id,))


def version(run: sqlite3.Connection) -> int:
    """The version of a file, 0 if it has no tables yet."""
    return int(value(run, "PRAGMA user_version"))


def make(run: sqlite3.Connection, cluster_id: str) -> str:
    """Make all tables of a new journal; returns its id. In the caller's transaction."""
    journal_id = str(uuid.uuid4())
    for owner in (blocks.TABLE, consumer_states.TABLES, producer_pages.TABLE, published.TABLES, stored_logs.TABLES, _TABLES):
        for statement in owner.split(";"):
            run.execute(statement)
    _JOURNAL.insert(run, JournalIdentity(journal_id, cluster_id))
    _TOTALS.insert(run, JournalTotals())
    run.execute(f"PRAGMA user_version={VERSION}")
    return journal_id


def identity(run: sqlite3.Connection) -> JournalIdentity:
    """Whose journal this is."""
    found = _JOURNAL.first(run)
    assert found is not None  # it is written with the tables
    return found


def totals(run: sqlite3.Connection) -> JournalTotals:
    """How far the journal goes, and how much of it is forgotten or merged."""
    found = _TOTALS.first(run)
    assert found is not None  # it is written with the tables
    return found


def note(run: sqlite3.Connection, **changed: int) -> None:
    """Note other totals."""
    run.execute(f"UPDATE totals SET {', '.join(f'{name} = ?' for name in changed)}", tuple(changed.values()))


def note_merged(run: sqlite3.Connection, seq: int) -> None:
    """Note that events up to ``seq`` may have been joined or merged."""
    note(run, merged_seq=max(seq, totals(run).merged_seq))
