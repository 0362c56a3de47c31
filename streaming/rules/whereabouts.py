"""Where a log lies by what agents publish, and when it lies nowhere any more.

A replica of a broker lies in one log dir. Agents watch log dirs, and any of them may be renamed, split, or share a broker with another one.
So what an agent publishes speaks for the log dirs that it watches, and not for its name. The rows of two agents come in no order: a log is
gone only when it is gone from every log dir in which it was seen and not followed further.
"""

import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from streaming.common.event_row import EventRow
from streaming.common.log_key import LogKey
from streaming.rules.log_state import LogState

_AT = "\t"
"""Between an agent and a log dir in ``LogState.elsewhere``."""


@dataclass(frozen=True, slots=True)
class CensusEnd:
    """The closing row of a census: it decides about the logs that the census lacks.

    Args:
        places: the log dirs whose logs it names all.
        brokers: whose log dirs these are.
        unseen: the log dirs that it does not cover.
        topics: a number for each topic that there is, None if they are not known; see `topic_numbers`.
    """

    places: frozenset[str]
    brokers: frozenset[int]
    unseen: frozenset[str]
    topics: frozenset[int] | None

    @classmethod
    def of(cls, log_dir: str, reason: str, topics: bytes | None) -> Self:
        """Make it from columns of the row."""
        places = _lines(log_dir)
        return cls(
            places,
            frozenset(int(each) for each in {each.partition(":")[0] for each in places} if each.removeprefix("-").isdecimal()),
            _lines(reason),
            None if topics is None else frozenset(np.frombuffer(topics, "<u4").tolist()),
        )

    def may_concern(self, key: LogKey) -> bool:
        """Whether something may follow for a log."""
        return bool(key.topic) and key.broker in self.brokers

    def lacks_topic(self, key: LogKey) -> bool:
        """Whether the topic of a log does not exist any more. A broker has known each topic of which it ever had a replica."""
        return self.topics is not None and bool(key.topic_id) and key.broker in self.brokers and _number(key.topic_id) not in self.topics

    def without(self, state: LogState) -> LogState | None:
        """The state of a log that the census lacks; None if it is nowhere any more."""
        own = place(state.broker, "")
        return _without(state, {each.removeprefix(own) for each in self.places if each.startswith(own)} - self.unseen)


def _lines(text: str) -> frozenset[str]:
    return frozenset(text.split("\n") if text else ())


def _number(topic_id: str) -> int:
    return zlib.crc32(topic_id.encode())


def place(broker: int, log_dir: object) -> str:
    """A log dir of a broker, as the closing row of a census names it."""
    return f"{broker}:{log_dir}"


def _without(state: LogState, log_dirs: Collection[str]) -> LogState | None:
    """The state without these log dirs; None if it is in no other."""
    places = [each for each in _places(state) if each[1] not in log_dirs]
    return _at(state, places) if places else None


def _places(state: LogState) -> list[tuple[str, str]]:
    """Where a log was seen: agents and log dirs, the last one at the end."""
    found = [tuple(each.split(_AT, 1)) for each in state.elsewhere.split("\n") if each]
    return [*((agent, log_dir) for agent, log_dir in found), (state.agent, state.log_dir)]


def _at(state: LogState, places: list[tuple[str, str]]) -> LogState:
    if places == _places(state):
        return state
    *others, (agent, log_dir) = places
    return replace(state, agent=agent, log_dir=log_dir, elsewhere="\n".join(_AT.join(each) for each in others))


def topic_numbers(topic_ids: Iterable[str]) -> bytes:
    """Pack the ids of all topics, four bytes each. An id whose number is not among these is that of no topic; a wrong one rarely is."""
    return np.array(sorted(set(map(_number, topic_ids))), "<u4").tobytes()


def seen_at(state: LogState, row: EventRow) -> LogState:
    """The state of a log of which an agent has published a row. Another agent's place in another log dir stays known."""
    if (row.agent, row.log_dir) == (state.agent, state.log_dir):
        return state
    others = [(agent, log_dir) for agent, log_dir in _places(state) if agent != row.agent and log_dir != row.log_dir]
    return _at(state, [*others, (row.agent, row.log_dir)])


def gone_from(state: LogState, row: EventRow) -> LogState | None:
    """The state of a log after a ``GONE`` row; None if it is nowhere any more."""
    if row.reason == "deleted" and not row.log_dir:  # the topic does not exist any more
        return None
    return _without(state, row.log_dir.split("\n"))
