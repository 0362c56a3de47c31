"""A journal of an earlier version has the tables of a new one after its upgrade."""

import sqlite3
from pathlib import Path

from streaming.journal.journal import Journal
from tests.builders import CLUSTER_ID
from tests.upgrade import before


def columns(path: Path) -> dict[str, set[str]]:
    """The columns of every table."""
    connection = sqlite3.connect(path / "journal.db")
    try:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
        return {table: {row[1] for row in connection.execute(f"PRAGMA table_info({table})")} for table in tables}
    finally:
        connection.close()


def test_an_upgraded_journal_has_every_table_and_column_of_a_new_one(tmp_path: Path) -> None:
    before.unpack("agent", tmp_path)
    for name in ("journal", "new"):
        Journal(tmp_path / name, CLUSTER_ID, lambda: 0).close()
    upgraded, new = columns(tmp_path / "journal"), columns(tmp_path / "new")
    assert upgraded.keys() == new.keys()
    assert [table for table in new if not new[table] <= upgraded[table]] == []
