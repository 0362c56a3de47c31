"""Marks in the charts of a dashboard, each kind with a switch: when which alert fired, and what else changed, by segtail's own series."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from docs.dashboards.pairs import one_of_a_pair
from docs.dashboards.panels import DATASOURCE
from docs.dashboards.tables import Dashboard, promql


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """A kind of mark, from when to when its query has a value of 1 or more: Grafana draws none for 0, and before version 10 none below 1.

    ``title`` takes labels as legends do; ``labels`` go with a mark as tags.
    """

    name: str
    query: str
    title: str
    labels: str
    color: str
    shown: bool = True


def marks(table: Dashboard) -> list[dict[str, Any]]:
    """The annotations of a dashboard, as Grafana's JSON has those of a Prometheus: its library knows no titles and no tags of them."""
    return [
        {
            "datasource": {"type": DATASOURCE.type_val, "uid": DATASOURCE.uid},
            "enable": each.shown,
            "expr": promql(each.query),
            "iconColor": each.color,
            "name": each.name,
            "step": "60s",
            "tagKeys": each.labels,
            "titleFormat": each.title,
        }
        for each in (*_alerts(), *_changes(table))
    ]


def _alerts() -> Iterator[_Mark]:
    """Of clusters whose segtail is down, too. Watchdog always fires, and info is for a check now and then."""
    for name, severity, color in (("Critical alerts", "critical", "red"), ("Warnings", "warning", "orange")):
        firing = f'ALERTS{{CLUSTER,alertstate="firing",severity="{severity}"}}'
        yield _Mark(
            name=name,
            query=f"{firing} and on (job) last_over_time(segtail_build_info{{CLUSTER}}[1d])",
            title="{{alertname}}",
            labels="severity,job,broker,topic,partition,group",
            color=color,
        )


def _changes(table: Dashboard) -> Iterator[_Mark]:
    yield _Mark(
        name="Brokers down or starting",
        query=one_of_a_pair('segtail_broker_status{CLUSTER,status!="running"} == 1'),
        title="Broker {{broker}}: {{status}}",
        labels="job,broker,status",
        color="purple",
    )
    yield _Mark(
        name="Agents away",
        query=one_of_a_pair("1 + (segtail_agent_up{CLUSTER} == 0)"),
        title="Agent {{agent}} away",
        labels="job,broker,agent",
        color="yellow",
    )
    yield _Mark(
        name="segtail restarts",
        query="1 + (time() - segtail_start_timestamp_seconds{CLUSTER} < 60)",
        title="segtail began at {{instance}}",
        labels="job,instance",
        color="blue",
    )
    # It reads a series for each partition at every minute, which is cheap for one partition alone.
    chosen = "ONE" if "partition" in table.one else "TOPICS" if "topic" in table.variables else "CLUSTER"
    epochs = f"segtail_partition_leader_epoch{{{chosen}}}"
    greater = f"max by (job, topic, partition) ({epochs}) > max by (job, topic, partition) ({epochs} offset 1m)"
    yield _Mark(
        name="Leader elections",
        query=f"count by (job) ({greater})",
        title="Leaders elected",
        labels="job",
        color="green",
        shown=chosen == "ONE",
    )
