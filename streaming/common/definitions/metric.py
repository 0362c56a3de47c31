"""What defines a metric. Its name, by Prometheus' conventions, also contains its unit, and whether it is a counter."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_UNITS = ("bytes", "seconds", "ratio")

PARTITION = ("broker", "topic", "partition")
"""The labels of a partition's series."""


class Total(StrEnum):
    """What a topic exports instead of the series of its partitions, if there would be too many of them."""

    LED = "led"  # sum of what was appended while each replica led: an election moves no history, so `rate` sees no jump
    LOGS = "logs"  # sum over the topic's logs on the broker: counted for each log by itself
    SHOWN = "shown"  # sum over the exported partitions
    LARGEST = "largest"  # the largest of the exported partitions
    NONE = "none"  # no total means anything


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    ``column`` is the column that a partition's series shows, "" if it is no such series. It is a column of
    `streaming.common.state_row.StateRow`, or one that the exporter computes. ``least`` is the smallest number in ``column`` that is a
    value.
    """

    name: str
    help: str
    labels: tuple[str, ...] = PARTITION
    column: str = ""
    total: Total = Total.NONE
    least: int = 0
    histogram: bool = False

    @property
    def type(self) -> Type:
        """The type: only counters end in ``_total``."""
        if self.histogram:
            return Type.HISTOGRAM
        return Type.COUNTER if self.name.endswith("_total") else Type.GAUGE

    @property
    def unit(self) -> str:
        """The base unit, "" for a plain number."""
        last = self.name.removesuffix("_total").rpartition("_")[2]
        return last if last in _UNITS else ""


class Type(StrEnum):
    """A metric's type, as the exposition formats spell it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
