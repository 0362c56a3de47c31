"""Looks at the table, one at a time: a scrape gets a new one, and a person one that is some seconds old at most."""

from collections.abc import Callable
from threading import Lock

from streaming.cluster.view.table import Table
from streaming.cluster.view.view import view
from streaming.pages.api.history import MINUTE_MS, History
from streaming.pages.api.look import Look

KEEP_SECONDS = 60.0
"""The last look is kept for so long after somebody has wanted one: it takes as much memory as the table."""


class Looks:
    """For several threads. Every look that is made feeds the history. ``clock``: the present time, Unix seconds."""

    def __init__(self, table: Table, clock: Callable[[], float]) -> None:
        self.history = History()
        self._table = table
        self._clock = clock
        self._making = Lock()  # protects everything below; what looks remember of each other is for one thread
        self._last: Look | None = None
        self._wanted_at = float("-inf")

    def new(self) -> Look:
        """The table as it is."""
        with self._making:
            return self._make()

    def recent(self, oldest_s: float = 2.0) -> Look:
        """The table as it was at most so many seconds ago."""
        with self._making:
            now = self._clock()
            self._wanted_at = now
            if self._last is not None and 0 <= now - self._last.now_ms / 1000 <= oldest_s:
                return self._last
            return self._make()

    @property
    def is_wanted(self) -> bool:
        """Whether the last look is kept."""
        with self._making:
            return self._last is not None

    def remember(self) -> Look | None:
        """Call this every few seconds: it records what nobody looked at, and forgets the last look when nobody wants it.

        Returns: a look once a minute, if one had to be made.
        """
        with self._making:
            now = self._clock()
            if now - self._wanted_at > KEEP_SECONDS:
                self._last = None
            if now * 1000 // MINUTE_MS != self.history.recorded_minute:
                return self._make()
            self.history.sample(self._table.snapshot(now))
            return None

    def _make(self) -> Look:
        now = self._clock()
        snapshot = self._table.snapshot(now)
        look = Look(view(snapshot), snapshot)
        self.history.sample(snapshot)
        self.history.record(look)
        self._last = look if now - self._wanted_at <= KEEP_SECONDS else None
        return look
