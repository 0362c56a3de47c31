"""A metric with few series, as a family of the Prometheus client."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING

from streaming.common.definitions.metric import Metric, Type

if TYPE_CHECKING:
    from prometheus_client import Metric as Samples


def client_family(metric: Metric, rows: Iterable[tuple[Sequence[object], float]]) -> "Samples":
    """A family of (labels' values, value). Two agents may report the same thing: of equal labels the largest value counts."""
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily  # 4 MB, which a command on log dirs does without

    kind = CounterMetricFamily if metric.type == Type.COUNTER else GaugeMetricFamily
    family = kind(metric.name, metric.help, labels=metric.labels)
    largest: dict[tuple[str, ...], float] = {}
    for labels, value in rows:
        series = tuple(map(str, labels))
        largest[series] = max(float(value), largest.get(series, -inf))
    for series, value in largest.items():
        family.add_metric(series, value)
    return family
