"""Reads relations at once from log dirs that this Spark can open itself: of a broker, running or not, or copied."""

import socket
from collections.abc import Sequence
from pathlib import Path

from streaming.broker.disk.identity import LogDir, read_identity
from streaming.broker.disk.logdirs import find_log_dirs, open_log_dirs
from streaming.broker.excerpts.excerpt_listing import list_excerpts, partitions_with_start, topics_of
from streaming.broker.excerpts.excerpt_scan import scan_excerpts
from streaming.errors import LogDirError
from streaming.spark.source.at_once import AtOnceReader, RowPieces, Task, scan_of
from streaming.spark.source.public_options import nothing_fits


class LocalReader(AtOnceReader):
    """Every executor sees the log dirs under the same paths."""

    def _planned(self) -> list[Task]:
        log_dirs = _opened(self._options.log_dirs)
        selection = self._options.selection
        if not any(True for _ in partitions_with_start(log_dirs, selection)):
            raise nothing_fits(selection, topics_of(log_dirs))
        wanted = self._selection()
        if wanted is None:
            return []
        return self._tasks("", list_excerpts(log_dirs, wanted, self._start(), self._excerpt_bytes()))

    def _rows(self, task: Task) -> RowPieces:
        log_dirs = [_here(path) for path in dict.fromkeys(each.log_dir for each in task.excerpts)]
        return scan_excerpts(log_dirs, task.excerpts, scan_of(self._options.relation), ongoing=task.ongoing)


def _opened(paths: Sequence[Path]) -> Sequence[LogDir]:
    """All log dirs at or below some paths. One that cannot be used is an error: rows would be missing."""
    found = open_log_dirs(find_log_dirs(paths))
    if found.unavailable:
        raise LogDirError("; ".join(found.unavailable.values()))
    return found


def _here(path: str) -> LogDir:
    try:
        return read_identity(Path(path))
    except LogDirError as error:
        raise LogDirError(
            f"{error}; on {socket.gethostname()}, which reads this part: every executor has to see log_dirs under the same paths"
        ) from error
