"""Looks at several checkpoints, each on a thread of its own: a file system that does not answer holds up nobody, not even the end."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol

from streaming.errors import QueryCheckpointError


@dataclass(frozen=True, slots=True)
class QueryPosition:
    """The next offset that a query reads of a partition; of several sources that read it, the lowest."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLook:
    """Times are Unix milliseconds, those of files; -1 is "none".

    ``generation``: rises when the place has another checkpoint than in the look before, so that nothing of that one counts any more.
    ``batch``: the last micro-batch that is planned and committed, and ``positions``: where it has ended. ``planned_batch``: one after it
    that is planned and not committed, -1 for none. ``commit_times``: of the commits that are still there, in the order of their numbers.
    ``doubts``: what is not known of it, in sentences; ``notes``: what is known, and worth saying.
    """

    query_id: str
    generation: int = 0
    batch: int = -1
    committed_ms: int = -1
    positions: tuple[QueryPosition, ...] = ()
    planned_batch: int = -1
    planned_ms: int = -1
    commit_times: tuple[int, ...] = ()
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a folder, and when it was last written, Unix milliseconds."""

    name: str
    modified_ms: int


class CheckpointFiles(Protocol):
    """The files of one checkpoint, wherever it is. Paths are relative to it. Calls may take long."""

    def entries(self, folder: str) -> list[FileEntry]:
        """The files of a folder; none of one that is not there.

        Raises:
            OSError: it cannot be listed.
        """

    def content(self, path: str) -> bytes:
        """The bytes of a file, `streaming.queries.formats.LARGEST_BYTES` and one more at most.

        Raises:
            FileNotFoundError: it is not there.
            OSError: it cannot be read.
        """


log = logging.getLogger(__name__)

Found = QueryLook | QueryCheckpointError
"""What a look has shown, or why it has shown nothing."""


class QueryLooks:
    """At most one look at each checkpoint at a time. For one thread, until `close`.

    Args:
        looks: what looks at each checkpoint, by the name of its query. Each is called by the same thread again and again.
    """

    def __init__(self, looks: Mapping[str, Callable[[], QueryLook]]) -> None:
        self._looks = looks
        self._due: dict[str, SimpleQueue[bool]] = {}
        self._running: set[str] = set()
        self._found: dict[str, Found] = {}
        self._ended = threading.Condition()  # protects what is found

    def look(self, seconds: float) -> dict[str, Found]:
        """Look at all that is not still being looked at, and wait for these so long at most.

        Returns:
            what has been found since the last call, that of earlier looks too.
        """
        begun = {name for name in self._looks if name not in self._running}
        for name in begun:
            self._running.add(name)
            self._thread_of(name).put(True)
        with self._ended:
            self._ended.wait_for(lambda: self._found.keys() >= begun, seconds)
            found, self._found = self._found, {}
        self._running -= found.keys()
        return found

    def close(self) -> None:
        """End the threads; one whose look hangs is left alone."""
        for due in self._due.values():
            due.put(False)

    def _thread_of(self, name: str) -> "SimpleQueue[bool]":
        if name not in self._due:
            due = self._due[name] = SimpleQueue()
            # a daemon: nothing ends a call that hangs in a kernel or a JVM
            threading.Thread(target=self._run, args=(name, due), name=f"look-{name}", daemon=True).start()
        return self._due[name]

    def _run(self, name: str, due: "SimpleQueue[bool]") -> None:
        while due.get():
            found = self._look(name)
            with self._ended:
                self._found[name] = found
                self._ended.notify_all()

    def _look(self, name: str) -> Found:
        try:
            return self._looks[name]()
        except QueryCheckpointError as error:
            return error
        except Exception as error:  # of one checkpoint: the others count
            log.exception("the checkpoint of a streaming query is not understood", extra={"query": name})
            return QueryCheckpointError(f"the checkpoint of query {name} is not understood: {error}")
