"""Looks at several checkpoints, each on a thread of its own: a file system that does not answer holds up nobody, not even the end."""

import logging
import threading
from collections.abc import Callable, Mapping
from queue import SimpleQueue

from streaming.errors import QueryCheckpointError
from streaming.queries.query_look import QueryLook

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
