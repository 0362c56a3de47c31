"""How many scans of excerpts run at the same time: each has a window of its own, and reads as fast as it can."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from streaming.broker.protocol.problems import Reason
from streaming.errors import AgentError

SCANS = 8
"""The most scans that run at the same time."""

PRINCIPALS_SCANS = 4
"""The most of them for one principal, so that no token keeps all of them."""


class ScanRoom:
    """Room for a few scans. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()

    @contextmanager
    def taken(self, principal: str) -> Iterator[None]:
        """Take a place for the duration of a block.

        Raises:
            AgentError: all are taken (reason `Reason.BUSY`): whoever asks again gets one later.
        """
        with self._lock:
            if self._running[principal] >= PRINCIPALS_SCANS or self._running.total() >= SCANS:
                raise AgentError(f"{self._running.total()} scans are running: it is tried again", Reason.BUSY)
            self._running[principal] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[principal] -= 1
