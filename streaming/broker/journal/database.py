"""The journal's file: an SQLite database with one holder, durable at every commit. For a single reading it is in memory."""

import fcntl
import logging
import os
import sqlite3
import threading
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.journal import blocks, consumer_states, database, producer_pages, published, stored_logs
from streaming.broker.journal.tables import StoredTable, value
from streaming.common import whole_files
from streaming.errors import FencedError, JournalBusyError, JournalError
from streaming.kafka.formats.properties import known_clusters

# --- the tables of a journal's file, and their version. Each belongs to one module, which has all statements about it.


VERSION = 13

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


log = logging.getLogger(__name__)

_IN_MEMORY = Path(":memory:")

_LOCK = "journal.lock"

_WAL_BYTES = 16 << 20
"""The size to which the write-ahead log shrinks again after it was larger."""

_INCREMENTAL = 2
"""SQLite's ``auto_vacuum`` mode of a file whose free pages can be given back."""

_SHRUNK_PAGES = 1000
"""How many pages are given back to the file system at once: other threads wait meanwhile."""

_SPARE = 4
"""Up to one of this many pages of a file stays free for later use."""


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
        self._files: dict[Path, tuple[int, int]] = {}
        if directory is None:
            self._connection = self._connect()
            self.id = self._make(cluster_id)
            return
        try:
            whole_files.make(directory)
            self._lock_fd = self._hold(directory / _LOCK)
        except OSError as error:
            raise JournalError(f"the journal in {directory} cannot be written ({error}): name another directory") from error
        try:
            self._connection = self._connect()
            try:
                self.id = self._open(cluster_id)
            except BaseException:
                self._connection.close()
                raise
            self._files = {path: _identity(path.stat()) for path in (self._path, directory / _LOCK)}
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
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise JournalBusyError(f"the journal in {path.parent} is held by another agent: stop it, or name another directory") from error
        return fd

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
        try:
            if value(connection, "PRAGMA page_count") == 0:  # a file that is there keeps the pages that become free
                connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA journal_size_limit={_WAL_BYTES}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(self, cluster_id: str) -> str:
        version = database.version(self._connection)
        if version == 0:
            return self._make(cluster_id)
        if version != VERSION:
            raise JournalError(
                f"the journal {self._path} is of version {version}, this segtail reads {VERSION}: "
                "use the segtail that wrote it, or delete it to start a new one"
            )
        found = database.identity(self._connection)
        if len(known_clusters((found.cluster_id, cluster_id))) > 1:
            raise JournalError(
                f"the journal {self._path} belongs to cluster {found.cluster_id}, the log dirs to {cluster_id}: name another directory"
            )
        with self._all_or_nothing() as run:
            database.belongs(run, cluster_id)
        return found.id

    def _make(self, cluster_id: str) -> str:
        with self._all_or_nothing() as run:
            journal_id = database.make(run, cluster_id)
        if self._path is not _IN_MEMORY:
            log.info("new journal", extra={"path": str(self._path), "journal": journal_id})
        return journal_id

    def check_files(self) -> None:
        """Raise JournalError if its files are not those that it has open: they were deleted, replaced or truncated.

        What is written to them would be lost at a restart, and another agent could take their place. Nothing is lost where the agent ends
        now: another journal begins with all that the log dirs hold, and what a job has counted it counts once.
        """
        for path, identity in self._files.items():
            try:
                found = path.stat()
                what = "was replaced by another file" if _identity(found) != identity else ""
                if path == self._path and found.st_size == 0:
                    what = "was truncated"
            except (FileNotFoundError, NotADirectoryError):
                what = "was deleted"
            except OSError as error:  # the next write shows whether its disk fails
                log.warning("the journal's files cannot be checked now", extra={"path": str(path), "error": str(error)})
                continue
            if what:
                raise JournalError(
                    f"{path} of the journal {what} while the agent ran: start the agent again, and it goes on with another journal; "
                    "what jobs have counted stays counted once"
                )

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
            with self._all_or_nothing() as run:
                yield run

    @contextmanager
    def _all_or_nothing(self) -> Iterator[sqlite3.Connection]:
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
            mode, pages, free = (value(run, f"PRAGMA {name}") for name in ("auto_vacuum", "page_count", "freelist_count"))
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


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino
