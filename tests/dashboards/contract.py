"""The metrics that panels may name."""

import re

from streaming.common.definitions.metric import Metric, Type
from streaming.common.definitions.sections import METRICS

OF_PROMETHEUS = frozenset({"scrape_samples_scraped", "scrape_duration_seconds"})
"""What Prometheus itself tells of a scrape."""

_NAME = re.compile(r"\b(?:segtail|scrape)_\w+")


def named(expr: str) -> set[str]:
    """The metrics that PromQL names, or a sample of theirs such as a histogram's buckets."""
    return set(_NAME.findall(expr))


def samples(metric: Metric) -> set[str]:
    """The names under which Prometheus keeps a metric."""
    if metric.type == Type.HISTOGRAM:
        return {metric.name + suffix for suffix in ("_bucket", "_sum", "_count")}
    return {metric.name}


def known() -> set[str]:
    """Every name that may stand in a panel."""
    return OF_PROMETHEUS | {name for metric in METRICS for name in samples(metric)}
