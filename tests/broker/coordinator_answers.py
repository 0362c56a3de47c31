"""What coordinators answer about groups, asked again and again; and what segtail said, held against that.

An answer of segtail is right if the coordinator gave the same one in the ten seconds before, or gives it at that moment. That a group has
no offset in a partition is an answer, too. A client whose coordinator moves sends two commits one right after the other, of which only the
second may be answered to anybody: so what clients say that they committed is right, too.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.broker.lab import Lab
from tests.processes import until

Key = tuple[str, str, int]
"""Group, topic and partition."""

WINDOW = 10.0
"""An answer may be as old as this, in seconds."""

NONE = -1
"""For an offset: there is none."""

PATIENCE_MS = 1000
_MOST_APART = 2.0
"""If two answers are further apart, one between them may have been missed."""

_REMEMBERED = 3 * WINDOW


@dataclass(frozen=True, slots=True)
class _Asked:
    asked: float
    answered: float
    offsets: Mapping[str, Mapping[Key, int]]
    """By group; one whose coordinator did not answer in time is missing."""


@dataclass(frozen=True, slots=True)
class _Committed:
    at: float
    key: Key
    offset: int


class Answers:
    """The answers of the last half minute.

    Args:
        sharers: share groups; their start offsets are answered.
    """

    def __init__(self, clients: Lab, groups: Iterable[str], sharers: Iterable[str] = ()) -> None:
        self._clients, self._groups, self._sharers = clients, sorted(groups), sorted(sharers)
        self._given: deque[_Asked] = deque()
        self._committed: deque[_Committed] = deque()
        self._lock = threading.Lock()

    def ask(self) -> None:
        """Ask about all groups once."""
        asked = time.monotonic()
        offsets = self._offsets()
        with self._lock:
            self._given.append(_Asked(asked, time.monotonic(), offsets))
            while self._given[0].answered < asked - _REMEMBERED:
                self._given.popleft()

    def _offsets(self) -> Mapping[str, Mapping[Key, int]]:
        rows_of = self._clients.ask("commits_of", groups=self._groups, sharers=self._sharers, patience_ms=PATIENCE_MS)
        return {group: {(group, topic, number): offset for topic, number, offset in rows} for group, rows in rows_of.items()}

    def committed(self, key: Key, offset: int) -> None:
        """It was so just now, because a client has committed it, or by what it did; it may have changed before anybody asked."""
        now = time.monotonic()
        with self._lock:
            self._committed.append(_Committed(now, key, offset))
            while self._committed[0].at < now - _REMEMBERED:
                self._committed.popleft()

    def given(self, since: float, until: float) -> Mapping[Key, set[int]]:
        """By partition, what was answered from ``since`` to ``until``. A partition is there that had an offset at some time not long ago.

        A group is not there if its coordinator did not answer for a moment, in which it may have taken commits that nobody has asked for.
        """
        with self._lock:
            asked, committed = [*self._given], [*self._committed]
        found: dict[Key, set[int]] = {}
        for group in (*self._groups, *self._sharers):
            answers = [each for each in asked if group in each.offsets]
            between = [each for each in answers if each.answered >= since and each.asked <= until]
            if _is_whole(between, since, until):
                for key in {key for each in answers for key in each.offsets[group]}:
                    offsets = {each.offsets[group].get(key, NONE) for each in between}
                    found[key] = _with_between(offsets) if group in self._sharers else offsets
        for each in committed:
            # it counts until the next one: for as long as two answers may be apart
            if each.key in found and since - _MOST_APART <= each.at <= until:
                found[each.key].add(each.offset)
        return found

    def until_asked(self, at: float) -> None:
        """Wait until all coordinators that answer were asked after a moment."""
        until("coordinators are asked", lambda: self.last_asked >= at)

    @property
    def last_asked(self) -> float:
        """When they were last asked and have answered."""
        with self._lock:
            return self._given[-1].asked if self._given else -1.0


def _with_between(offsets: set[int]) -> set[int]:
    """Start offsets of a share group, which rises with each record that is done with: those between two answers, too."""
    committed = offsets - {NONE}
    return offsets | {*range(min(committed), max(committed))} if committed else offsets


def _is_whole(answers: Sequence[_Asked], since: float, until: float) -> bool:
    """Whether nothing can have been missed between two answers."""
    begins = [since, *(each.asked for each in answers)]
    apart = [each.answered - before for before, each in zip(begins, answers, strict=False)]
    return bool(answers) and until - answers[-1].answered <= _MOST_APART and max(apart) <= _MOST_APART


_ANSWERED = frozenset({"", "not_committed"})
"""Reasons without an offset that are answers: there is no committed offset."""

OLD_DATA = "old data"
"""A job says by itself that what it knows is too old to be compared."""

JUST_DELETED = "deleted just now"
"""A broker that is down still has it, and the job has not heard yet that the topic is no more."""

_ELSEWHERE = frozenset({"doubt", "coordinator_not_observed", "coordinator_behind", OLD_DATA, JUST_DELETED})
"""Reasons of which the log of the coordinator is not current here."""


@dataclass(slots=True)
class Counts:
    """``differ``: sentences. ``absent``: by reason; ``elsewhere``: those of which no log is current here."""

    equal: int = 0
    differ: list[str] = field(default_factory=list)
    absent: Counter[str] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)

    @property
    def compared(self) -> int:
        return self.equal + len(self.differ) + self.absent.total() + self.elsewhere.total()

    @property
    def answered(self) -> float:
        """The share of those that are answered, where the log of the coordinator is current."""
        return self.equal / max(self.equal + self.absent.total(), 1)

    def add(self, who: str, stated: Mapping[Key, tuple[int, str]], given: Mapping[Key, set[int]], doubts: Iterable[str]) -> None:
        """Count one answer of segtail about all groups: committed offsets, `NONE` for none, and why something is not known."""
        doubt = "; ".join(doubts)
        for key, right in given.items():
            offset, reason = stated.get(key, (NONE, "" if not doubt else "doubt"))
            if offset in right and (offset != NONE or reason in _ANSWERED):
                self.equal += 1
            elif offset == NONE and reason not in _ANSWERED:
                (self.elsewhere if reason in _ELSEWHERE else self.absent)[reason] += 1
            elif doubt or (reason in _ELSEWHERE and (reason != JUST_DELETED or NONE in right)):
                self.elsewhere[f"another answer, with {'a doubt' if doubt else reason}"] += 1
            else:
                self.differ.append(f"{who}: {key}: {offset} {reason!r}, and not of {sorted(right)}")

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.equal + other.equal, self.differ + other.differ, self.absent + other.absent, self.elsewhere + other.elsewhere)
