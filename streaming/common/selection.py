"""Which partitions a reader wants: by the names of topics, by a pattern, by numbers of partitions."""

import re
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Selection:
    """All partitions, or those that fit everything that is given.

    ``topics``: their names; ``pattern``: a regular expression that has to fit a topic's whole name, as ``subscribePattern`` does;
    ``partitions``: numbers. What is empty excludes nothing.
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

    @cached_property
    def _fits(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def has_topic(self, topic: str) -> bool:
        """Whether a topic has partitions that are wanted."""
        return (not self.topics or topic in self._names) and (not self.pattern or self._fits.fullmatch(topic) is not None)

    def has(self, topic: str, partition: int) -> bool:
        """Whether a partition is wanted."""
        return (not self.partitions or partition in self._numbers) and self.has_topic(topic)


EVERYTHING_SELECTED = Selection()
