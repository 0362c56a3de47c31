"""Which partitions a reader wants: by the names of topics, by a pattern, by numbers of partitions."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import pyarrow as pa
import pyarrow.compute as pc

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
