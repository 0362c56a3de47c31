"""The alert and recording rules of conf/: what they are made of, and what promtool and amtool say of them."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from streaming.definitions.sections import METRICS
from streaming.metrics.thresholds import thresholds
from streaming.settings import Settings
from tests.alerts.rendering import CONF
from tests.tools import require_tool

ALERTS = sorted((CONF / "alerts").glob("*.yaml"))
RULES = sorted((CONF / "rules").glob("*.yaml"))
TESTS = Path(__file__).parent / "rules"
RUNBOOKS = CONF.parent / "docs" / "runbooks"
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation", "When it is harmless"]

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SELECTOR = re.compile(r"(segtail_[a-z_]+)\{([^}]*)\}")
_THRESHOLD = re.compile(r'segtail_config_threshold_([a-z]+)\{[^}]*name="([a-z_]+)"\}')
_LABEL = re.compile(r"([a-z_]+)(?:=~|!~|!=|=)")

ALWAYS = "Watchdog"
"""The alert that never ends."""

each_alert = pytest.mark.parametrize("path", ALERTS, ids=lambda path: path.stem)
each_file = pytest.mark.parametrize("path", [*ALERTS, *RULES], ids=lambda path: path.stem)


def _rules(path: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


def _alert(path: Path) -> dict[str, Any]:
    (rule,) = _rules(path)
    return rule


def _names(path: Path) -> set[str]:
    """Everything in expressions and texts that is the name of a series."""
    words = [
        word for rule in _rules(path) for text in (rule["expr"], *rule.get("annotations", {}).values()) for word in _NAME.findall(text)
    ]
    return {word for word in words if "segtail_" in word}


def _cases(path: Path) -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load((TESTS / path.name).read_text())["tests"]


def _run(program: str, *arguments: object, cwd: Path | None = None) -> str:
    done = subprocess.run([require_tool(program), *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@each_alert
def test_a_file_holds_one_alert_of_its_own_name(path: Path) -> None:
    (group,) = yaml.safe_load(path.read_text())["groups"]
    assert [group["name"], *(rule["alert"] for rule in group["rules"])] == [path.stem, path.stem]
    assert path.read_text().startswith("# "), "it begins with what it means, in words"


@each_alert
def test_an_alert_says_how_bad_it_is_what_it_is_about_and_where_to_read_on(path: Path) -> None:
    rule = _alert(path)
    assert rule["labels"].keys() == {"severity", "scope"}
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["labels"]["scope"] in {"partition", "broker", "cluster", "group", "observer"}
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["runbook_url"] == f"docs/runbooks/{path.stem}.md"


@pytest.mark.parametrize(
    "path", [each for each in ALERTS if each.stem.startswith(("Transaction", "LastStable"))], ids=lambda path: path.stem
)
def test_alerts_about_transactions_outlast_a_restart_within_five_minutes(path: Path) -> None:
    assert _alert(path)["keep_firing_for"] == "10m"


@each_file
def test_what_a_rule_asks_for_is_exported_or_recorded(path: Path) -> None:
    recorded = {rule["record"] for each in RULES for rule in _rules(each)}
    exported = {metric.name for metric in METRICS}
    assert _names(path) - recorded - exported == set()


@each_file
def test_a_selector_names_labels_that_the_metric_has(path: Path) -> None:
    labels = {metric.name: {*metric.labels, "job"} for metric in METRICS}
    for rule in _rules(path):
        for text in (rule["expr"], *rule.get("annotations", {}).values()):
            for name, selector in _SELECTOR.findall(text):
                assert set(_LABEL.findall(selector)) <= labels[name], (name, selector)


@each_file
def test_a_threshold_is_one_that_is_exported_in_that_unit(path: Path) -> None:
    exported = {(threshold.unit, threshold.name) for threshold in thresholds(Settings())}
    assert set(_THRESHOLD.findall(path.read_text())) <= exported
    assert len(_THRESHOLD.findall(path.read_text())) == path.read_text().count("segtail_config_threshold_")


def test_every_option_that_is_described_for_an_alert_is_in_its_rule() -> None:
    described = {
        (found[1], name)
        for name, field in Settings.model_fields.items()
        if (found := re.match(r"The alert (\w+)", field.description or ""))
    }
    assert described == {(path.stem, name) for path in ALERTS for _, name in _THRESHOLD.findall(path.read_text()) if name != "trigger"}


@each_file
def test_rules_aggregate_without_naming_the_labels_that_stay(path: Path) -> None:
    assert [rule["expr"] for rule in _rules(path) if re.search(r"\bby \(", rule["expr"])] == []


@each_alert
def test_a_page_outlasts_five_minutes_without_segtail(path: Path) -> None:
    """A job or an agent that is started again ends no page and sends none twice, but those about segtail's own absence and starts."""
    alert = _alert(path)
    if alert["labels"]["severity"] == "critical" and path.stem not in {"ObserverDown", "ObserverRestarting"}:
        minutes = re.fullmatch(r"(\d+)m", alert.get("keep_firing_for", "0m"))
        assert minutes
        assert int(minutes[1]) > 5


