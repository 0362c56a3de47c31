"""Consumer groups that wait for hanging transactions in ``__consumer_offsets``: a page requests them, agents send them at the next poll."""

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import NamedTuple

from streaming.broker.protocol.status_messages import PendingCommits

MOST_ASKED = 20
"""The groups of at most so many transactions are requested at once."""


class HangingTransaction(NamedTuple):
    """A transaction on one log."""

    broker: int
    topic: str
    partition: int
    topic_id: str
    producer_id: int
    first_offset: int


def requests(subjects: Iterable[HangingTransaction]) -> list[PendingCommits]:
    """What agents are sent to request the groups of transactions."""
    return [PendingCommits(**each._asdict()) for each in subjects]


def answered(answers: Iterable[PendingCommits]) -> dict[HangingTransaction, tuple[str, ...]]:
    """The groups that agents have found, by transaction; a last "..." says that there may be others."""
    return {_subject(each): (*each.groups, *["..."] * each.more) for each in answers}


def _subject(pending: PendingCommits) -> HangingTransaction:
    return HangingTransaction(pending.broker, pending.topic, pending.partition, pending.topic_id, pending.producer_id, pending.first_offset)


class WaitingGroups:
    """The requested and the known groups. Safe from any thread. A transaction that hangs no more is forgotten."""

    def __init__(self) -> None:
        self._lock = Lock()  # protects what follows
        self._asked: tuple[HangingTransaction, ...] = ()
        self._known: dict[HangingTransaction, tuple[str, ...]] = {}

    def of(self, subjects: Iterable[HangingTransaction]) -> Mapping[HangingTransaction, tuple[str, ...]]:
        """The groups of ``subjects``, which hang now, as far as they are known. The others are requested."""
        there = tuple(subjects)
        with self._lock:
            self._known = {subject: self._known[subject] for subject in there if subject in self._known}
            self._asked = tuple(subject for subject in there if subject not in self._known)[:MOST_ASKED]
            return dict(self._known)

    @property
    def asked(self) -> tuple[HangingTransaction, ...]:
        """The transactions whose groups are requested."""
        with self._lock:
            return self._asked

    def update(self, answers: Mapping[HangingTransaction, tuple[str, ...]]) -> None:
        """Store what agents have found; an empty answer counts too."""
        with self._lock:
            self._known |= answers
            self._asked = tuple(subject for subject in self._asked if subject not in self._known)
