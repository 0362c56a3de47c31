"""The cursors of all logs as of the last event: the table ``cursors``."""

import sqlite3
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from streaming.broker.journal.cursor import Cursor
from streaming.broker.journal.tables import OF_LOG, Table, equal
from streaming.common.log_key import KEY, LogKey


def _cursor(broker: int, topic: str, partition: int, topic_id: str, **rest: Any) -> Cursor:
    return Cursor(log=LogKey(broker, topic, partition, topic_id), **rest)


_CURSORS = Table("cursors", _cursor, OF_LOG | {field.name: field.name for field in fields(Cursor) if field.name != "log"})


def read(run: sqlite3.Connection) -> list[Cursor]:
    """All cursors."""
    return list(_CURSORS.all(run))


def write(run: sqlite3.Connection, cursors: Iterable[Cursor]) -> None:
    """Write cursors, each in place of the one before."""
    _CURSORS.put(run, cursors)


def forget(run: sqlite3.Connection, logs: Iterable[LogKey]) -> None:
    """Delete the cursors of logs."""
    run.executemany(f"DELETE FROM cursors WHERE {equal(KEY)}", logs)
