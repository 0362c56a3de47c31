"""A metric with all its series, as the columns that are rendered, and how their labels are written in the exposition formats."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.common.arrays import Longs
from streaming.common.definitions.metric import Metric

TEXT = pa.large_string()
"""Texts with 64-bit offsets: a page may be larger than 2 GB."""


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


def text(value: str) -> pa.Scalar:
    """A text that can be joined with arrays of texts."""
    return pa.scalar(value, TEXT)


def family_of(metric: Metric, rows: Iterable[tuple[str, int]]) -> Family:
    """A family of (labels as they are rendered, value), in the order of the labels."""
    found = sorted(rows)
    values = np.array([value for _, value in found], np.int64)
    return Family(metric=metric, labels=pa.array([spelled for spelled, _ in found], TEXT), samples=(Samples(values=values),))


def escape(value: str) -> str:
    """A label value as written between the quotes; the same in the text format 0.0.4 and in OpenMetrics 1.0."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def labels(**values: str) -> str:
    """Labels without the braces, in the order given: ``broker="1",topic="orders"``."""
    return ",".join(f'{name}="{escape(value)}"' for name, value in values.items())
