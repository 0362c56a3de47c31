"""A metric with all its series as columns, how their labels are written, and which of the series are wanted at all."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.common.arrays import Longs
from streaming.common.definitions.metric import Metric
from streaming.common.definitions.sections import Section, section_of
from streaming.common.definitions.throughput_metrics import APPEND_AHEAD, APPEND_DELAY

TEXT = pa.large_string()
"""Texts with 64-bit offsets: a page may be larger than 2 GB."""

_ALL = re.compile(".*", re.DOTALL)
_NONE = re.compile("")

NO_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """One sample of every subject: what follows the metric's name, one more label, and the values.

    Values are whole numbers: milliseconds for a metric in seconds, millionths for a ratio. For a histogram they are the counted units, or
    thousandths of them if ``thousandths`` is set.
    """

    suffix: str = ""
    label: str = ""
    values: Longs
    thousandths: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """A metric with its subjects' labels, and the samples that each of them has."""

    metric: Metric
    labels: pa.LargeStringArray
    samples: tuple[Samples, ...]

    @property
    def series(self) -> int:
        """How many series there are."""
        return len(self.labels) * len(self.samples)


def labels(**values: str) -> str:
    """Labels without the braces, in the order given: ``broker="1",topic="orders"``."""
    return ",".join(f'{name}="{escape(value)}"' for name, value in values.items())


def escape(value: str) -> str:
    """A label value as written between the quotes; the same in the text format 0.0.4 and in OpenMetrics 1.0."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def text(value: str) -> pa.Scalar:
    """A text that can be joined with arrays of texts."""
    return pa.scalar(value, TEXT)


def family_of(metric: Metric, rows: Iterable[tuple[str, int]]) -> Family:
    """A family of (labels as they are rendered, value), in the order of the labels."""
    found = sorted(rows)
    values = np.array([value for _, value in found], np.int64)
    return Family(metric=metric, labels=pa.array([spelled for spelled, _ in found], TEXT), samples=(Samples(values=values),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What is exported; everything by default.

    Which of the table's series are wanted at all, by topic, metric and partition, and which are left out because labels are too long.

    Args:
        partitions: True for series of partitions, if there are not too many; False for the sums of topics only.
        topics: the whole name of an exported topic matches this.
        exclude: the name does not match this, unless this is empty.
        consumers: the whole name of an exported consumer group matches this.
        exclude_consumers: the name does not match this, unless this is empty.
        append_delays: whether it is exported how late records arrive.
        groups: names of sections (``throughput`` for `Section.THROUGHPUT`); None for all.
    """

    partitions: bool = True
    topics: re.Pattern[str] = _ALL
    exclude: re.Pattern[str] = _NONE
    append_delays: bool = True
    groups: Collection[str] | None = None
    consumers: re.Pattern[str] = _ALL
    exclude_consumers: re.Pattern[str] = _NONE

    def has_topic(self, topic: str) -> bool:
        """Whether anything of this topic is on the page."""
        excluded = self.exclude.pattern and self.exclude.fullmatch(topic)
        return self.topics.fullmatch(topic) is not None and not excluded

    def has_consumer(self, group: str) -> bool:
        """Whether anything of this consumer group is on the page."""
        excluded = self.exclude_consumers.pattern and self.exclude_consumers.fullmatch(group)
        return self.consumers.fullmatch(group) is not None and not excluded

    def has_metric(self, metric: Metric) -> bool:
        """Whether this metric is on the page. The metrics about segtail itself are no group: they are always there."""
        if not self.append_delays and metric in (APPEND_DELAY, APPEND_AHEAD):
            return False
        section = section_of(metric)
        return self.groups is None or section is Section.OBSERVER or section.name.lower() in self.groups


EVERYTHING = Export()


def bounded(families: tuple[Family, ...], limit: int, last: Collection[Metric]) -> Bounded:
    """The families that fit into so many bytes of labels; those of the metrics ``last`` go last.

    The bytes of labels on a page, and which metrics are left out where there are too many. Others choose the names. A page that is
    too large to be fetched blinds every alert. Whole metrics go, because half a metric misleads: the one with most bytes first, and
    those that wake people up last.
    """
    sizes = [label_bytes(family) for family in families]
    total, left_out = sum(sizes), set[int]()
    for item in sorted(range(len(families)), key=lambda item: (families[item].metric in last, -sizes[item])):
        if total <= limit:
            break
        total -= sizes[item]
        left_out.add(item)
    dropped = [families[item] for item in sorted(left_out)]
    return Bounded(
        families=tuple(family for item, family in enumerate(families) if item not in left_out),
        series_dropped=sum(family.series for family in dropped),
        dropped=tuple(family.metric.name for family in dropped),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounded:
    """The families that are left, and of those that are not: how many series they have, and their metrics' names."""

    families: tuple[Family, ...]
    series_dropped: int = 0
    dropped: tuple[str, ...] = ()


def label_bytes(family: Family) -> int:
    """The bytes of a family's labels on a page."""
    own = pc.sum(pc.binary_length(family.labels)).as_py() or 0
    return int(sum(own + len(samples.label.encode()) * len(family.labels) for samples in family.samples))
