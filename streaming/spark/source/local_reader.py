"""Reads relations at once from log dirs that this Spark can open itself: of a broker, running or not, or copied."""

import socket
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from streaming.broker.disk.identity import LogDir, read_identity
from streaming.broker.disk.log_dir_search import open_below, unsearched_words
from streaming.broker.disk.logdirs import Partition
from streaming.broker.disk.process_lock import ask_lock
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.excerpts.excerpt_listing import excerpts_of, partitions_with_start, topics_of
from streaming.broker.excerpts.excerpt_scan import scan_excerpts
from streaming.broker.excerpts.given_dirs import copied_in_part
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
        partitions = list(partitions_with_start(log_dirs, wanted))
        _check_whole([partition for partition, _ in partitions])
        return self._tasks("", list(excerpts_of(partitions, self._start(), self._excerpt_bytes())))

    def _rows(self, task: Task) -> RowPieces:
        log_dirs = [_here(path) for path in dict.fromkeys(each.log_dir for each in task.excerpts)]
        return scan_excerpts(log_dirs, task.excerpts, scan_of(self._options.relation), ongoing=task.ongoing)


def _opened(paths: Sequence[Path]) -> Sequence[LogDir]:
    """All log dirs at or below some paths. One that cannot be used is an error: rows would be missing."""
    found = open_below(paths)
    if found.unsearched:
        raise LogDirError(f"option log_dirs: {unsearched_words(found.unsearched)}")
    if found.unavailable:
        raise LogDirError("; ".join(found.unavailable.values()))
    return found


def _check_whole(partitions: Sequence[Partition]) -> None:
    """Refuse a log at rest that has indexes without their segment: its rows would be missing without a word."""
    for log_dir, own in groupby(partitions, lambda each: each.log_dir.path):
        try:
            if not ask_lock(log_dir).state.is_held_by_nobody:
                continue  # a broker that deletes a segment leaves its indexes for a moment
            for each in own:
                if lost := copied_in_part(each.path, list_segments(each.path)):
                    raise LogDirError(f"option log_dirs: {lost}: copy it whole, or remove what is left")
        except OSError as error:
            raise LogDirError(f"option log_dirs: {log_dir} cannot be read: {error.strerror or error}") from error


def _here(path: str) -> LogDir:
    try:
        return read_identity(Path(path))
    except LogDirError as error:
        raise LogDirError(
            f"{error}; on {socket.gethostname()}, which reads this part: every executor has to see log_dirs under the same paths"
        ) from error
