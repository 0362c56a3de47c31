"""The definitions of metrics: of the exporter's page and of an agent's own."""

import ast
import importlib
import pkgutil
import re
from collections import Counter
from pathlib import Path

import streaming
from streaming.cluster.view import replica_offsets, retention_columns, transaction_columns
from streaming.cluster.view.value_matrix import SCALARS
from streaming.common import definitions
from streaming.common.definitions.agent_metrics import AGENT_DOUBTS, HTTP_CUTS, HTTP_REFUSALS, WEB_FAILURES, WRONG_PASSWORDS
from streaming.common.definitions.metric import PARTITION, Metric, Total, Type
from streaming.common.definitions.sections import METRICS, SECTIONS, Section, section_of
from tests.tables import each_row

ALL = [*METRICS, *SECTIONS[Section.AGENT]]
PACKAGE = Path(streaming.__file__).parent


def named(metric: Metric) -> str:
    return metric.name


ON_BOTH_PAGES = {each.name for each in (AGENT_DOUBTS, HTTP_CUTS, HTTP_REFUSALS, WEB_FAILURES, WRONG_PASSWORDS)}


def test_every_metric_that_a_module_defines_is_in_one_section_and_no_name_is_there_twice() -> None:
    modules = [importlib.import_module(f"{definitions.__name__}.{module.name}") for module in pkgutil.iter_modules(definitions.__path__)]
    defined = [value.name for module in modules for value in vars(module).values() if isinstance(value, Metric)]
    assert Counter(defined) == Counter(metric.name for metrics in SECTIONS.values() for metric in metrics)
    assert {name for name, times in Counter(defined).items() if times > 1} == ON_BOTH_PAGES
    assert [section for section in Section if not SECTIONS[section]] == []


def test_no_metric_is_named_outside_its_definition() -> None:
    files = (path for path in PACKAGE.rglob("*.py") if path.parent.name != "definitions" and "segtail_" in path.read_text())
    texts = ((path, node.value) for path in files for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
    assert [(path.name, text) for path, text in texts if isinstance(text, str) and text.startswith("segtail_")] == []


@each_row("metric", ALL)
def test_names_are_literals_that_follow_prometheus_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"segtail(_[a-z]+)+", metric.name)
    words = metric.name.removesuffix("_total").split("_")
    assert not {"bytes", "ratio", "total"} & set(words[:-1])  # the last word is the unit
    assert not (metric.histogram and metric.name.endswith("_total"))


@each_row("metric", ALL)
def test_help_is_one_sentence_that_needs_no_escape(metric: Metric) -> None:
    assert metric.help.endswith(".")
    assert not set(metric.help) & set('\\"\n')


@each_row("metric", [metric for metric in METRICS if metric.column])
def test_a_partition_s_metric_shows_one_column_and_times_are_those_in_milliseconds(metric: Metric) -> None:
    assert metric.column in {
        "leader",
        "leader_epoch",
        *SCALARS,
        *replica_offsets.COLUMNS,
        *transaction_columns.COLUMNS,
        *retention_columns.COLUMNS,
    }
    assert metric.labels == PARTITION
    assert (metric.unit == "seconds") == metric.column.endswith("_ms")


def test_offsets_have_no_total() -> None:
    assert all(metric.total == Total.NONE for metric in METRICS if metric.column.endswith("_offset"))


@each_row(
    ("name", "histogram", "type", "unit"),
    [
        ("segtail_log_dir_free_bytes", False, Type.GAUGE, "bytes"),
        ("segtail_skipped_bytes_total", False, Type.COUNTER, "bytes"),
        ("segtail_query_restarts_total", False, Type.COUNTER, ""),
        ("segtail_topic_transaction_duration_seconds", True, Type.HISTOGRAM, "seconds"),
        ("segtail_scrub_pass_ratio", False, Type.GAUGE, "ratio"),
        ("segtail_broker_unwatched_log_dirs", False, Type.GAUGE, ""),
    ],
)
def test_a_name_says_type_and_unit(name: str, histogram: bool, type: Type, unit: str) -> None:
    metric = Metric(name, "", histogram=histogram)
    assert (metric.type, metric.unit) == (type, unit)


def test_a_metric_of_the_agent_is_on_its_own_page_alone() -> None:
    assert {section_of(metric) for metric in METRICS} == set(Section) - {Section.AGENT}
