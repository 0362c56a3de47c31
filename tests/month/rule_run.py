"""The rules of conf/, evaluated by promtool over recorded pages: when each alert fires."""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.alerts.rendering import CONF
from tests.month.samples import Recording
from tests.tools import require_tool

Labels = frozenset[tuple[str, str]]

_NAME = re.compile(r"\b(?:segtail_[a-z_]+|up)\b")
_RESULT = re.compile(r"\{((?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*)\} \S+")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_EVALUATED = ("alert", "record", "expr", "for", "keep_firing_for", "labels")
"""All of a rule but its texts, which take most of the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """An alert that fires between two times, in seconds of the month; ``until_s`` is the end of what was evaluated if it fires on."""

    labels: Labels
    since_s: float
    until_s: float

    @property
    def name(self) -> str:
        return dict(self.labels)["alertname"]

    @property
    def severity(self) -> str:
        return dict(self.labels).get("severity", "")


def rule_groups() -> list[dict[str, Any]]:
    """The groups of recording rules, then those of alerts."""
    paths = (*sorted((CONF / "rules").glob("*.yaml")), *sorted((CONF / "alerts").glob("*.yaml")))
    groups = [group for path in paths for group in yaml.safe_load(path.read_text())["groups"]]
    return [{"name": group["name"], "rules": [_evaluated(rule) for rule in group["rules"]]} for group in groups]


def alerts() -> dict[str, dict[str, Any]]:
    """The rules of alerts, by their names."""
    return {rule["alert"]: rule for group in rule_groups() for rule in group["rules"] if "alert" in rule}


def needed_metrics() -> frozenset[str]:
    """The names of all metrics that a rule asks for, also by a template of a label."""
    return frozenset(name for group in rule_groups() for name in _NAME.findall(json.dumps(group["rules"])))


def firing(recording: Recording, step_s: int, begins_s: float, directory: Path) -> list[Firing]:
    """What fires when, of pages that were scraped and evaluated every so many seconds."""
    groups = [group | {"interval": f"{step_s}s"} for group in rule_groups()]
    (directory / "rules.json").write_text(json.dumps({"groups": groups}))
    fires = 'ALERTS{alertstate="firing"}'
    changes = (
        f'label_replace({fires} unless {fires} offset {step_s}s, "change", "began", "", "")'
        f' or label_replace({fires} offset {step_s}s unless {fires}, "change", "ended", "", "")'
    )
    times = range(0, recording.pages * step_s, step_s)
    test = {
        "rule_files": ["rules.json"],
        "evaluation_interval": f"{step_s}s",
        "group_eval_order": [group["name"] for group in groups],
        "tests": [
            {
                "interval": f"{step_s}s",
                "input_series": list(recording.input_series()),
                "promql_expr_test": [{"expr": changes, "eval_time": f"{each}s", "exp_samples": []} for each in times],
            }
        ],
    }
    (directory / "tests.json").write_text(json.dumps(test))
    command = [str(require_tool("promtool")), "test", "rules", "tests.json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=directory, check=False)
    changed = _changes(done.stdout + done.stderr)
    return list(_joined(changed, begins_s, begins_s + recording.pages * step_s))


def _evaluated(rule: dict[str, Any]) -> dict[str, Any]:
    return {name: rule[name] for name in _EVALUATED if name in rule}


def _changes(output: str) -> Iterator[tuple[float, bool, Labels]]:
    """When what began (True) or ended, of the answers that promtool prints because they are not none."""
    at_s = -1.0
    for line in output.splitlines():
        text = line.strip()
        if text.startswith("expr: "):
            at_s = _seconds(text.rpartition(", time: ")[2].rstrip(","))
        elif text.startswith("got:"):
            for found in _RESULT.finditer(text):
                labels = {name: json.loads(f'"{value}"') for name, value in _LABEL.findall(found[1])}
                began = labels.pop("change") == "began"
                labels = {name: value for name, value in labels.items() if name not in ("__name__", "alertstate")}
                yield at_s, began, frozenset(labels.items())
        elif text and not text.startswith(("Unit Testing:", "FAILED:", "SUCCESS", "exp:")):
            raise AssertionError(output[:5_000])


def _joined(changed: Iterator[tuple[float, bool, Labels]], begins_s: float, ends_s: float) -> Iterator[Firing]:
    since: dict[Labels, float] = {}
    for at_s, began, labels in changed:
        if began:
            since.setdefault(labels, begins_s + at_s)
        elif labels in since:
            yield Firing(labels=labels, since_s=since.pop(labels), until_s=begins_s + at_s)
    for labels, each in since.items():
        yield Firing(labels=labels, since_s=each, until_s=ends_s)


def _seconds(duration: str) -> float:
    """A duration as promtool prints it: 1d2h3m."""
    parts = re.findall(r"(\d+)(ms|[dhmsw])", duration)
    return sum(int(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}[unit] for number, unit in parts)
