"""The committed dashboards: current, whole, and of metrics that there are."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from docs.dashboards.generate import render
from docs.dashboards.tables import names
from streaming.definitions.sections import METRICS
from tests.dashboards.contract import known, named, samples
from tests.dashboards.panels import DASHBOARDS, FOLDER, Panel, all_panels, fill, read
from tests.tools import require_tool

RUNBOOKS = FOLDER.parents[1] / "docs" / "runbooks"

each_dashboard = pytest.mark.parametrize("dashboard", DASHBOARDS)
each_panel = pytest.mark.parametrize("panel", all_panels(), ids=str)


def test_every_dashboard_on_disk_is_generated_and_the_other_way_round() -> None:
    assert set(DASHBOARDS) == set(names())


@each_dashboard
def test_the_json_is_what_the_generator_writes(dashboard: str) -> None:
    assert (FOLDER / f"{dashboard}.json").read_text(encoding="utf-8") == render(dashboard)


@each_panel
def test_a_panel_says_what_it_shows_in_which_unit_and_from_when_on_it_is_bad(panel: Panel) -> None:
    defaults = panel.json["fieldConfig"]["defaults"]
    assert panel.title
    assert panel.json["description"].rstrip().endswith(".")
    assert defaults["unit"]
    assert defaults["thresholds"]["steps"]
    assert panel.json["datasource"]["uid"] == "${datasource}"


@each_panel
def test_every_line_of_a_chart_has_a_legend(panel: Panel) -> None:
    if panel.type in ("timeseries", "bargauge"):
        assert all(target.legend for target in panel.targets)


@each_panel
def test_a_legend_takes_labels_that_the_query_keeps(panel: Panel) -> None:
    for target in panel.targets:
        for label in re.findall(r"\{\{(\w+)}}", target.legend):
            kept = re.findall(r"\b(?:by|on) \(([^)]*)\)", target.expr)
            assert not kept or any(label in each.split(", ") for each in kept) or "segtail_build_info" in target.expr


@each_panel
def test_every_metric_that_a_panel_names_is_defined(panel: Panel) -> None:
    for target in panel.targets:
        assert named(target.expr)
        assert named(target.expr) <= known()


def test_whatever_may_be_wrong_with_a_replica_is_on_a_panel() -> None:
    shown = {name for panel in all_panels() for target in panel.targets for name in named(target.expr)}
    no_fault = {"segtail_replica_truncations_total", "segtail_replica_cleaner_checkpoint_offset"}
    assert {metric.name for metric in METRICS if metric.name.startswith("segtail_replica")} - no_fault <= shown


@each_panel
def test_a_selector_names_labels_that_the_metric_has(panel: Panel) -> None:
    labels = {name: {*metric.labels, "job", "instance", "le"} for metric in METRICS for name in samples(metric)}
    selectors = [found for target in panel.targets for found in re.findall(r"(segtail_\w+)\{([^}]*)\}", target.expr)]
    for name, selector in selectors:
        assert set(re.findall(r"(\w+)(?:=~|!~|!=|=)", selector)) <= labels[name], (name, selector)


def test_every_query_is_promql(tmp_path: Path) -> None:
    rules = [
        {"record": "checked", "labels": {"panel": str(panel), "ref": target.ref}, "expr": fill(target.expr, {})}
        for panel in all_panels()
        for target in panel.targets
    ]
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": f"rule {number}", "rules": [rule]} for number, rule in enumerate(rules)]}))
    checked = subprocess.run([require_tool("promtool"), "check", "rules", file], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert f"{len(rules)} rules found" in checked.stdout


@each_dashboard
def test_panels_lie_side_by_side_and_never_on_another(dashboard: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in read(dashboard)["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        taken |= cells


@each_dashboard
def test_every_variable_of_a_query_is_one_of_the_dashboard(dashboard: str) -> None:
    found = read(dashboard)
    variables = {variable["name"] for variable in found["templating"]["list"]}
    assert "datasource" in variables
    queries = [target["expr"] for panel in found["panels"] for target in panel.get("targets", ())]
    queries += [variable["query"]["query"] for variable in found["templating"]["list"] if variable["type"] == "query"]
    used = {name for query in queries for name in re.findall(r"\$(\w+)", query) if not name.startswith("__")}
    assert used <= variables


@each_dashboard
def test_all_is_one_pattern_however_many_there_are(dashboard: str) -> None:
    for variable in read(dashboard)["templating"]["list"]:
        if variable.get("includeAll"):
            assert variable["allValue"] == ".*"


def test_dashboards_link_to_each_other_and_to_the_partition_of_a_row() -> None:
    found = [read(dashboard) for dashboard in DASHBOARDS]
    uids = {each["uid"] for each in found}
    assert len(uids) == len(DASHBOARDS)
    for each in found:
        (link,) = each["links"]
        assert link["type"] == "dashboards"
        assert set(link["tags"]) <= set(each["tags"])
    within = {uid for each in found for uid in re.findall(r"/d/([\w-]+)\?", json.dumps(each))}
    assert within
    assert within <= uids


def runbook_links() -> list[Any]:
    return sorted({link["url"] for panel in all_panels() for link in panel.json.get("links", ())})


@pytest.mark.parametrize("url", runbook_links())
def test_a_runbook_that_a_panel_links_to_is_there(url: str) -> None:
    folder, name = url.split("/")
    assert folder == "${runbooks}"
    assert (RUNBOOKS / name).is_file()
