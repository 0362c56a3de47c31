"""How far the journal goes, and how much of it is forgotten or merged: the table ``totals``, which has one row."""

import sqlite3
from dataclasses import dataclass

from streaming.broker.journal.tables import StoredTable


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


_TOTALS = StoredTable("totals", JournalTotals)


def begin(run: sqlite3.Connection) -> None:
    """Write the row of a journal without events."""
    _TOTALS.insert(run, JournalTotals())


def read(run: sqlite3.Connection) -> JournalTotals:
    """The row."""
    found = _TOTALS.first(run)
    assert found is not None  # it is written with the tables
    return found


def note_published(run: sqlite3.Connection, seq: int, total: int) -> None:
    """Note the new end."""
    run.execute("UPDATE totals SET seq = ?, published = ?", (seq, total))


def note_trimmed(run: sqlite3.Connection, seq: int, total: int) -> None:
    """Note what is forgotten."""
    run.execute("UPDATE totals SET trimmed_seq = ?, trimmed_total = ?", (seq, total))


def note_merged(run: sqlite3.Connection, seq: int) -> None:
    """Note that events up to ``seq`` may have been joined or merged."""
    run.execute("UPDATE totals SET merged_seq = max(merged_seq, ?)", (seq,))
