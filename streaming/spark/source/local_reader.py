"""Reads relations at once from log dirs that this Spark can open itself: of a broker, running or not, or copied."""

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from streaming.broker.disk.identity import LogDir, read_identity
from streaming.broker.disk.logdirs import find_log_dirs, open_log_dirs
from streaming.broker.excerpts.excerpt_listing import list_excerpts, partitions_with_start, topics_of
from streaming.broker.excerpts.excerpt_scan import scan_excerpts
from streaming.errors import LogDirError
from streaming.spark.source.at_once import AtOnceReader, Task, scan_of

_NAMED = 5


class LocalReader(AtOnceReader):
    """Every executor sees the log dirs under the same paths."""

    def partitions(self) -> Sequence[Task]:
        """The tasks.

        Raises:
            LogDirError: a path is no log dir, cannot be read, or all are not of one cluster.
            UsageError: nothing fits the selection.
            AgentError: a log cannot be read; the message names its directory.
        """
        log_dirs = _opened(self._options.log_dirs)
        selection = self._options.selection
        if not any(True for _ in partitions_with_start(log_dirs, selection)):
            raise self._nothing_fits(topics_of(log_dirs)[:_NAMED])
        wanted = self._selection()
        if wanted is None:
            return []
        return self._tasks("", list_excerpts(log_dirs, wanted, self._start(), self._excerpt_bytes()))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task.

        Raises:
            LogDirError: its log dirs are not there on this host.
        """
        assert isinstance(partition, Task)
        log_dirs = [_here(path) for path in dict.fromkeys(each.log_dir for each in partition.excerpts)]
        rows = scan_excerpts(log_dirs, partition.excerpts, scan_of(self._options.relation), ongoing=partition.ongoing)
        yield from self._public(partition, rows)


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