@each_alert
def test_an_alert_behaves_as_its_promtool_test_says(path: Path) -> None:
    _run("promtool", "test", "rules", path.name, cwd=TESTS)


@each_alert
def test_an_alert_is_tried_quiet_firing_ended_and_in_a_harmless_case(path: Path) -> None:
    cases = list(_cases(path))
    if path.stem == ALWAYS:
        assert all(check["exp_alerts"] for case in cases for check in case["alert_rule_test"])
        return
    fires = [bool(check.get("exp_alerts")) for check in cases[0]["alert_rule_test"]]
    assert (fires[0], True in fires, fires[-1]) == (False, True, False)
    harmless = [case for case in cases if case["name"].startswith("harmless: ")]
    assert harmless
    assert all(not case["alert_rule_test"][0].get("exp_alerts") for case in harmless)


@each_alert
def test_an_alert_carries_neither_instance_nor_pod(path: Path) -> None:
    labels = {
        name
        for case in _cases(path)
        for check in case["alert_rule_test"]
        for alert in check.get("exp_alerts", [])
        for name in alert["exp_labels"]
    }
    allowed = {"instance"} if path.stem == "ObserverDown" else set()  # which of them is down
    assert labels & {"instance", "pod"} <= allowed


def test_there_is_no_test_without_its_alert() -> None:
    assert {path.name for path in TESTS.iterdir()} == {path.name for path in ALERTS}


def test_promtool_takes_the_example_configuration_with_all_rules() -> None:
    said = _run("promtool", "check", "config", CONF / "prometheus.yml")
    assert said.count("rules found") == len(ALERTS) + len(RULES)


def test_amtool_takes_the_example_configuration() -> None:
    _run("amtool", "check-config", CONF / "alertmanager.yml")


@pytest.mark.parametrize("path", ALERTS, ids=lambda path: path.stem)
def test_what_is_critical_pages_and_nothing_else_does(path: Path) -> None:
    labels = {"alertname": path.stem, **_alert(path)["labels"]}
    said = _run(
        "amtool", "config", "routes", "test", f"--config.file={CONF / 'alertmanager.yml'}", *(f"{k}={v}" for k, v in labels.items())
    )
    otherwise = "watchdog" if path.stem == ALWAYS else "tickets"
    assert said.strip() == ("pager" if labels["severity"] == "critical" else otherwise)


@each_alert
def test_an_alert_has_a_runbook_with_the_sections_of_all(path: Path) -> None:
    text = (RUNBOOKS / f"{path.stem}.md").read_text()
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    assert parts[0].startswith(f"# {path.stem}\n")
    assert parts[1::2] == SECTIONS
    assert all(part.strip() for part in parts[2::2])


def test_the_index_lists_every_runbook_and_there_is_none_without_an_alert() -> None:
    listed = re.findall(r"\[(\w+)\]\((\w+)\.md\)", (RUNBOOKS / "README.md").read_text())
    names = [path.stem for path in ALERTS]
    assert sorted(listed) == [(name, name) for name in names]
    assert sorted(path.stem for path in RUNBOOKS.glob("*.md") if path.stem != "README") == names


@each_alert
def test_the_index_says_how_bad_an_alert_is(path: Path) -> None:
    index = (RUNBOOKS / "README.md").read_text()
    assert re.search(rf"^\| \[{path.stem}\]\({path.stem}\.md\) \| {_alert(path)['labels']['severity']} \|", index, re.MULTILINE)


@each_alert
def test_metrics_that_a_runbook_names_exist(path: Path) -> None:
    text = (RUNBOOKS / f"{path.stem}.md").read_text()
    exported = {metric.name for metric in METRICS}
    named = {re.sub("_(sum|count|bucket)$", "", name) for name in _NAME.findall(text) if re.fullmatch("segtail_.*[a-z]", name)}
    assert named - exported == set()
