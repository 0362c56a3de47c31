"""Alerts, rules and dashboards come out of the chart as they went in."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.helm.charts import CHART, RELEASE, render, run

pytestmark = pytest.mark.programs

EVERYTHING = {"monitoring": {"prometheusRule": {"enabled": True}, "dashboards": {"enabled": True}}}

RULES = """\
groups:
  - name: one-more
    rules:
      - alert: AgentDown
        expr: segtail_agent_up == 0
        for: 5m
        annotations:
          summary: 'Agent {{ $labels.agent }} has been silent for {{ $value | humanizeDuration }}'
"""
DASHBOARD = '{"title": "One", "panels": [{"legendFormat": "{{topic}}", "expr": "a{b=\\"$c\\"}"}]}\n'


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """The chart with a file of each sort more than it has."""
    copy = shutil.copytree(CHART, tmp_path / "chart")
    for name, text in (("alerts/more_of.it.yml", RULES), ("rules/more_of.it.yaml", RULES), ("dashboards/One_More.json", DASHBOARD)):
        path = copy / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return copy


@pytest.mark.parametrize("folder", ["alerts", "rules"])
def test_every_group_of_rules_is_there_and_promtool_takes_them(folder: str, chart: Path, tmp_path: Path) -> None:
    files = sorted((chart / "files" / folder).iterdir())
    (rendered,) = [
        rule
        for rule in render(EVERYTHING, chart=chart, show="templates/prometheusrules.yaml")
        if rule["metadata"]["name"] == f"{RELEASE}-segtail-{folder}"
    ]

    assert rendered["spec"]["groups"] == [group for path in files for group in yaml.safe_load(path.read_text())["groups"]]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump(rendered["spec"]))
    done = run("promtool", "check", "rules", path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(str(rendered)) < 1 << 20, "etcd takes no object of a megabyte"


def test_every_dashboard_becomes_a_config_map_that_grafana_finds(chart: Path) -> None:
    files = {path.name: path.read_text() for path in (chart / "files" / "dashboards").iterdir()}
    rendered = render(EVERYTHING, chart=chart, show="templates/dashboards.yaml")

    held: dict[str, str] = {}
    for each in rendered:
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        held |= each["data"]
        assert len(str(each["data"])) < 1 << 20, "etcd takes no object of a megabyte"
    assert {name: json.loads(text) for name, text in held.items()} == {name: json.loads(text) for name, text in files.items()}


def test_they_are_left_out_unless_asked_for(chart: Path) -> None:
    kinds = {manifest["kind"] for manifest in render(chart=chart)}

    assert "PrometheusRule" not in kinds
    assert not any("dashboard" in manifest["metadata"]["name"] for manifest in render(chart=chart))
