"""The table of all metrics for people, as Markdown: ``python -m docs.generators.metric_reference`` writes docs/metrics.md."""

import sys
from collections.abc import Iterable

from streaming.common.definitions.metric import Metric, Total
from streaming.common.definitions.sections import SECTIONS, Section

_HEAD = """# Metrics

<!-- Made from streaming/common/definitions by `make docs`. -->

Units are base units: bytes, seconds, ratios from 0 to 1. A point in time is a Unix timestamp, never an age: `time()` minus the timestamp
is the age. A gauge without a value is absent. Counters survive restarts, and begin with 0. A partition's counters first appear when its
initial backlog has been read, so that `rate()` sees traffic and no backlog.

Series about transactions and producers exist only for partitions on which a transactional batch has been seen.

One replica of each partition is exported, the leader where it is known, so `sum()` is right; `replicas: all` exports every replica.

The column *by topic* shows what replaces a partition's series where only topics are exported (`export.granularity: topic`, or more than
`series_limit` series): a series with the same name but without the label `partition`, as the sum over the topic or the largest of its
partitions. Metrics without an entry there are omitted then, except that series of late and hanging transactions stay as long as they fit.
"""

_INTRODUCTIONS = {
    Section.CONSUMERS: """
How much groups have left to read, from `__consumer_offsets` and the logs themselves; see [groups.md](groups.md). Series by group and topic
are always there. `segtail_group_partition_` series are there for partitions that are later than `group_late_after`, or for all with
`export.group_granularity: partition`. What is not known exactly is absent, never 0 and never old; the reason is a label of
`segtail_group_lag_unknown_partitions`. Share groups have no isolation: their records are an upper bound, with an empty label `isolation`.
Counters begin with 0 when the job starts.
""",
    Section.AGENT: """
Each agent serves a page about itself at the address of `segtail agent --metrics-listen HOST:PORT`. Besides these metrics it has
the `process_*` metrics of the Prometheus client: CPU time, memory, open files.
""",
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
