"""The table of all metrics for people, as Markdown: ``python -m streaming.metrics.reference`` writes docs/metrics.md."""

import sys
from collections.abc import Iterable

from streaming.definitions.metric import Metric, Total
from streaming.definitions.sections import SECTIONS, Section

_HEAD = """# Metrics

<!-- Made from streaming/definitions by `make docs`. -->

Units are base units: bytes, seconds, ratios from 0 to 1. A point in time is a Unix timestamp, never an age: `time()` minus it is
one. A gauge without a value is absent. Counters are kept across restarts, and exist with 0 from first sight; a partition's counters first
appear when its initial backlog has been read, so that `rate()` sees traffic and no backlog.

Series about transactions and producers exist for partitions on which a transactional batch has been seen. On the others there is
nothing to tell.

Of each partition one replica is exported, the leader where it is known, so `sum()` is right; with `replicas: all` every one is.

*By topic* says what takes a partition's place where only topics are exported (`export.granularity: topic`, or more than `series_limit`
series): the same name without the label `partition`, as the sum over the topic or the largest of its partitions. Metrics without one are
left out then, except that the series of late and hanging transactions stay as long as they fit.
"""

_INTRODUCTIONS = {
    Section.AGENT: """
Each agent has a page about itself, where `segtail agent --metrics-listen HOST:PORT` puts it. Beside these it has the `process_*` metrics
of the Prometheus client: CPU time, memory, open files.
"""
}

_BY_TOPIC = {Total.LED: "sum", Total.LOGS: "sum", Total.SHOWN: "sum", Total.LARGEST: "largest", Total.NONE: ""}


def write_reference() -> str:
    """All metrics, a table for each section."""
    return _HEAD + "".join(_section(section, metrics) for section, metrics in SECTIONS.items())


def _section(section: Section, metrics: Iterable[Metric]) -> str:
    rows = "".join(map(_row, metrics))
    return (
        f"\n## {section}\n{_INTRODUCTIONS.get(section, '')}\n| name | type | labels | by topic | meaning |\n|---|---|---|---|---|\n{rows}"
    )


def _row(metric: Metric) -> str:
    return f"| `{metric.name}` | {metric.type} | {', '.join(metric.labels)} | {_BY_TOPIC[metric.total]} | {metric.help} |\n"


if __name__ == "__main__":
    sys.stdout.write(write_reference())
