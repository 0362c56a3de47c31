"""Consumer groups that wait for hanging transactions in ``__consumer_offsets``: a page asks for them, agents answer the next poll."""

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import NamedTuple

MOST_ASKED = 20
"""Of so many transactions the groups are asked for at once."""


class Subject(NamedTuple):
    """A transaction on one log."""

    broker: int
    topic: str
    partition: int
    topic_id: str
    producer_id: int
    first_offset: int


class Waiting:
    """What is asked and known. Safe from any thread; nothing is kept of a transaction that hangs no more."""

    def __init__(self) -> None:
        self._lock = Lock()  # protects what follows
        self._asked: tuple[Subject, ...] = ()
        self._known: dict[Subject, tuple[str, ...]] = {}

    def of(self, subjects: Iterable[Subject]) -> Mapping[Subject, tuple[str, ...]]:
        """The groups of those that hang now, as far as they are known; the others are asked for."""
        there = tuple(subjects)
        with self._lock:
            self._known = {subject: self._known[subject] for subject in there if subject in self._known}
            self._asked = tuple(subject for subject in there if subject not in self._known)[:MOST_ASKED]
            return dict(self._known)

    @property
    def asked(self) -> tuple[Subject, ...]:
        """Of which transactions the groups are wanted."""
        with self._lock:
            return self._asked

    def told(self, answers: Mapping[Subject, tuple[str, ...]]) -> None:
        """Say what agents have found; an empty answer counts too."""
        with self._lock:
            self._known |= answers
            self._asked = tuple(subject for subject in self._asked if subject not in self._known)
