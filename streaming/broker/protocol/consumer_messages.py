"""The messages by which a job registers as a consumer, plans ranges of a journal, and commits them."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.json_values import AnyName, Name, Natural
from streaming.broker.protocol.versions import PROTOCOL
from streaming.kafka.formats.names import METADATA_TOPIC

MOST_PATTERN = 4096
"""The longest pattern, in characters."""


@dataclass(frozen=True)  # no slots: it remembers sets
class Selection:
    """All partitions, or those that fit everything that is given. Unless ``topics`` names it, the metadata log is no topic, as for Kafka's
    tools: it has a batch every half a second even where nothing happens.

    ``topics``: their names; ``pattern``: a regular expression that has to fit a topic's whole name, as ``subscribePattern`` does;
    ``partitions``: numbers. What is empty excludes nothing. A pattern may come from somebody else, so it is RE2's, whose time is linear: it
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


EVERYTHING_SELECTED = Selection()


def check_pattern(pattern: str) -> None:
    """Raise a ValueError that says what is wrong with a pattern."""
    if len(pattern) > MOST_PATTERN:
        raise ValueError(f"it is longer than {MOST_PATTERN} characters")
    _fits(pattern, "")


@lru_cache(maxsize=1 << 16)
def _fits(pattern: str, topic: str) -> bool:
    try:
        fits: bool = pc.match_substring_regex(pa.scalar(topic), f"^(?:{pattern})$").as_py()
    except pa.ArrowInvalid as error:
        raise ValueError(str(error)) from error
    return fits


@dataclass(frozen=True, slots=True)
class Register(Message):
    """A consumer starts.

    ``start_from`` is used if the consumer is new to this agent's journal. ``resumed``: it has folded these logs before. ``run``: as in
    `Range`, "" where the job sends none.

    ``protocol``: the protocol of its job, see `streaming.broker.protocol.versions`; the same in other messages.
    """

    consumer: AnyName
    start_from: str
    resumed: bool
    protocol: int = PROTOCOL
    run: AnyName = ""


@dataclass(frozen=True, slots=True)
class PlanRequest(Message):
    """A request for how far a budget reaches.

    ``run``: the run that received the last ranges (see `Range`); ``journal`` and ``after``: the end of the last plan ("" and -1 before the
    first); ``budget``: bytes of logs, None for no limit; ``wait_ms``: how long to wait if there is nothing new; ``total``: of the last
    plan, -1 before the first.
    """

    consumer: AnyName
    run: AnyName
    journal: AnyName
    after: Natural
    budget: int | None
    wait_ms: int
    protocol: int = PROTOCOL
    total: Natural = -1


NOT_BEGUN = -1
"""``seq`` of a plan for a consumer whose beginning is not published yet: register, or send the request again."""


@dataclass(frozen=True, slots=True)
class Plan(Message):
    """A plan up to ``seq`` of ``journal``, which is ``total`` bytes of logs since the journal's beginning.

    ``again``: nothing is new, but something before it has not arrived; ``missed``: something has not arrived, whether or not there is more.
    ``more``: there is more than the budget allows.
    """

    agent: Name
    journal: AnyName
    seq: Natural
    total: Natural
    again: bool
    missed: bool = False
    more: bool = False


@dataclass(frozen=True, slots=True)
class Range(Message):
    """A ticket for the events of ``journal`` after the seq ``after``, up to ``upto``. ``after_total`` is the bytes at ``after``.

    If ``after`` is -1, the range begins at the consumer's own beginning.

    ``run`` names one run of the consumer's query. Events that an earlier run received do not count, because they may never have been
    committed.
    """

    consumer: AnyName
    run: AnyName
    journal: AnyName
    after: Natural
    after_total: Natural
    upto: Natural
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True)
class Committed(Message):
    """The micro-batch that ends at ``seq`` is committed. Events up to there that ``run`` received will not be requested again."""

    consumer: AnyName
    run: AnyName
    journal: AnyName
    seq: Natural
