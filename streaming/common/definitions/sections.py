"""All metrics by section: the documentation describes them so, and whole sections may be left out of a page."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import ModuleType

from streaming.common.definitions import (
    agent_metrics,
    broker_metrics,
    group_metrics,
    observer_metrics,
    replica_metrics,
    retention_metrics,
    throughput_metrics,
    transaction_metrics,
)
from streaming.common.definitions.metric import Metric


def section_of(metric: Metric) -> Section:
    """The section that a metric belongs to: that of the exporter's page if it is on an agent's own page too."""
    return _SECTION_OF[metric]


class Section(StrEnum):
    """The section of the documentation that describes a metric."""

    THROUGHPUT = "Throughput"
    OFFSETS = "Offsets and replicas"
    TRANSACTIONS = "Transactions"
    RETENTION = "Retention and log health"
    CONSUMERS = "Consumer groups"
    OBSERVER = "The observer itself"
    AGENT = "The agent's own page"


def _metrics_of(*modules: ModuleType) -> tuple[Metric, ...]:
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Metric))


SECTIONS: Mapping[Section, tuple[Metric, ...]] = {
    Section.THROUGHPUT: _metrics_of(throughput_metrics),
    Section.OFFSETS: _metrics_of(replica_metrics),
    Section.TRANSACTIONS: _metrics_of(transaction_metrics),
    Section.RETENTION: _metrics_of(retention_metrics, broker_metrics),
    Section.CONSUMERS: _metrics_of(group_metrics),
    Section.OBSERVER: _metrics_of(observer_metrics),
    Section.AGENT: _metrics_of(agent_metrics),
}
"""The metrics of each section, in the order of the page."""


_SECTION_OF = dict.fromkeys(SECTIONS[Section.AGENT], Section.AGENT) | {
    metric: section for section, metrics in SECTIONS.items() if section is not Section.AGENT for metric in metrics
}  # the exporter's page goes first: it has some of the agent's metrics too


METRICS = tuple(metric for section, metrics in SECTIONS.items() if section is not Section.AGENT for metric in metrics)
"""All metrics of the exporter's page. An agent has a page of its own."""
