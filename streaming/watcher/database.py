"""The journal's file: an SQLite database with one holder, durable at every commit."""

import fcntl
import logging
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.errors import JournalError

log = logging.getLogger(__name__)

_VERSION = 1
_SCHEMA = """
CREATE TABLE journal (id TEXT NOT NULL, cluster_id TEXT NOT NULL);
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, total INTEGER NOT NULL, size INTEGER NOT NULL, kind TEXT NOT NULL,
  broker INTEGER NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, topic_id TEXT NOT NULL,
  base_offset INTEGER NOT NULL, next_offset INTEGER NOT NULL, body TEXT NOT NULL, detail BLOB);
CREATE TABLE places (
  broker INTEGER NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, topic_id TEXT NOT NULL,
  segment INTEGER NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL, position INTEGER NOT NULL, next_offset INTEGER NOT NULL,
  log_epoch INTEGER NOT NULL, anchor BLOB NOT NULL, anchor_position INTEGER NOT NULL, frontier INTEGER NOT NULL, stopped TEXT NOT NULL,
  settled_segment INTEGER NOT NULL, settled_position INTEGER NOT NULL,
  PRIMARY KEY (broker, topic, partition, topic_id)) WITHOUT ROWID;
CREATE TABLE consumers (
  id TEXT PRIMARY KEY, streamed INTEGER NOT NULL, committed INTEGER NOT NULL, seen_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE totals (published INTEGER NOT NULL, trimmed_seq INTEGER NOT NULL, trimmed_total INTEGER NOT NULL);
"""


class Database:
    """One connection for all threads, behind one lock: every use is short. ``id`` names this journal for ever; a new file has a new one."""

    def __init__(self, directory: Path, cluster_id: str) -> None:
        """Open the journal in ``directory``, or make it.

        Raises:
            JournalError: another agent holds it, it belongs to another cluster, or the file is damaged.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / "journal.db"
        self._lock_fd = self._hold(directory / "journal.lock")
        self._mutex = threading.RLock()
        try:
            self._connection = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            self.id = self._open(cluster_id)
        except sqlite3.DatabaseError as error:
            os.close(self._lock_fd)
            raise JournalError(
                f"the journal {self._path} is damaged ({error}): delete {directory} and start again; what the job has counted already stays counted once"
            ) from error

    @staticmethod
    def _hold(path: Path) -> int:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise JournalError(f"the journal in {path.parent} is held by another agent: stop it, or name another directory") from error
        return fd

    def _open(self, cluster_id: str) -> str:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            journal_id = str(uuid.uuid4())
            with self.transaction() as run:
                for statement in _SCHEMA.split(";"):
                    run.execute(statement)
                run.execute("INSERT INTO journal VALUES (?, ?)", (journal_id, cluster_id))
                run.execute("INSERT INTO totals VALUES (0, 0, 0)")
                run.execute(f"PRAGMA user_version={_VERSION}")
            log.info("new journal", extra={"path": str(self._path), "journal": journal_id})
            return journal_id
        if version != _VERSION:
            raise JournalError(f"the journal {self._path} is of version {version}, this segtail reads {_VERSION}: delete it to start a new one")
        found, owner = self._connection.execute("SELECT id, cluster_id FROM journal").fetchone()
        if owner != cluster_id:
            raise JournalError(f"the journal {self._path} belongs to cluster {owner}, the log dirs to {cluster_id}: name another directory")
        return str(found)

    def renew(self) -> str:
        """Give the journal another id, under which nobody has read it yet. Returns it."""
        self.id = str(uuid.uuid4())
        with self.transaction() as run:
            run.execute("UPDATE journal SET id = ?", (self.id,))
            run.execute("DELETE FROM consumers")
        log.warning("the journal was set back and goes on under another id", extra={"path": str(self._path), "journal": self.id})
        return self.id

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything inside happens or nothing does; on disk when it returns."""
        with self._mutex:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Look without changing; nobody else writes meanwhile."""
        with self._mutex:
            yield self._connection

    def close(self) -> None:
        """Close the file and let another agent have it."""
        with self._mutex:
            self._connection.close()
            os.close(self._lock_fd)
