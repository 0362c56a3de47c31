"""The messages by which a job, or a user's query, plans ranges of what an agent has read, and asks for them."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.json_values import AnyName, Name, Natural, Packed
from streaming.broker.protocol.versions import PROTOCOL
from streaming.kafka.formats.names import METADATA_TOPIC

MOST_PATTERN = 4096
"""The longest pattern, in characters."""

NOT_BEGUN = -1
"""``seq`` of a plan for a run whose beginning is not published yet: send the request again.

The agent may also not know the run, or not have what follows any more: register, with the positions of now."""


@dataclass(frozen=True, slots=True)
class Range(Message):
    """A ticket for the events of ``journal`` after the seq ``after``, up to ``upto``.

    An agent that does not have all of them any more refuses it with a `streaming.errors.GoneError`. ``journal`` "": no rows are wanted, but
    the columns of every answer.

    ``run`` names one run of the consumer's query.
    """

    consumer: AnyName
    run: AnyName
    journal: AnyName
    after: Natural
    upto: Natural
    protocol: int = PROTOCOL


@dataclass(frozen=True)  # no slots: it remembers sets
class Selection:
    """All partitions, or those that fit everything that is given. Unless ``topics`` names it, the metadata log is no topic, as for Kafka's
    tools: it has a batch every half a second even where nothing happens.

    ``topics``: their names; ``pattern``: a regular expression that has to fit a topic's whole name, as ``subscribePattern`` does;
    ``partitions``: numbers. What is empty excludes nothing. A pattern may come from any client, so it is RE2's, whose time is linear: it
    has neither lookahead nor references back (github.com/google/re2/wiki/Syntax).
    """

    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[int, ...] = ()

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.topics)

    @cached_property
    def _numbers(self) -> frozenset[int]:
        return frozenset(self.partitions)

    def has_topic(self, topic: str) -> bool:
        """Whether a topic has partitions that are wanted. Raises ValueError if the pattern is none."""
        named = topic in self._names if self.topics else topic != METADATA_TOPIC
        return named and (not self.pattern or _fits(self.pattern, topic))

    def has(self, topic: str, partition: int) -> bool:
        """Whether a partition is wanted. Raises ValueError if the pattern is none."""
        return (not self.partitions or partition in self._numbers) and self.has_topic(topic)


@lru_cache(maxsize=1 << 16)
def _fits(pattern: str, topic: str) -> bool:
    try:
        fits: bool = pc.match_substring_regex(pa.scalar(topic), f"^(?:{pattern})$").as_py()
    except pa.ArrowInvalid as error:
        raise ValueError(str(error)) from error
    return fits


EVERYTHING_SELECTED = Selection()


def check_pattern(pattern: str) -> None:
    """Raise a ValueError that says what is wrong with a pattern."""
    if len(pattern) > MOST_PATTERN:
        raise ValueError(f"it is longer than {MOST_PATTERN} characters")
    _fits(pattern, "")


@dataclass(frozen=True, slots=True)
class Register(Message):
    """A run of a job's query begins at an agent, or has to begin again: see `NOT_BEGUN`. The agent keeps only which run asked last.

    ``positions``: how far the job has counted each log of the agent's brokers, packed (`streaming.broker.protocol.known_ends`). There the
    agent reads on. ``resumed``: the job has counted logs of these brokers before, so it is given all others from their first byte on; else
    from ``start_from`` on. ``run``: as in `Range`, "" where the job sends none.

    ``protocol``: the protocol of its job, see `streaming.broker.protocol.versions`; the same in other messages.
    """

    consumer: AnyName
    start_from: str
    resumed: bool
    protocol: int = PROTOCOL
    run: AnyName = ""
    positions: Packed = ""


@dataclass(frozen=True, slots=True)
class PlanRequest(Message):
    """A request for how far a budget reaches.

    ``run``: as in `Range`; ``journal`` and ``after``: up to where the job has this agent's rows in its states, "" and -1 if it has none;
    ``budget``: bytes of logs, None for no limit; ``wait_ms``: how long to wait if there is nothing new.
    """

    consumer: AnyName
    run: AnyName
    journal: AnyName
    after: Natural
    budget: int | None
    wait_ms: int
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True)
class Plan(Message):
    """A plan of what comes after ``after`` in ``journal``, up to ``seq``, which is ``total`` bytes of logs since the agent's start.

    ``journal`` is of the agent's process and of the run's beginning in it. ``after`` is what was asked for if that is of this journal, else
    where the beginning is. ``more``: there is more than the budget allows.
    """

    agent: Name
    journal: AnyName
    after: Natural
    seq: Natural
    total: Natural
    more: bool = False
