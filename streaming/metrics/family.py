"""A metric with all its series, as columns, the way it is rendered."""

from dataclasses import dataclass

import pyarrow as pa

from streaming.metrics.columns import Longs
from streaming.metrics.definitions import Metric


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """One sample of every subject: what follows the metric's name, one label more, and the values.

    Values are whole numbers: of a metric in seconds milliseconds, of a ratio millionths; of a histogram what is counted, ``thousandths``
    of it where that is said.
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
        """How many there are."""
        return len(self.labels) * len(self.samples)
