"""The alerts of conf/, evaluated by promtool over many worlds at once, each of them held still and under a ``job`` of its own.

Held still means that nothing gets older: what happened five seconds ago has happened five seconds ago at any time. So timestamps move
with the clock, and an alert that fires later than its ``for`` has been true all the time.
"""

import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.alert_worlds.worlds import NOW, World
from tests.alerts.promtool import answers
from tests.alerts.rendering import CONF
from tests.alerts.shortening import seconds_of

STEP_S = 300
"""Between two samples, and between two evaluations: as long as Prometheus looks back for a sample."""

HISTORY_S = {
    "CompactionStalled": 3 * 3600,
    "LogDirFillingUp": 900,
    "GroupWillLoseData": 600,
    "ObserverLagging": 900,
    "RetentionBlocked": 1800,
}
"""What alerts look back for at samples of earlier, besides their ``for``."""

BEGUN = ("corrupt_batches_total", "group_lost_records_total", "group_lost_offsets_total")
"""The ends of names of counters that began with the world: before it nothing had been counted."""

_RECORDED = re.compile(r"[a-z_]+:segtail_\w+(?::\w+)?")
_NAME = re.compile(r"segtail_[a-z_]+")
_RESULT = re.compile(r"\{([^{}]*)\} \d")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_LAST_APPEND = "segtail_partition_last_append_timestamp_seconds"
_LATELY_S = 3600

MOST_WORLDS = 250
"""As many are evaluated at once: a query has a most of samples."""

_PRINTED = ("Unit Testing:", "FAILED:", "SUCCESS", "exp:")
"""How the other lines begin that promtool prints."""

Labels = frozenset[tuple[str, str]]
Firing = dict[str, set[tuple[int, Labels]]]
"""By alert: the number of the world, and the labels of the subject."""


def rule_of(alert: str) -> dict[str, Any]:
    """The rule of an alert."""
    (group,) = yaml.safe_load((CONF / "alerts" / f"{alert}.yaml").read_text())["groups"]
    rule: dict[str, Any] = group["rules"][0]
    return rule


def recorded_rules(name: str) -> list[dict[str, Any]]:
    """The recording rule of a name, and those beside it in its group, which it is made of."""
    return [rule for group in _recorded((name,)) for rule in group["rules"]]


def firing(worlds: Sequence[World], subjects: Mapping[str, Sequence[str]], directory: Path) -> Firing:
    """What fires in worlds that are held still for longer than the ``for`` of each alert.

    Args:
        subjects: the labels of each alert's subject, by its name; of alerts that differ in others alone one is counted.
        directory: for the files.
    """
    rules = {alert: rule_of(alert) for alert in subjects}
    at = {alert: _evaluated_s(alert, rule) for alert, rule in rules.items()}
    fires: Firing = {alert: set() for alert in rules}
    for first in range(0, len(worlds), MOST_WORLDS):
        samples = [_samples(each) for each in worlds[first : first + MOST_WORLDS]]
        for until_s in sorted(set(at.values())):  # an hour of a few alerts, not of all of them
            some = {alert: rule for alert, rule in rules.items() if at[alert] == until_s}
            for alert, those in _evaluated(samples, some, {alert: subjects[alert] for alert in some}, until_s, directory).items():
                fires[alert] |= {(first + number, labels) for number, labels in those}
    return fires


def _evaluated(
    samples: Sequence[Sequence[Sample]],
    rules: Mapping[str, dict[str, Any]],
    subjects: Mapping[str, Sequence[str]],
    at_s: int,
    directory: Path,
) -> Firing:
    alerting = [
        {"name": alert, "rules": [{name: rule[name] for name in ("alert", "expr", "for", "labels") if name in rule}]}
        for alert, rule in rules.items()
    ]
    groups = [*_recorded({name for rule in rules.values() for name in _RECORDED.findall(rule["expr"])}), *alerting]
    for group in groups:
        group["interval"] = f"{STEP_S}s"
    needed = {name for group in groups for rule in group["rules"] for name in _NAME.findall(rule["expr"])}
    questions = {_question(alert, labels): alert for alert, labels in subjects.items()}
    series = [series for number, each in enumerate(samples) for series in _series(number, each, needed, at_s)]
    (directory / "rules.json").write_text(json.dumps({"groups": groups}))
    document = {
        "rule_files": ["rules.json"],
        "evaluation_interval": f"{STEP_S}s",
        "group_eval_order": [group["name"] for group in groups],
        "tests": [
            {
                "interval": f"{STEP_S}s",
                "input_series": series,
                "promql_expr_test": [{"expr": each, "eval_time": f"{at_s}s", "exp_samples": []} for each in questions],
            }
        ],
    }
    return _answers(answers(document, directory), questions)


def _recorded(names: Container[str]) -> list[dict[str, Any]]:
    """The groups of recording rules with these names."""
    groups = [group for path in sorted((CONF / "rules").glob("*.yaml")) for group in yaml.safe_load(path.read_text())["groups"]]
    return [group for group in groups if any(rule["record"] in names for rule in group["rules"])]


def _evaluated_s(alert: str, rule: Mapping[str, Any]) -> int:
    held = seconds_of(rule.get("for", "0s")) + HISTORY_S.get(alert, 0)
    return int(held // STEP_S + 2) * STEP_S


def _question(alert: str, labels: Sequence[str]) -> str:
    return f'count by ({", ".join(("job", *labels))}) (ALERTS{{alertname="{alert}",alertstate="firing"}})'


def _samples(world: World) -> list[Sample]:
    return [sample for family in text_string_to_metric_families(world.page) for sample in family.samples]


def _series(number: int, samples: Sequence[Sample], needed: Container[str], until_s: int) -> Iterator[dict[str, str]]:
    steps = until_s // STEP_S
    ages = {_where(sample): NOW - sample.value for sample in samples if sample.name == _LAST_APPEND}
    for sample in samples:
        if sample.name not in needed:
            continue
        labels = ",".join(f"{name}={json.dumps(value)}" for name, value in {**sample.labels, "job": f"w{number}"}.items())
        if sample.name.endswith("_timestamp_seconds"):
            values = f"{round(sample.value - NOW, 3)!r}+{STEP_S}x{steps}"
        elif sample.name.endswith(BEGUN):
            values = f"0 {sample.value!r}+0x{steps - 1}"
        elif sample.name.endswith("_appended_bytes_total") and ages.get(_where(sample), _LATELY_S) < _LATELY_S:
            values = f"{sample.value!r}+100x{steps}"
        else:
            values = f"{sample.value!r}+0x{steps}"
        yield {"series": f"{sample.name}{{{labels}}}", "values": values}


def _where(sample: Sample) -> Labels:
    return frozenset(sample.labels.items())


def _answers(output: str, questions: Mapping[str, str]) -> Firing:
    """What promtool prints of the questions, each of which had another answer than none."""
    found: Firing = {alert: set() for alert in questions.values()}
    alert = ""
    for line in output.splitlines():
        text = line.strip()
        if text.startswith("expr: "):
            alert = questions[json.loads(text.removeprefix("expr: ").rpartition(", time:")[0])]
        elif text.startswith("got:"):
            for each in _RESULT.finditer(text):
                labels = {name: json.loads(f'"{value}"') for name, value in _LABEL.findall(each[1])}
                found[alert].add((int(labels.pop("job")[1:]), frozenset(labels.items())))
        elif text and not text.startswith(_PRINTED):
            raise AssertionError(output[:5_000])
    return found
