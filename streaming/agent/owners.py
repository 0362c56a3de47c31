"""Which run of each consumer's query is the one: two that take turns would each lose what the other has committed.

A run that nobody has heard of yet takes over at once: a query that is started again is one, and the run before it is dead. A run that was
taken over from and asks all the same lives beside the other: both belong to one consumer, as of a checkpoint that was copied.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

OWNED_SECONDS = 60.0
"""A run that has not been heard of for so long may be taken over from by an earlier one; so long a twin is shown, too."""

_MOST_RUNS = 64


@dataclass(slots=True)
class _Owner:
    run: str
    heard_at: float
    earlier: list[str] = field(default_factory=list)
    twin_at: float | None = None  # when an earlier run was last refused


class Owners:
    """For several threads. Kept in memory alone: of two runs, the one that asks later owns its consumer after a restart of the agent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._owners: dict[str, _Owner] = {}

    def claim(self, consumer: str, run: str) -> bool:
        """A run asks for something: whether it is the one, or is from now on."""
        now = self._clock()
        with self._lock:
            owner = self._owners.get(consumer)
            if owner is None:
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
        """Whether a run is the one, or none is known."""
        with self._lock:
            owner = self._owners.get(consumer)
            return owner is None or owner.run == run

    def twins(self) -> list[str]:
        """Consumers of which two runs have asked lately."""
        now = self._clock()
        with self._lock:
            return sorted(name for name, owner in self._owners.items() if owner.twin_at is not None and now - owner.twin_at < OWNED_SECONDS)
