"""Decides which run of each consumer's query is served. If two runs took turns, each would lose what the other has committed.

A run that is not known yet takes over at once: it is a query that was started again, and the run before it is dead. If a run that was
replaced still sends requests, both runs are alive. Then they belong to one consumer, for example because a checkpoint was copied.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

OWNED_SECONDS = 60.0
"""After this long without a request from the owner, an earlier run may take over. A twin is reported for the same time."""

_MOST_RUNS = 64

_MOST_CONSUMERS = 1024


@dataclass(slots=True)
class _Owner:
    run: str
    heard_at: float
    earlier: list[str] = field(default_factory=list)
    twin_at: float | None = None  # when a request of an earlier run was last refused


class Owners:
    """The owners of all consumers. For several threads.

    They are kept in memory only. So after a restart of the agent, the last of two runs to send a request becomes the owner.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._owners: dict[str, _Owner] = {}

    def claim(self, consumer: str, run: str) -> bool:
        """Whether a run that sends a request owns the consumer, or owns it from now on."""
        now = self._clock()
        with self._lock:
            owner = self._owners.get(consumer)
            if owner is None:
                if len(self._owners) >= _MOST_CONSUMERS:  # ids that were made up: whoever reads is heard again and again
                    del self._owners[min(self._owners, key=lambda each: self._owners[each].heard_at)]
                self._owners[consumer] = _Owner(run, now)
                return True
            if owner.run != run:
                if run in owner.earlier and now - owner.heard_at < OWNED_SECONDS:
                    owner.twin_at = now
                    return False
                owner.earlier = [*[each for each in owner.earlier if each != run][-_MOST_RUNS:], owner.run]
                owner.run = run
            owner.heard_at = now
            return True

    def owns(self, consumer: str, run: str) -> bool:
        """Whether a run owns the consumer, or no owner is known."""
        with self._lock:
            owner = self._owners.get(consumer)
            return owner is None or owner.run == run

    def twins(self) -> list[str]:
        """Consumers with requests from two runs lately."""
        now = self._clock()
        with self._lock:
            return sorted(name for name, owner in self._owners.items() if owner.twin_at is not None and now - owner.twin_at < OWNED_SECONDS)
