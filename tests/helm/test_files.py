"""Alerts, rules and dashboards come out of the chart as they went in."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands import run_command
from tests.helm.charts import CHART, NAMESPACE, RELEASE, render, run, settings
from tests.tables import each_row

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


def alerts(values: dict[str, object]) -> dict[str, dict[str, Any]]:
    """The alerts of the chart with these values of its monitoring."""
    monitoring = {"prometheusRule": {"enabled": True}} | values
    rendered = render({"monitoring": monitoring}, show="templates/prometheusrules.yaml")
    (found,) = [each for each in rendered if each["metadata"]["name"] == f"{RELEASE}-segtail-alerts"]
    return {rule["alert"]: rule for group in found["spec"]["groups"] for rule in group["rules"]}


def test_single_alerts_can_be_changed_and_left_out() -> None:
    changes = {"GroupStopped": {"for": "1h", "severity": "info"}, "GroupsAbandoned": {"enabled": False}, "AgentDown": {"enabled": True}}
    before = alerts({})
    after = alerts({"prometheusRule": {"enabled": True, "overrides": changes}})

    assert after.keys() == before.keys() - {"GroupsAbandoned"}
    stopped = before["GroupStopped"]
    expected = stopped | {"for": "1h", "labels": stopped["labels"] | {"severity": "info"}}
    assert after == {name: rule for name, rule in before.items() if name != "GroupsAbandoned"} | {"GroupStopped": expected}


@each_row(
    ("urls", "runbook", "more"),
    [
        ({}, "docs/runbooks/AgentDown.md", set()),
        ({"page": "https://segtail.example.org/"}, "https://segtail.example.org/runbooks/AgentDown", {"page"}),
        ({"runbooks": "https://wiki.example.org/k/"}, "https://wiki.example.org/k/AgentDown.md", set()),
        (
            {"page": "https://segtail.example.org", "runbooks": "https://wiki.example.org/k", "grafana": "https://grafana.example.org/"},
            "https://wiki.example.org/k/AgentDown.md",
            {"page", "dashboard"},
        ),
    ],
)
def test_alerts_lead_where_the_exported_ones_do(urls: dict[str, str], runbook: str, more: set[str], tmp_path: Path) -> None:
    options = [part for name, value in urls.items() for part in (f"--{'url' if name == 'page' else name}", value)]
    assert run_command("export", "alerts", tmp_path, "--force", *options).returncode == 0
    exported = [yaml.safe_load(path.read_text())["groups"][0]["rules"][0] for path in tmp_path.iterdir()]
    rendered = alerts({"urls": urls})

    assert rendered == {each["alert"]: each for each in exported}
    annotations = rendered["AgentDown"]["annotations"]
    assert annotations["runbook_url"] == runbook
    assert annotations.keys() == {"summary", "description", "runbook_url"} | more


def test_dashboards_lead_to_the_runbooks_and_the_job_knows_its_page() -> None:
    values = {"monitoring": {"urls": {"page": "https://segtail.example.org/"}, "dashboards": {"enabled": True}}}
    manifests = render(values)
    texts = [text for each in manifests if "dashboard" in each["metadata"]["name"] for text in each["data"].values()]
    folders = [each["query"] for text in texts for each in json.loads(text)["templating"]["list"] if each["name"] == "runbooks"]

    assert set(folders) == {"https://segtail.example.org/runbooks"}
    assert len(folders) == len(list((CHART / "files" / "dashboards").iterdir()))
    assert settings(manifests, "job")["public_url"] == "https://segtail.example.org"
    assert settings(render(), "job")["public_url"] == f"http://{RELEASE}-segtail-job.{NAMESPACE}.svc:9712"
    own = {"monitoring": {"prometheusRule": {"enabled": True}}, "job": {"publicUrl": "https://orders.example.org/"}}
    assert settings(render(own), "job")["public_url"] == "https://orders.example.org"
    assert "orders.example.org" not in str(render(own, show="templates/prometheusrules.yaml")), (
        "alerts of several clusters have no page in common"
    )
    served = render({"job": {"web": {"scheme": "HTTPS", "configSecret": "web", "port": 9000}}})
    assert settings(served, "job")["public_url"] == f"https://{RELEASE}-segtail-job.{NAMESPACE}.svc:9000"
