"""Looks at several checkpoints, each on a thread of its own: a file system that does not answer holds up nobody, not even the end."""

import logging
import threading
import time
from collections.abc import Callable, Mapping

from streaming.errors import QueryCheckpointError
from streaming.queries.query_look import QueryLook

log = logging.getLogger(__name__)

Found = QueryLook | QueryCheckpointError
"""What a look has shown, or why it has shown nothing."""


class Looks:
    """At most one look at each checkpoint at a time. For one thread.

    Args:
        looks: what looks at each checkpoint, by the name of its query.
    """

    def __init__(self, looks: Mapping[str, Callable[[], QueryLook]]) -> None:
        self._looks = looks
        self._running: dict[str, threading.Thread] = {}
        self._found: dict[str, Found] = {}
        self._ended = threading.Condition()  # protects what is found

    def look(self, seconds: float) -> dict[str, Found]:
        """Look at all that is not still being looked at, and wait for these so long at most.

        Returns:
            what has been found since the last call, that of earlier looks too.
        """
        begun = [name for name in self._looks if name not in self._running]
        for name in begun:
            # a daemon: nothing ends a call that hangs in a kernel or a JVM
            self._running[name] = threading.Thread(target=self._run, args=(name,), name=f"look-{name}", daemon=True)
            self._running[name].start()
        deadline = time.monotonic() + seconds
        with self._ended:
            self._ended.wait_for(lambda: self._found.keys() >= {*begun}, max(deadline - time.monotonic(), 0.0))
            found, self._found = self._found, {}
        for name in found:
            del self._running[name]
        return found

    def _run(self, name: str) -> None:
        found: Found
        try:
            found = self._looks[name]()
        except QueryCheckpointError as error:
            found = error
        except Exception as error:  # of one checkpoint: the others count
            log.exception("the checkpoint of a streaming query is not understood", extra={"query": name})
            found = QueryCheckpointError(f"the checkpoint of query {name} is not understood: {error}")
        with self._ended:
            self._found[name] = found
            self._ended.notify_all()
