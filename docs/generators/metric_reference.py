"""The list of all metrics for people, as Markdown: ``python -m docs.generators.metric_reference`` writes docs/metrics.md."""

import sys
from collections.abc import Iterable

from streaming.common.definitions.metric import PARTITION, Metric, Total, Type
from streaming.common.definitions.sections import SECTIONS, Section, section_of

_HEAD = """# Metrics

<!-- Made from streaming/common/definitions by `make docs`. -->

What does each metric mean? For example, the age of a partition's last append is
`time() - segtail_partition_last_append_timestamp_seconds`: times are Unix timestamps, never ages.

- Units are bytes, seconds, ratios from 0 to 1. `_total` ends a counter, the label `le` makes a histogram, the others are gauges.
- A gauge without a value, or with one that is not known, is absent. Counters begin with 0 and survive restarts. A partition's first appear
  when its backlog has been read.
- *The newest metadata* is that of the agent, of those that are up, whose copy of the metadata log is furthest.
- Series about transactions and producers exist once a transactional batch has been seen.
- One replica of each partition is exported, the leader where it is known, so `sum()` is right; `replicas: all` exports every replica.
- *sum* or *largest* behind a name says what replaces a partition's series with `export.granularity: topic`, or above `series_limit` series:
  the same name without the label `partition`. Others are omitted then; late and hanging transactions stay while they fit.

Labels are those of this table, unless a row has others; `+` adds to them.

| series | labels |
|---|---|
"""

_LABELS = {
    "segtail_partition_": PARTITION,
    "segtail_replica_": PARTITION,
    "segtail_group_": ("group", "topic"),
    "segtail_log_dir_": ("broker", "log_dir"),
    "segtail_scrub_": ("broker", "log_dir"),
    "segtail_broker_": ("broker",),
    "segtail_topic_": ("topic",),
    "segtail_query_": ("query",),
}
"""The labels that most series with such a name have; of other names most have none."""

_INTRODUCTIONS = {
    Section.CONSUMERS: """
See [groups.md](groups.md). Series by group and topic are always there, `segtail_group_partition_` series for partitions later than
`group_late_after`, or all with `export.group_granularity: partition`. What is not exact is absent, never old; the reason is a label of
`segtail_group_lag_unknown_partitions`. Records of share groups are an upper bound, with an empty label `isolation`. Counters begin with 0
when the job starts.
""",
    Section.AGENT: """
Each agent serves a page about itself where it answers calls, to whoever has a token, or at `--metrics-listen HOST:PORT`. It also has the
`process_*` metrics of the Prometheus client: CPU time, memory, open files.
""",
}

_BY_TOPIC = {Total.LED: "sum", Total.LOGS: "sum", Total.SHOWN: "sum", Total.LARGEST: "largest", Total.NONE: ""}


def write_reference() -> str:
    """All metrics, a list for each section."""
    usual = "".join(f"| `{prefix}` | {', '.join(labels)} |\n" for prefix, labels in _LABELS.items())
    return f"{_HEAD}{usual}{''.join(_section(section, metrics) for section, metrics in SECTIONS.items())}"


def _section(section: Section, metrics: Iterable[Metric]) -> str:
    rows = "".join(_row(metric, told=section_of(metric) is not section) for metric in metrics)
    return f"\n## {section}\n{_INTRODUCTIONS.get(section, '')}\n{rows}"


def _row(metric: Metric, told: bool) -> str:
    if told:
        return f"- `{metric.name}`: as above\n"
    facts = "; ".join(filter(None, (_labels(metric), _BY_TOPIC[metric.total])))
    return f"- `{metric.name}`{f' ({facts})' if facts else ''}: {metric.help}\n"


def _labels(metric: Metric) -> str:
    usual = next((labels for prefix, labels in _LABELS.items() if metric.name.startswith(prefix)), ())
    labels = (*metric.labels, "le") if metric.type is Type.HISTOGRAM else metric.labels
    if labels[: len(usual)] == usual:
        return ("+ " if usual and labels != usual else "") + ", ".join(labels[len(usual) :])
    return ", ".join(labels) or "none"


if __name__ == "__main__":
    sys.stdout.write(write_reference())
