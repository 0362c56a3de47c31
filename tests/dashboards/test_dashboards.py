"""The committed dashboards: current, whole, and of metrics that there are."""

import json
import re
from collections.abc import Iterator

from docs.dashboards.generate import render
from docs.dashboards.tables import names
from streaming.common.definitions.sections import METRICS
from tests.dashboards.contract import known, named, samples
from tests.dashboards.panels import DASHBOARDS, FOLDER, Panel, Target, all_panels, read

RUNBOOKS = FOLDER.parents[1] / "docs" / "runbooks"
PANELS = all_panels()


def test_every_dashboard_on_disk_is_generated_and_the_other_way_round() -> None:
    assert set(DASHBOARDS) == set(names())


def test_the_json_is_what_the_generator_writes() -> None:
    assert [name for name in DASHBOARDS if (FOLDER / f"{name}.json").read_text(encoding="utf-8") != render(name)] == []


def says_too_little(panel: Panel) -> list[str]:
    """What a panel does not have that its reader needs."""
    defaults = panel.json["fieldConfig"]["defaults"]
    needed = {
        "title": panel.title,
        "description that ends": panel.json["description"].rstrip().endswith("."),
        "unit": defaults["unit"],
        "thresholds": defaults["thresholds"]["steps"],
        "data source of its page": panel.json["datasource"]["uid"] == "${datasource}",
        "value, or what its label is": panel.json.get("options", {}).get("textMode") != "name"
        or all("{{" in each.legend for each in panel.targets),
        "legend of each line": panel.type not in ("timeseries", "bargauge") or all(target.legend for target in panel.targets),
    }
    return [name for name, has in needed.items() if not has]


def test_a_panel_says_what_it_shows_in_which_unit_from_when_on_it_is_bad_and_what_each_line_is() -> None:
    assert PANELS
    assert {str(panel): lacks for panel in PANELS if (lacks := says_too_little(panel))} == {}


def test_a_number_of_one_title_counts_the_same_on_every_dashboard() -> None:
    counted: dict[str, set[str]] = {}
    for panel in PANELS:
        if panel.type == "stat" and (found := re.match(r"(sum|count|count\(count by \([^)]*\))\(", panel.targets[0].expr)):
            counted.setdefault(panel.title, set()).add(f"{found[1]} {sorted(named(panel.targets[0].expr.partition(' or 0 * ')[0]))}")
    assert {"Groups stopped", "Groups held up", "Will lose data", "Hanging"} <= counted.keys()
    assert {title: ways for title, ways in counted.items() if len(ways) > 1} == {}


def keeps(target: Target, label: str) -> bool:
    kept = re.findall(r"\b(?:by|on) \(([^)]*)\)", target.expr)
    return not kept or any(label in each.split(", ") for each in kept) or "segtail_build_info" in target.expr


def test_a_legend_takes_labels_that_the_query_keeps() -> None:
    taken = [(panel, target, label) for panel, target in queries() for label in re.findall(r"\{\{(\w+)}}", target.legend)]
    assert taken
    assert [(str(panel), label) for panel, target, label in taken if not keeps(target, label)] == []


def test_a_legend_takes_labels_whose_values_nobody_made_up() -> None:
    taken = [(panel, target, re.findall(r"\{\{(\w+)}}", target.legend)) for panel, target in queries()]
    assert [str(panel) for panel, target, labels in taken for label in labels if re.search(rf'"{label}", "[^"$]+"', target.expr)] == []


def test_a_flag_of_a_row_is_yes_or_no_and_never_the_word_for_an_empty_table() -> None:
    flags = [each for panel in PANELS for each in panel.json["fieldConfig"]["overrides"] if each["matcher"]["options"] == "stuck"]
    assert flags
    (texts,) = {json.dumps([of["value"] for of in each["properties"] if of["id"] == "mappings"]) for each in flags}
    (mappings,) = json.loads(texts)
    assert mappings == [
        {"type": "value", "options": {"true": {"text": "yes"}}},
        {"type": "special", "options": {"match": "empty", "result": {"text": "no"}}},
    ]


def test_every_metric_that_a_panel_names_is_defined() -> None:
    assert [str(panel) for panel, target in queries() if not named(target.expr)] == []
    assert [(str(panel), unknown) for panel, target in queries() if (unknown := named(target.expr) - known())] == []


def test_whatever_may_be_wrong_with_a_replica_is_on_a_panel() -> None:
    shown = {name for _, target in queries() for name in named(target.expr)}
    no_fault = {"segtail_replica_truncations_total", "segtail_replica_cleaner_checkpoint_offset"}
    assert {metric.name for metric in METRICS if metric.name.startswith("segtail_replica")} - no_fault <= shown


def test_a_selector_names_labels_that_the_metric_has() -> None:
    labels = {name: {*metric.labels, "job", "instance", "le"} for metric in METRICS for name in samples(metric)}
    selectors = [(str(panel), *found) for panel, target in queries() for found in re.findall(r"(segtail_\w+)\{([^}]*)\}", target.expr)]
    assert selectors
    assert [each for each in selectors if not set(re.findall(r"(\w+)(?:=~|!~|!=|=)", each[2])) <= labels[each[1]]] == []


