"""The table of all metrics for people, as Markdown: ``python -m docs.generators.metric_reference`` writes docs/metrics.md."""

import sys
from collections.abc import Iterable

from streaming.common.definitions.metric import Metric, Total
from streaming.common.definitions.sections import SECTIONS, Section

_HEAD = """# Metrics

<!-- Made from streaming/common/definitions by `make docs`. -->

What does each metric mean? For example, the age of a partition's last append is
`time() - segtail_partition_last_append_timestamp_seconds`: a point in time is a Unix timestamp, never an age.

- Units are bytes, seconds, ratios from 0 to 1. A gauge without a value is absent.
- Counters survive restarts, and begin with 0. A partition's first appear when its initial backlog has been read.
- Series about transactions and producers exist once a transactional batch has been seen.
- One replica of each partition is exported, the leader where it is known, so `sum()` is right; `replicas: all` exports every replica.
- *By topic* is what replaces a partition's series with `export.granularity: topic`, or above `series_limit` series: the same name without
  the label `partition`, the sum or the largest. Without an entry it is omitted then; late and hanging transactions stay while they fit.
"""

_INTRODUCTIONS = {
    Section.CONSUMERS: """
See [groups.md](groups.md). Series by group and topic are always there, `segtail_group_partition_` series for partitions later than
`group_late_after`, or all with `export.group_granularity: partition`. What is not exact is absent, never old; the reason is a label of
`segtail_group_lag_unknown_partitions`. Records of share groups are an upper bound, with an empty label `isolation`. Counters begin with 0
when the job starts.
""",
    Section.AGENT: """
Each agent serves a page about itself where it answers calls, to whoever has a token, or at `--metrics-listen HOST:PORT`. Besides these metrics it has
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
