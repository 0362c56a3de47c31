"""What an agent remembers of its consumers while it runs: whose beginning is on its way, and what has arrived but is not committed yet.

Losing it costs a range that is delivered once more, never one that is not delivered.
"""

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Consumer:
    begun: threading.Event | None = None  # set once its beginning is published
    run: str = ""
    journal: str = ""
    upto: int = -1  # what that run has of that journal without a gap
    missed: int = 0  # up to where it has missed what is published again by
    appears: tuple[object, threading.Event] | None = None  # this watcher, and is set once that is done


@dataclass(frozen=True, slots=True)
class Arrivals:
    """For several threads."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _consumers: dict[str, _Consumer] = field(default_factory=dict)

    def begins(self, consumer: str) -> bool:
        """Whether its beginning was asked for and is not published yet."""
        with self._lock:
            begun = self._of(consumer).begun
            return begun is not None and not begun.is_set()

    def note_beginning(self, consumer: str, begun: threading.Event) -> None:
        """Its beginning was asked for; ``begun`` is set once it is published."""
        with self._lock:
            self._of(consumer).begun = begun

    def forget_beginnings(self) -> None:
        """The watcher that was to publish them is no more: they have to be asked for again."""
        with self._lock:
            for known in self._consumers.values():
                known.begun = None

    def upto(self, consumer: str, run: str, journal: str) -> int:
        """Up to where this run of a consumer has received everything, -1 if nothing is known of it."""
        with self._lock:
            known = self._of(consumer)
            return known.upto if (known.run, known.journal) == (run, journal) else -1

    def note(self, consumer: str, run: str, journal: str, upto: int) -> None:
        """A run of a consumer has received everything up to ``upto``."""
        with self._lock:
            known = self._of(consumer)
            same = (known.run, known.journal) == (run, journal)
            known.run, known.journal, known.upto = run, journal, max(known.upto, upto) if same else upto

    def appears_again(self, consumer: str, missed: int, watcher: object) -> threading.Event | None:
        """Whether ``watcher`` was asked to publish again what is open, for what a consumer has missed: is set once that is done."""
        with self._lock:
            known = self._of(consumer)
            return known.appears[1] if known.appears is not None and known.missed == missed and known.appears[0] is watcher else None

    def note_appearing(self, consumer: str, missed: int, watcher: object, published: threading.Event) -> None:
        """It was asked."""
        with self._lock:
            known = self._of(consumer)
            known.missed, known.appears = missed, (watcher, published)

    def _of(self, consumer: str) -> _Consumer:
        return self._consumers.setdefault(consumer, _Consumer())
