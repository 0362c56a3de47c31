"""Which of the table's series are wanted at all: of what topics, of what metrics, of partitions or of topics alone."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from streaming.metrics.definitions import Metric, Section

_ALL = re.compile(".*", re.DOTALL)
_NONE = re.compile("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What is exported; everything unless said otherwise.

    Args:
        partitions: series of partitions, where there are not too many; else their topics' sums alone.
        topics: a topic's whole name matches.
        exclude: it does not match this, unless this is empty.
        groups: names of sections (``throughput`` for `Section.THROUGHPUT`); None for all.
    """

    partitions: bool = True
    topics: re.Pattern[str] = _ALL
    exclude: re.Pattern[str] = _NONE
    groups: Collection[str] | None = None

    def has_topic(self, topic: str) -> bool:
        """Is there anything of this topic on the page?"""
        excluded = self.exclude.pattern and self.exclude.fullmatch(topic)
        return self.topics.fullmatch(topic) is not None and not excluded

    def has_metric(self, metric: Metric) -> bool:
        """Is this metric on the page? What segtail tells of itself is no group."""
        return self.groups is None or metric.section is Section.OBSERVER or metric.section.name.lower() in self.groups


EVERYTHING = Export()
