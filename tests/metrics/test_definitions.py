"""The table of metrics."""

import re

import pytest

from streaming.metrics import definitions, replica_offsets, retention, transactions
from streaming.metrics.columns import SCALARS
from streaming.metrics.definitions import METRICS, PARTITION, Metric, Total, Type


def test_every_metric_that_is_defined_is_in_the_table_once() -> None:
    defined = [value for value in vars(definitions).values() if isinstance(value, Metric)]
    assert sorted(metric.name for metric in METRICS) == sorted({metric.name for metric in defined})


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_follow_prometheus_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"segtail(_[a-z]+)+", metric.name)
    assert metric.name.endswith("_total") == (metric.type == Type.COUNTER)
    if metric.unit:
        assert metric.name.removesuffix("_total").endswith(f"_{metric.unit}")


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_help_is_one_sentence_that_needs_no_escape(metric: Metric) -> None:
    assert metric.help.endswith(".")
    assert not set(metric.help) & set('\\"\n')


@pytest.mark.parametrize("metric", [metric for metric in METRICS if metric.column], ids=lambda metric: metric.name)
def test_a_partition_s_metric_shows_one_column_and_times_are_those_in_milliseconds(metric: Metric) -> None:
    assert metric.column in {"leader", "leader_epoch", *SCALARS, *replica_offsets.COLUMNS, *transactions.COLUMNS, *retention.COLUMNS}
    assert metric.labels == PARTITION
    assert (metric.unit == "seconds") == metric.column.endswith("_ms")


def test_offsets_have_no_total() -> None:
    assert all(metric.total == Total.NONE for metric in METRICS if metric.column.endswith("_offset"))
