"""What filters of a query say about which logs, and which parts of them, have to be read at all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from streaming.broker.protocol.excerpt_messages import EVERYTHING, Excerpt
from streaming.broker.protocol.selection import Selection
from streaming.spark.source.relations import Relation

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BEFORE = (LessThan, LessThanOrEqual)
_AFTER = (GreaterThan, GreaterThanOrEqual)


@dataclass(frozen=True, slots=True)
class PushedFilters:
    """The logs that a query wants: topics and partitions (None: all), batches by their base offsets, and by time.

    ``timestamp``: Unix milliseconds; nothing before the first batch that has a record of then or later is wanted. -1: no such bound.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    from_offset: int = 0
    until_offset: int = EVERYTHING
    timestamp: int = -1

    def has(self, excerpt: Excerpt) -> bool:
        """Whether rows of an excerpt can be wanted."""
        return (
            (self.topics is None or excerpt.topic in self.topics)
            and (self.partitions is None or excerpt.partition in self.partitions)
            and excerpt.until_offset > self.from_offset
            and excerpt.from_offset < self.until_offset
        )

    def part_of(self, excerpt: Excerpt) -> Excerpt:
        """What is wanted of an excerpt."""
        return replace(
            excerpt,
            from_offset=max(excerpt.from_offset, self.from_offset),
            until_offset=min(excerpt.until_offset, self.until_offset),
        )

    def narrowed(self, selection: Selection) -> Selection | None:
        """The part of a selection that is wanted; None if that is nothing."""
        wanted = None if self.topics is None else frozenset(filter(selection.has_topic, self.topics))
        topics = _common(selection.topics, wanted)
        partitions = _common(selection.partitions, self.partitions)
        return None if topics is None or partitions is None else replace(selection, topics=topics, partitions=partitions)


def _common(selected: Sequence[Any], wanted: frozenset[Any] | None) -> tuple[Any, ...] | None:
    """Values that are in both; of a selection, no values stand for all. None: there are none."""
    if wanted is None:
        return tuple(selected)
    both = wanted.intersection(selected) if selected else wanted
    return tuple(sorted(both)) or None


def take(filters: Iterable[Filter], relation: Relation) -> tuple[PushedFilters, list[Filter]]:
    """What some filters want, and those that Spark still has to check.

    Topics and partitions are the same for all rows of a log, so nothing is left to check. Offsets and times only exclude what cannot be
    wanted, and only of batches: a range would begin elsewhere, and so be another one.
    """
    wanted, left = PushedFilters(), []
    for each in filters:
        narrowed = _logs(wanted, each)
        if narrowed is None:
            left.append(each)
            narrowed = _batches(wanted, each) if relation is Relation.BATCHES else wanted
        wanted = narrowed
    return wanted, left


def _logs(wanted: PushedFilters, each: Filter) -> PushedFilters | None:
    """With a filter on topic or partition; None: it is another one."""
    if not isinstance(each, EqualTo | In) or each.attribute not in (("topic",), ("partition",)):
        return None
    values = each.value if isinstance(each, In) else (each.value,)
    kind = str if each.attribute == ("topic",) else int
    if any(type(value) is not kind for value in values):  # a null fits nothing, and is Spark's to compare
        return None
    if kind is str:
        return replace(wanted, topics=frozenset(values) if wanted.topics is None else wanted.topics & frozenset(values))
    return replace(wanted, partitions=frozenset(values) if wanted.partitions is None else wanted.partitions & frozenset(values))


def _batches(wanted: PushedFilters, each: Filter) -> PushedFilters:
    """With what a filter says of offsets or times."""
    if not isinstance(each, (EqualTo, *_BEFORE, *_AFTER)):
        return wanted
    (name, *inner), value = each.attribute, each.value
    if inner:
        return wanted
    if name == "max_timestamp" and isinstance(value, datetime) and value.tzinfo is not None and isinstance(each, (EqualTo, *_AFTER)):
        return replace(wanted, timestamp=max(wanted.timestamp, (value - _EPOCH) // timedelta(milliseconds=1)))
    if name not in ("base_offset", "last_offset") or type(value) is not int:
        return wanted
    if isinstance(each, (EqualTo, *_BEFORE)):  # a batch begins before it ends
        wanted = replace(wanted, until_offset=min(wanted.until_offset, value + (not isinstance(each, LessThan))))
    if isinstance(each, (EqualTo, *_AFTER)) and name == "base_offset":
        wanted = replace(wanted, from_offset=max(wanted.from_offset, value + isinstance(each, GreaterThan)))
    return wanted