def overlapping(dashboard: str) -> Iterator[str]:
    """The panels that leave the page or lie on another one."""
    taken: set[tuple[int, int]] = set()
    for panel in read(dashboard)["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        if at["x"] + at["w"] > 24 or cells & taken:
            yield f"{dashboard}: {panel['title']}"
        taken |= cells


def test_panels_lie_side_by_side_and_never_on_another() -> None:
    assert [panel for dashboard in DASHBOARDS for panel in overlapping(dashboard)] == []


def unknown_variables(dashboard: str) -> set[str]:
    """Those of its queries that it does not have, and the data source if it has none."""
    found = read(dashboard)
    variables = {variable["name"] for variable in found["templating"]["list"]}
    expressions = [target["expr"] for panel in found["panels"] for target in panel.get("targets", ())]
    expressions += [variable["query"]["query"] for variable in found["templating"]["list"] if variable["type"] == "query"]
    used = {name for query in expressions for name in re.findall(r"\$(\w+)", query) if not name.startswith("__")}
    return (used | {"datasource"}) - variables


def test_every_variable_of_a_query_is_one_of_the_dashboard() -> None:
    assert {dashboard: unknown for dashboard in DASHBOARDS if (unknown := unknown_variables(dashboard))} == {}


def test_the_cluster_is_chosen_first_and_wherever_one_leads_it_goes_along() -> None:
    for dashboard in DASHBOARDS:
        found = read(dashboard)
        assert [variable["name"] for variable in found["templating"]["list"]][:2] == ["datasource", "job"]
        (chosen,) = (variable for variable in found["templating"]["list"] if variable["name"] == "job")
        assert (chosen["label"], chosen["query"]["query"]) == ("Cluster", "label_values(segtail_build_info, job)")
        assert (chosen["multi"], chosen["includeAll"]) == ((dashboard != "partition",) * 2)
        assert [each["title"] for each in found["panels"] if each["type"] == "row" and "$job" not in each["title"]] == []
        assert all(link["includeVars"] for link in found["links"])
        urls = re.findall(r'"/d/segtail-[^"]+"', json.dumps(found))
        assert [url for url in urls if not re.search(r"var-job=\$\{__(field\.labels|data\.fields)\.job:percentencode}", url)] == []


def test_a_series_with_a_name_that_clusters_share_names_its_cluster_unless_one_is_chosen() -> None:
    shared = re.compile(r"\{\{(broker|topic|partition|group|log_dir|instance)}}")
    several = [panel for panel, _ in queries() if panel.dashboard != "partition"]
    named = {str(panel): target.legend for panel in several for target in panel.targets if shared.search(target.legend)}
    assert named
    assert {panel: legend for panel, legend in named.items() if not legend.endswith(" ({{job}})")} == {}
    short = {"id": "renameByRegex", "options": {"regex": r"^(.*) \(${job:text}\)$", "renamePattern": "$1"}}
    assert [str(panel) for panel in several if str(panel) in named and short not in panel.json["transformations"]] == []


def test_a_join_takes_one_info_series_of_each_key() -> None:
    joins = [(str(panel), target.expr) for panel, target in queries() if "group_left (" in target.expr]
    assert joins
    assert [each for each in joins if not re.search(r"on \(([^)]+)\) group_left \([^)]+\)\s+topk by \(\1\) \(1, ", each[1])] == []


def test_a_row_leads_only_by_what_its_table_has() -> None:
    tables = [panel for panel in all_panels() if panel.type == "table"]
    used = {str(panel): set(re.findall(r"__data\.fields\.(\w+)", json.dumps(panel.json["fieldConfig"]))) for panel in tables}
    assert any("partition" not in labels and "topic" in labels for labels in used.values())
    lacking = {str(p): used[str(p)] for p in tables if not all(label in " ".join(t.expr for t in p.targets) for label in used[str(p)])}
    assert lacking == {}


def test_all_is_one_pattern_however_many_there_are() -> None:
    variables = [(dashboard, variable) for dashboard in DASHBOARDS for variable in read(dashboard)["templating"]["list"]]
    many = [(dashboard, variable) for dashboard, variable in variables if variable.get("includeAll")]
    assert many
    assert [(dashboard, variable["name"]) for dashboard, variable in many if variable["allValue"] != ".*"] == []


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


def test_a_runbook_that_a_panel_links_to_is_there() -> None:
    links = sorted({link["url"] for panel in PANELS for link in panel.json.get("links", ())})
    assert links
    there = {f"${{runbooks}}/{path.name}" for path in RUNBOOKS.iterdir()}
    assert [url for url in links if url not in there] == []


def queries() -> list[tuple[Panel, Target]]:
    """Every query with its panel."""
    return [(panel, target) for panel in PANELS for target in panel.targets]
