"""Recording rules that serve other tools' names: what promtool says of them, their values, and that the document names each."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from streaming.common.definitions.sections import METRICS
from tests.alerts.promtool import run
from tests.alerts.rendering import CONF
from tests.tables import each_row

FILES = sorted((CONF / "migration").glob("*.yaml"))
DOCUMENT = CONF.parent / "docs" / "migration.md"

_METRIC = re.compile(r"segtail_\w+")

P0, P1 = '{job="j", broker="1", topic="t", partition="0"}', '{job="j", broker="2", topic="t", partition="1"}'
T, G = '{job="j", topic="t"}', '{job="j", group="g", topic="t"}'
G0, G1 = '{job="j", group="g", topic="t", partition="0"}', '{job="j", group="g", topic="t", partition="1"}'
CLOCKS = (
    '{job="j", group="g", topic="t", partition="0", clock="record"}',
    '{job="j", group="g", topic="t", partition="0", clock="append"}',
)
SERIES = {
    **{f"segtail_broker_fenced{{job='j', broker='{broker}'}}": fenced for broker, fenced in (("1", 0), ("2", 0), ("3", 1))},
    f"segtail_topic_partitions{T}": 2,
    f"segtail_topic_under_min_isr_partitions{T}": 1,
    **{f"segtail_partition_high_watermark{each}": end for each, end in ((P0, 100), (P1, 50))},
    **{f"segtail_partition_log_end_offset{each}": end for each, end in ((P0, 101), (P1, 50))},
    **{f"segtail_partition_log_start_offset{each}": start for each, start in ((P0, 10), (P1, 5))},
    **{f"segtail_partition_leader_id{each}": leader for each, leader in ((P0, 1), (P1, 2))},
    **{f"segtail_partition_leader{each}": 1 for each in (P0, P1)},
    **{f"segtail_partition_replicas{each}": 2 for each in (P0, P1)},
    **{f"segtail_partition_in_sync_replicas{each}": in_sync for each, in_sync in ((P0, 2), (P1, 1))},
    **{f"segtail_partition_min_in_sync_replicas{each}": 2 for each in (P0, P1)},
    **{f"segtail_log_dir_up{{job='j', broker='1', log_dir='{path}'}}": up for path, up in (("/a", 1), ("/b", 0))},
    **{f"segtail_partition_size_bytes{each}": size for each, size in ((P0, 700), (P1, 300))},
    "segtail_cluster_controller_id{job='j'}": 0,
    **{f"segtail_log_dir_size_bytes{{job='j', broker='1', log_dir='{path}'}}": 500 for path in ("/a", "/b")},
    **{f"segtail_log_dir_topic_size_bytes{{job='j', broker='{broker}', log_dir='/a', topic='t'}}": 400 for broker in (1, 2)},
    "segtail_group_members{job='j', group='g'}": 3,
    **{f"segtail_group_partition_committed_offset{each}": at for each, at in ((G0, 90), (G1, 50))},
    **{f"segtail_group_partition_lag_offsets{each}": lag for each, lag in ((G0, 10), (G1, 0))},
    f"segtail_group_lag_offsets{G}": 10,
    **{f"segtail_group_partition_lag_seconds{each}": age for each, age in zip(CLOCKS, (60, 7), strict=True)},
    'segtail_group_lag_seconds{job="j", group="g", topic="t", clock="record"}': 60,
}

Samples = dict[str, float]


def _partitions(name: str, first: float, second: float, more: str = "") -> Samples:
    return {f'{name}{{{more}job="j", partition="{number}", topic="t"}}': value for number, value in enumerate((first, second))}


EXPECTED: dict[str, Samples] = {
    "kafka_exporter": {
        'kafka_brokers{job="j"}': 2,
        'kafka_topic_partitions{job="j", topic="t"}': 2,
        **_partitions("kafka_topic_partition_current_offset", 100, 50),
        **_partitions("kafka_topic_partition_oldest_offset", 10, 5),
        **_partitions("kafka_topic_partition_leader", 1, 2),
        **_partitions("kafka_topic_partition_replicas", 2, 2),
        **_partitions("kafka_topic_partition_in_sync_replica", 2, 1),
        **_partitions("kafka_topic_partition_under_replicated_partition", 0, 1),
        'kafka_consumergroup_members{consumergroup="g", job="j"}': 3,
        **_partitions("kafka_consumergroup_current_offset", 90, 50, 'consumergroup="g", '),
        'kafka_consumergroup_current_offset_sum{consumergroup="g", job="j", topic="t"}': 140,
        **_partitions("kafka_consumergroup_lag", 10, 0, 'consumergroup="g", '),
        'kafka_consumergroup_lag_sum{consumergroup="g", job="j", topic="t"}': 10,
    },
    "kminion": {
        'kminion_kafka_topic_partition_high_water_mark{job="j", partition_id="0", topic_name="t"}': 100,
        'kminion_kafka_topic_partition_high_water_mark{job="j", partition_id="1", topic_name="t"}': 50,
        'kminion_kafka_topic_partition_low_water_mark{job="j", partition_id="0", topic_name="t"}': 10,
        'kminion_kafka_topic_partition_low_water_mark{job="j", partition_id="1", topic_name="t"}': 5,
        'kminion_kafka_topic_high_water_mark_sum{job="j", topic_name="t"}': 150,
        'kminion_kafka_topic_low_water_mark_sum{job="j", topic_name="t"}': 15,
        'kminion_kafka_broker_log_dir_size_total_bytes{broker_id="1", job="j"}': 1000,
        'kminion_kafka_topic_log_dir_size_total_bytes{job="j", topic_name="t"}': 800,
        'kminion_kafka_consumer_group_members{group_id="g", job="j"}': 3,
        'kminion_kafka_consumer_group_topic_offset_sum{group_id="g", job="j", topic_name="t"}': 140,
        'kminion_kafka_consumer_group_topic_lag{group_id="g", job="j", topic_name="t"}': 10,
        'kminion_kafka_consumer_group_topic_partition_lag{group_id="g", job="j", partition_id="0", topic_name="t"}': 10,
        'kminion_kafka_consumer_group_topic_partition_lag{group_id="g", job="j", partition_id="1", topic_name="t"}': 0,
    },
    "kafka_lag_exporter": {
        **_partitions("kafka_partition_latest_offset", 100, 50),
        **_partitions("kafka_partition_earliest_offset", 10, 5),
        **_partitions("kafka_consumergroup_group_offset", 90, 50, 'group="g", '),
        **_partitions("kafka_consumergroup_group_lag", 10, 0, 'group="g", '),
        'kafka_consumergroup_group_lag_seconds{group="g", job="j", partition="0", topic="t"}': 7,
        'kafka_consumergroup_group_max_lag{group="g", job="j"}': 10,
        'kafka_consumergroup_group_max_lag_seconds{group="g", job="j"}': 60,
        'kafka_consumergroup_group_sum_lag{group="g", job="j"}': 10,
        'kafka_consumergroup_group_topic_sum_lag{group="g", job="j", topic="t"}': 10,
    },
    "klag": {
        'klag_topic_partitions{job="j", topic="t"}': 2,
        **_partitions("klag_partition_log_end_offset", 100, 50),
        **_partitions("klag_partition_log_start_offset", 10, 5),
        **_partitions("klag_consumer_committed_offset", 90, 50, 'consumer_group="g", '),
        **_partitions("klag_consumer_lag", 10, 0, 'consumer_group="g", '),
        'klag_consumer_lag_sum{consumer_group="g", job="j"}': 10,
        'klag_consumer_lag_max{consumer_group="g", job="j"}': 10,
        'klag_consumer_lag_ms{consumer_group="g", job="j", topic="t"}': 60_000,
    },
    "burrow": {
        **_partitions("burrow_kafka_topic_partition_offset", 100, 50),
        **_partitions("burrow_kafka_consumer_current_offset", 90, 50, 'consumer_group="g", '),
        **_partitions("burrow_kafka_consumer_partition_lag", 10, 0, 'consumer_group="g", '),
        'burrow_kafka_consumer_lag_total{consumer_group="g", job="j"}': 10,
    },
    "jmx_exporter": {
        'kafka_controller_kafkacontroller_activecontrollercount{job="j"}': 1,
        'kafka_controller_kafkacontroller_globaltopiccount{job="j"}': 1,
        'kafka_controller_kafkacontroller_globalpartitioncount{job="j"}': 2,
        'kafka_controller_kafkacontroller_offlinepartitionscount{job="j"}': 0,
        'kafka_server_replicamanager_underreplicatedpartitions{job="j"}': 0,
        'kafka_server_replicamanager_underminisrpartitioncount{job="j"}': 1,
        **{f'kafka_server_replicamanager_leadercount{{broker="{broker}", job="j"}}': 1 for broker in (1, 2)},
        'kafka_server_replicamanager_partitioncount{job="j"}': 4,
        **{f"kafka_cluster_partition_underminisr{each}": under for each, under in ((P0, 0), (P1, 1))},
        **{f"kafka_cluster_partition_atminisr{each}": at for each, at in ((P0, 1), (P1, 0))},
        'kafka_log_logmanager_offlinelogdirectorycount{broker="1", job="j"}': 1,
        **{f"kafka_log_log_size{each}": size for each, size in ((P0, 700), (P1, 300))},
        **{f"kafka_log_log_logstartoffset{each}": start for each, start in ((P0, 10), (P1, 5))},
        **{f"kafka_log_log_logendoffset{each}": end for each, end in ((P0, 101), (P1, 50))},
    },
}


def _rules(path: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


def test_each_name_stands_in_a_row_with_what_it_becomes() -> None:
    rows = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    lacking = [
        (path.stem, rule["record"], metric)
        for path in FILES
        for rule in _rules(path)
        for metric in _METRIC.findall(rule["expr"])
        if not any(f"`{rule['record']}`" in row and metric in row for row in rows)
    ]
    beside = {"segtail_topic_partitions"}  # from which a 0 is made
    assert [each for each in lacking if each[2] not in beside] == []


def test_what_is_asked_for_is_exported() -> None:
    there = {metric.name for metric in METRICS}
    named = {name for path in (*FILES, DOCUMENT, CONF / "keda.yaml") for name in _METRIC.findall(path.read_text())}
    assert {name.removesuffix("_") for name in named} - there == set()


@pytest.mark.programs
def test_a_collector_scrapes_by_what_prometheus_understands(tmp_path: Path) -> None:
    receivers = yaml.safe_load((CONF / "otel-collector.yaml").read_text())["receivers"]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(receivers["prometheus"]["config"]))
    run("promtool", "check", "config", tmp_path / "prometheus.yml")


@pytest.mark.programs
@each_row("tool", [path.stem for path in FILES])
def test_the_names_of_a_tool_have_the_values_that_it_would_give(tool: str, tmp_path: Path) -> None:
    path = CONF / "migration" / f"{tool}.yaml"
    expected: dict[str, list[dict[str, Any]]] = {rule["record"]: [] for rule in _rules(path)}
    for series, value in EXPECTED[tool].items():
        expected[series.partition("{")[0]].append({"labels": series, "value": value})
    asked = [{"expr": record, "eval_time": "1m", "exp_samples": samples} for record, samples in expected.items()]
    inputs = [{"series": series, "values": f"{value} {value}"} for series, value in SERIES.items()]
    case = {"interval": "1m", "input_series": inputs, "promql_expr_test": asked}
    document = {"rule_files": [str(path)], "evaluation_interval": "1m", "tests": [case]}
    (tmp_path / f"{tool}.json").write_text(json.dumps(document))
    run("promtool", "check", "rules", path)
    run("promtool", "test", "rules", f"{tool}.json", cwd=tmp_path)
