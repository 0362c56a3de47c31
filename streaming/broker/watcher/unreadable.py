"""Logs that cannot be read now, and why: because the file system refuses it, not because of their contents."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.disk.logdirs import LogDir
from streaming.broker.watcher.tail import Tail
from streaming.common.log_key import LogKey
from streaming.kafka.formats.names import parse_partition_dir

TRIES = 3
"""How often a log is tried while its segments are deleted or compacted."""


def unreadable(tails: Sequence[Tail], left_out: LeftOut, directories: dict[Path, str], log_dirs: Iterable[LogDir]) -> Iterator[StuckTail]:
    """All unreadable logs, each once. Logs in an unavailable log dir are left out: that log dir is reported itself.

    Args:
        directories: those whose ``partition.metadata`` cannot be read, and why.
    """
    named = set()
    for tail in tails:
        if tail.refused is not None and not tail.away:
            named.add(tail.cursor.log)
            yield StuckTail(tail.cursor.log, *tail.refused)
    for log, each in left_out.logs.items():
        if log not in named:
            yield each
    if not directories:  # as nearly always, and a set of all paths is dear
        return
    watched = {tail.partition.path for tail in tails}
    brokers = {log_dir.path: log_dir.broker for log_dir in log_dirs}
    for path, why in directories.items():
        name = parse_partition_dir(path.name)
        if path not in watched and name is not None and path.parent in brokers:
            yield StuckTail(LogKey(brokers[path.parent], name.topic, name.partition, ""), str(path), f"partition.metadata: {why}")


class LeftOut:
    """Logs that the watcher could not begin to read at the last try. One thread changes it."""

    def __init__(self) -> None:
        self.logs: dict[LogKey, StuckTail] = {}

    def note(self, log: LogKey, path: Path, error: Exception) -> None:
        """Note that a log could not be read. A file that is gone is no error: the next listing shows why."""
        if isinstance(error, FileNotFoundError):
            return
        path = Path(error.filename) if isinstance(error, OSError) and error.filename else path
        self.logs = self.logs | {log: StuckTail(log, str(path), describe(error))}

    def clear(self, log: LogKey) -> None:
        """Remove a log that is watched now."""
        if log in self.logs:
            self.logs = {key: each for key, each in self.logs.items() if key != log}

    def keep(self, there: Collection[LogKey]) -> None:
        """Forget logs that are gone."""
        if not self.logs.keys() <= set(there):
            self.logs = {key: each for key, each in self.logs.items() if key in there}


@dataclass(frozen=True, slots=True)
class StuckTail:
    """A log that could not be read at the last try: the file or directory, and the error."""

    log: LogKey
    path: str
    error: str


def describe(error: Exception) -> str:
    """An error in words, without the name of its file."""
    return f"{error.strerror}" if isinstance(error, OSError) and error.strerror else f"{type(error).__name__}: {error}"


class Tries:
    """The failed tries of the logs of one queue, which have to be read in addition to being followed. Only the watcher's thread uses it."""

    def __init__(self) -> None:
        self._failures: dict[Tail, int] = {}

    def any_left(self, tail: Tail) -> bool:
        """Whether a log may be tried now."""
        return self._failures.get(tail, 0) < TRIES

    def failed(self, tail: Tail, error: Exception) -> None:
        """Note a failed try. A segment that is gone since the listing may not matter at the next try; any other error will occur again."""
        self._failures[tail] = self._failures.get(tail, 0) + 1 if isinstance(error, FileNotFoundError) else TRIES

    def succeeded(self, tail: Tail) -> None:
        """A log was read to the end."""
        self._failures.pop(tail, None)

    def begin_again(self) -> tuple[Tail, ...]:
        """Forget all failures. Returns the logs that had any, in the order of their first failures."""
        failed = tuple(self._failures)
        self._failures.clear()
        return failed
