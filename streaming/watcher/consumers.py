"""Who reads a journal, how far each has come, and how much of the journal may be forgotten."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from streaming.watcher.journal import Journal
from streaming.watcher.registering import Registration

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of what nobody has read yet is kept: bytes, milliseconds; and how long a silent consumer holds the journal, milliseconds."""

    max_bytes: int
    max_age_ms: int
    consumer_expiry_ms: int


class Consumers:
    """The consumers of one journal, kept in it.

    A consumer has *streamed* what it was sent to the end, and *committed* what Spark will not ask for again. Until a range is committed it
    may be asked for once more; until it is streamed it has not arrived.
    """

    def __init__(self, journal: Journal, clock_ms: Callable[[], int]) -> None:
        self._journal = journal
        self._clock_ms = clock_ms

    def hello(self, consumer: str) -> bool:
        """Note that a consumer is there; returns whether this journal knows it."""
        with self._journal.database.transaction() as run:
            return run.execute("UPDATE consumers SET seen_ms = ? WHERE id = ?", (self._clock_ms(), consumer)).rowcount > 0

    def enrol(self, consumer: str) -> None:
        """Take in a new consumer behind everything. Who wants a beginning of its own is registered with it (`Journal.publish`)."""
        self._journal.publish([], registers=Registration(consumer))

    def streamed(self, consumer: str) -> int | None:
        """How far it has been sent everything, None for one that is not known."""
        with self._journal.database.reading() as run:
            row = run.execute("SELECT streamed FROM consumers WHERE id = ?", (consumer,)).fetchone()
        return None if row is None else int(row[0])

    def committed(self, consumer: str) -> int | None:
        """Up to where nothing will be asked for again, None for one that is not known."""
        with self._journal.database.reading() as run:
            row = run.execute("SELECT committed FROM consumers WHERE id = ?", (consumer,)).fetchone()
        return None if row is None else int(row[0])

    def any(self) -> bool:
        """Whether anybody has ever read this journal."""
        with self._journal.database.reading() as run:
            return run.execute("SELECT 1 FROM consumers LIMIT 1").fetchone() is not None

    def note_streamed(self, consumer: str, after: int, upto: int) -> None:
        """It was sent all events from ``after`` to ``upto`` to the end; only what continues what it had counts."""
        with self._journal.database.transaction() as run:
            run.execute(
                "UPDATE consumers SET streamed = max(streamed, ?), seen_ms = ? WHERE id = ? AND streamed >= ?",
                (upto, self._clock_ms(), consumer, after),
            )

    def note_committed(self, consumer: str, seq: int) -> None:
        """Spark has committed what lies up to ``seq``: it will not be asked for again."""
        with self._journal.database.transaction() as run:
            run.execute(
                "UPDATE consumers SET committed = max(committed, min(streamed, ?)), seen_ms = ? WHERE id = ?",
                (seq, self._clock_ms(), consumer),
            )

    def trim(self, bounds: Bounds) -> int:
        """Forget what nobody needs, and what is beyond the bounds. Returns the log bytes that were lost to some consumer."""
        now = self._clock_ms()
        with self._journal.database.reading() as run:
            (needed,) = run.execute("SELECT min(committed) FROM consumers WHERE seen_ms > ?", (now - bounds.consumer_expiry_ms,)).fetchone()
            beyond = self._beyond(bounds, now)
        if needed is None:  # nobody holds it; one that expired counts its loss by the totals when it returns
            self._journal.trim(beyond)
            return 0
        self._journal.trim(needed)
        if beyond <= needed:
            return 0
        lost = self._journal.trim_losing(beyond)
        log.warning("journal trimmed beyond its slowest consumer", extra={"upto": beyond, "lost_bytes": lost})
        return lost

    def _beyond(self, bounds: Bounds, now: int) -> int:
        """The last seq that lies outside the bounds of age and size, 0 if none does."""
        with self._journal.database.reading() as run:
            young = run.execute("SELECT seq FROM events WHERE at_ms >= ? ORDER BY seq LIMIT 1", (now - bounds.max_age_ms,)).fetchone()
            old = "SELECT coalesce(max(seq), 0) FROM events WHERE seq < ?"
            (by_age,) = run.execute(old, (young[0] if young else self._journal.end().seq + 1,)).fetchone()
            excess, by_size = self._journal.size() - bounds.max_bytes, 0
            if excess > 0:
                for seq, size in run.execute("SELECT seq, size FROM events ORDER BY seq"):
                    excess -= size
                    by_size = seq
                    if excess <= 0:
                        break
        return max(int(by_age), by_size)
