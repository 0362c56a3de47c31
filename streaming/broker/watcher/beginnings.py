"""Where new consumers begin in logs, and what they want of logs that could not be read when they began.

Such a log is not read on before it can be read for them. The journal stores what is wanted of a log that is known; of other logs it is
noted here, and for all logs in a log dir that cannot be read.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.disk.logdirs import Partition
from streaming.broker.journal.cursor import Cursor
from streaming.common.log_key import LogKey
from streaming.common.start_from import StartFrom


@dataclass(frozen=True, slots=True)
class Beginning:
    """A new consumer wants the logs from ``start_from`` on. ``resumed``: it knows these logs already, from another journal."""

    start_from: StartFrom
    resumed: bool


_RESUMED = "resumed"
_WANTED = ("", StartFrom.LATEST, StartFrom.ACTIVE, StartFrom.EARLIEST, _RESUMED)
"""The beginnings that a consumer may want of a log, as the journal stores them; each includes everything of the one before it."""


def most(*wanted: str) -> str:
    """The beginning that includes the others."""
    return max(wanted, key=_WANTED.index)


def as_wanted(beginning: Beginning | None) -> str:
    """A beginning as the journal stores it, "" for none."""
    if beginning is None:
        return ""
    return _RESUMED if beginning.resumed else beginning.start_from


def as_beginning(wanted: str) -> Beginning | None:
    """The reverse."""
    if not wanted:
        return None
    return Beginning(StartFrom.EARLIEST, resumed=True) if wanted == _RESUMED else Beginning(StartFrom(wanted), resumed=False)


class Unmet:
    """The beginnings that consumers want of logs that could not be read so far.

    Args:
        cursor_of: the cursor of a log that is watched, or was by an earlier process; None for a log that is new.
    """

    def __init__(self, cursor_of: Callable[[LogKey], Cursor | None]) -> None:
        self._cursor_of = cursor_of
        self._logs: dict[LogKey, str] = {}
        self._log_dirs: dict[Path, str] = {}

    def of(self, key: LogKey, partition: Partition) -> str:
        """The beginning that consumers want of a log that could not be read when they began, "" for none."""
        cursor = self._cursor_of(key)
        if cursor is not None:
            return cursor.wanted
        return most(self._logs.get(key, ""), self._log_dirs.get(partition.log_dir.path, ""))

    def note(self, wanted: str, left_out: Mapping[LogKey, Partition], unseen: Iterable[Path], remembered: Collection[LogKey]) -> None:
        """Note what a new consumer wants, after everything that can be read was read for it.

        A log that is not known yet is read whole for the present consumers: the beginning of a later consumer may not change that.

        Args:
            wanted: by the new consumer, "" if there is none.
            left_out: the logs that could not be read, and are not watched.
            unseen: the log dirs that cannot be read.
            remembered: the logs that are known from an earlier process.
        """
        logs = {key: most(wanted, self.of(key, at)) or ("" if key in remembered else StartFrom.EARLIEST) for key, at in left_out.items()}
        self._logs = {key: owed for key, owed in logs.items() if owed}
        self._log_dirs = {path: most(wanted, self._log_dirs.get(path, "")) or StartFrom.EARLIEST for path in unseen}
