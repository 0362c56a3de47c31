"""The agent's memory of its consumers while it runs.

For each consumer it holds whether its beginning is requested and not yet published, and which events arrived but are not committed yet.

If this memory is lost, a range is delivered once more. No range is left out because of it.
"""

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Consumer:
    begun: threading.Event | None = None  # set once its beginning is published
    run: str = ""
    journal: str = ""
    upto: int = -1  # the end of the events that this run has received from this journal without a gap
    missed: int = 0  # the end of the events that the consumer has missed; the open transactions are published again because of it
    appears: tuple[object, threading.Event] | None = None  # the watcher that does so, and an event that is set once it is done


@dataclass(frozen=True, slots=True)
class Arrivals:
    """For several threads."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _consumers: dict[str, _Consumer] = field(default_factory=dict)

    def begins(self, consumer: str) -> bool:
        """Whether the consumer's beginning was requested and is not published yet."""
        with self._lock:
            begun = self._of(consumer).begun
            return begun is not None and not begun.is_set()

    def note_beginning(self, consumer: str, begun: threading.Event) -> None:
        """Note that the consumer's beginning was requested. ``begun`` is set once it is published."""
        with self._lock:
            self._of(consumer).begun = begun

    def forget_beginnings(self) -> None:
        """Forget all requests: the watcher that was to publish the beginnings no longer exists, so they have to be requested again."""
        with self._lock:
            for known in self._consumers.values():
                known.begun = None

    def upto(self, consumer: str, run: str, journal: str) -> int:
        """The seq up to which this run of a consumer has received everything, -1 if it is not known."""
        with self._lock:
            known = self._of(consumer)
            return known.upto if (known.run, known.journal) == (run, journal) else -1

    def note(self, consumer: str, run: str, journal: str, upto: int) -> None:
        """Note that a run of a consumer has received everything up to ``upto``."""
        with self._lock:
            known = self._of(consumer)
            same = (known.run, known.journal) == (run, journal)
            known.run, known.journal, known.upto = run, journal, max(known.upto, upto) if same else upto

    def appears_again(self, consumer: str, missed: int, watcher: object) -> threading.Event | None:
        """The event of an earlier request to publish open transactions again, None if there was no such request.

        ``watcher`` has to be the one that got the request, and ``missed`` the end of what the consumer missed then. The event is set once
        the
        transactions are published.
        """
        with self._lock:
            known = self._of(consumer)
            return known.appears[1] if known.appears is not None and known.missed == missed and known.appears[0] is watcher else None

    def note_appearing(self, consumer: str, missed: int, watcher: object, published: threading.Event) -> None:
        """Note that ``watcher`` was asked to publish open transactions again. ``published`` is set once it has done so."""
        with self._lock:
            known = self._of(consumer)
            known.missed, known.appears = missed, (watcher, published)

    def _of(self, consumer: str) -> _Consumer:
        return self._consumers.setdefault(consumer, _Consumer())
