"""The agent's memory of its consumers while it runs.

For each consumer it holds whether its beginning is requested and not yet published, and which events arrived but are not committed yet.

If this memory is lost, a range is delivered once more. No range is left out because of it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_MOST_CONSUMERS = 1024


@dataclass(slots=True)
class _Consumer:
    begun: threading.Event | None = None  # set once its beginning is published
    run: str = ""
    journal: str = ""
    upto: int = -1  # the end of the events that this run has received from this journal without a gap
    missed: int = 0  # the end of the events that the consumer has missed; the open transactions are published again because of it
    appears: tuple[object, threading.Event] | None = None  # the watcher that does so, and an event that is set once it is done


@dataclass(frozen=True, slots=True)
class ConsumerArrivals:
    """For several threads."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _consumers: dict[str, _Consumer] = field(default_factory=dict)
    _waiting: set[str] = field(default_factory=set)

    @contextmanager
    def waiting(self, consumer: str) -> Iterator[bool]:
        """Whether a plan of the consumer may wait in the body: only one does at a time, so that no consumer keeps many threads."""
        with self._lock:
            may_wait = consumer not in self._waiting
            self._waiting.add(consumer)
        try:
            yield may_wait
        finally:
            if may_wait:
                with self._lock:
                    self._waiting.discard(consumer)

    def begins(self, consumer: str) -> bool:
        """Whether the consumer's beginning was requested and is not published yet."""
        with self._lock:
            one = self._consumers.get(consumer)
            return one is not None and one.begun is not None and not one.begun.is_set()

    def note_beginning(self, consumer: str, begun: threading.Event) -> None:
        """Note that the consumer's beginning was requested. ``begun`` is set once it is published."""
        with self._lock:
            self._of(consumer).begun = begun

    def forget_beginnings(self) -> None:
        """Forget all requests: the watcher that was to publish the beginnings no longer exists, so they have to be requested again."""
        with self._lock:
            for one in self._consumers.values():
                one.begun = None

    def upto(self, consumer: str, run: str, journal: str) -> int:
        """The seq up to which this run of a consumer has received everything, -1 if it is not known."""
        with self._lock:
            one = self._consumers.get(consumer)
            return one.upto if one is not None and (one.run, one.journal) == (run, journal) else -1

    def note(self, consumer: str, run: str, journal: str, upto: int) -> None:
        """Note that a run of a consumer has received everything up to ``upto``."""
        with self._lock:
            one = self._of(consumer)
            same = (one.run, one.journal) == (run, journal)
            one.run, one.journal, one.upto = run, journal, max(one.upto, upto) if same else upto

    def appears_again(self, consumer: str, missed: int, watcher: object) -> threading.Event | None:
        """The event of an earlier request to publish open transactions again, None if there was no such request.

        ``watcher`` has to be the one that got the request, and ``missed`` the end of what the consumer missed then. The event is set once
        the transactions are published.
        """
        with self._lock:
            one = self._consumers.get(consumer)
            if one is None or one.appears is None or one.missed != missed or one.appears[0] is not watcher:
                return None
            return one.appears[1]

    def note_appearing(self, consumer: str, missed: int, watcher: object, published: threading.Event) -> None:
        """Note that ``watcher`` was asked to publish open transactions again. ``published`` is set once it has done so."""
        with self._lock:
            one = self._of(consumer)
            one.missed, one.appears = missed, (watcher, published)

    def _of(self, consumer: str) -> _Consumer:
        if consumer not in self._consumers and len(self._consumers) >= _MOST_CONSUMERS:
            del self._consumers[next(iter(self._consumers))]  # ids that were made up; of a real one, a range is delivered once more
        return self._consumers.setdefault(consumer, _Consumer())
