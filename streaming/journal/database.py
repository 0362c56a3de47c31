"""The journal's file: an SQLite database with one holder, durable at every commit. For a single reading it is in memory."""

import fcntl
import logging
import os
import sqlite3
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.errors import FencedError, JournalBusyError, JournalError
from streaming.journal.earlier_events import into_blocks

log = logging.getLogger(__name__)


_VERSION = 7

_IN_MEMORY = Path(":memory:")

_WAL_BYTES = 16 << 20
"""The size to which the write-ahead log shrinks again after it was larger."""

_INCREMENTAL = 2
"""SQLite's ``auto_vacuum`` mode of a file whose free pages can be given back."""

_SHRUNK_PAGES = 1000
"""How many pages are given back to the file system at once: other threads wait meanwhile."""

_SPARE = 4
"""Up to one of this many pages of a file stays free for later use."""

_BLOCKS = """CREATE TABLE blocks (
  last INTEGER PRIMARY KEY, first INTEGER NOT NULL, count INTEGER NOT NULL, at_ms INTEGER NOT NULL, total INTEGER NOT NULL,
  size INTEGER NOT NULL, published INTEGER NOT NULL, rows BLOB NOT NULL)"""

_SCHEMA = f"""
{_BLOCKS};
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
  missed INTEGER NOT NULL DEFAULT 0, begun INTEGER NOT NULL DEFAULT -1) WITHOUT ROWID;
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

_UPGRADES: dict[int, tuple[str | Callable[[sqlite3.Connection], None], ...]] = {
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
}
"""The steps that upgrade a journal from each earlier version that is still read to the next version."""


class Database:
    """One connection for all threads, behind one lock: every use is short.

    ``id`` names this journal. A new file has a new id, and so has a journal that was renewed.
    """

    def __init__(self, directory: Path | None, cluster_id: str) -> None:
        """Open the journal in ``directory``, or make it. None: it is in memory and is lost at the end.

        Raises:
            JournalBusyError: another agent holds it.
            JournalError: it belongs to another cluster, its file is damaged, or it cannot be written.
        """
        self._path = _IN_MEMORY if directory is None else directory / "journal.db"
        self._mutex = threading.RLock()
        self._fenced: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
        self._lock_fd = -1
        if directory is None:
            self._connection = self._connect()
            self.id = self._make(cluster_id)
            return
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock_fd = self._hold(directory / "journal.lock")
        except OSError as error:
            raise JournalError(f"the journal in {directory} cannot be written ({error}): name another directory") from error
        try:
            self._connection = self._connect()
            try:
                self.id = self._open(cluster_id)
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.DatabaseError as error:
            os.close(self._lock_fd)
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                raise JournalError(f"the journal {self._path} cannot be written ({error}): is its disk full?") from error
            raise JournalError(
                f"the journal {self._path} is damaged ({error}): delete {directory} and start again; "
                "what the job has counted already stays counted once"
            ) from error
        except BaseException:
            os.close(self._lock_fd)
            raise

    @staticmethod
    def _hold(path: Path) -> int:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise JournalBusyError(f"the journal in {path.parent} is held by another agent: stop it, or name another directory") from error
        return fd

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
        try:
            if connection.execute("PRAGMA page_count").fetchone() == (0,):  # a file that is there keeps the pages that become free
                connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA journal_size_limit={_WAL_BYTES}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(self, cluster_id: str) -> str:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            return self._make(cluster_id)
        if version != _VERSION and version not in _UPGRADES:
            raise JournalError(
                f"the journal {self._path} is of version {version}, this segtail reads {min(_UPGRADES)} to {_VERSION}: "
                "use the segtail that wrote it, or delete it to start a new one"
            )
        found, owner = self._connection.execute("SELECT id, cluster_id FROM journal").fetchone()
        if owner != cluster_id:
            raise JournalError(f"the journal {self._path} belongs to cluster {owner}, the log dirs to {cluster_id}: name another directory")
        if version != _VERSION:
            self._upgrade(version)
        return str(found)

    def _upgrade(self, version: int) -> None:
        """Bring a journal of an earlier version to this one, all or nothing."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for step in range(version, _VERSION):
                for statement in _UPGRADES[step]:
                    if isinstance(statement, str):
                        self._connection.execute(statement)
                    else:
                        statement(self._connection)
            self._connection.execute(f"PRAGMA user_version={_VERSION}")
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        log.info("journal upgraded", extra={"path": str(self._path), "from_version": version, "to_version": _VERSION})

    def _make(self, cluster_id: str) -> str:
        journal_id = str(uuid.uuid4())
        self._connection.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA.split(";"):
            self._connection.execute(statement)
        self._connection.execute("INSERT INTO journal VALUES (?, ?)", (journal_id, cluster_id))
        self._connection.execute("INSERT INTO totals (published, trimmed_seq, trimmed_total) VALUES (0, 0, 0)")
        self._connection.execute(f"PRAGMA user_version={_VERSION}")
        self._connection.execute("COMMIT")
        if self._path is not _IN_MEMORY:
            log.info("new journal", extra={"path": str(self._path), "journal": journal_id})
        return journal_id

    def renew(self) -> str:
        """Give the journal a new id that no consumer knows. Returns the id."""
        self.id = str(uuid.uuid4())
        with self.transaction() as run:
            run.execute("UPDATE journal SET id = ?", (self.id,))
            for table in ("consumers", "reads", "losses"):
                run.execute(f"DELETE FROM {table}")
        log.warning("the journal was set back and goes on under another id", extra={"path": str(self._path), "journal": self.id})
        return self.id

    def fence(self, thread: threading.Thread) -> None:
        """Prevent all further writes of a thread. Waits until a write in progress is done."""
        with self._mutex:
            self._fenced.add(thread)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all changes inside it are made, or none. They are on disk when it returns.

        Raises:
            JournalError: the file cannot be written; FencedError if another thread has replaced this one.
        """
        with self._mutex, self._explaining():
            if threading.current_thread() in self._fenced:
                raise FencedError("this thread was replaced by another one")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:  # a full disk may have ended it already
                    self._connection.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read without changes; no other thread writes meanwhile. Raises JournalError."""
        with self._mutex, self._explaining():
            yield self._connection

    def shrink(self) -> bool:
        """Give some of the free pages back to the file system. Returns whether there are more to give back."""
        with self.reading() as run:
            (mode,), (pages,), (free,) = (
                run.execute(f"PRAGMA {name}").fetchone() for name in ("auto_vacuum", "page_count", "freelist_count")
            )
            if mode != _INCREMENTAL or free <= pages // _SPARE:
                return False
            run.execute(f"PRAGMA incremental_vacuum({_SHRUNK_PAGES})").fetchall()  # each row is one page
            return True

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise JournalError(f"the journal {self._path} cannot be used ({error}): is its disk full or damaged?") from error

    def close(self) -> None:
        """Close the file, and release it for another agent."""
        with self._mutex:
            self._connection.close()
            if self._lock_fd >= 0:
                os.close(self._lock_fd)
