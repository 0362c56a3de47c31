"""The bytes of labels on a page, and which metrics are left out where there are too many.

Others choose the names. A page that is too large to be fetched blinds every alert. Whole metrics go, because half a metric misleads: the
one with most bytes first, and those that wake people up last.
"""

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow.compute as pc

from streaming.cluster.view.family import Family
from streaming.common.definitions.metric import Metric

NO_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounded:
    """The families that are left, and of those that are not: how many series they have, and their metrics' names."""

    families: tuple[Family, ...]
    series_dropped: int = 0
    dropped: tuple[str, ...] = ()


def bounded(families: tuple[Family, ...], limit: int, last: Collection[Metric]) -> Bounded:
    """The families that fit into so many bytes of labels; those of the metrics ``last`` go last."""
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


def label_bytes(family: Family) -> int:
    """The bytes of a family's labels on a page."""
    own = pc.sum(pc.binary_length(family.labels)).as_py() or 0
    return int(sum(own + len(samples.label.encode()) * len(family.labels) for samples in family.samples))
