"""The alert and recording rules of conf/: what they are made of, and what promtool and amtool say of them."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from streaming.cluster.view.observer import thresholds
from streaming.common.definitions.sections import METRICS
from streaming.common.settings import Settings
from tests.alerts.promtool import TESTS, run
from tests.alerts.rendering import CONF
from tests.alerts.shortening import seconds_of
from tests.tables import each_row
from tests.tools import require_tool

ALERTS = sorted((CONF / "alerts").glob("*.yaml"))
RULES = sorted((CONF / "rules").glob("*.yaml"))
FILES = [*ALERTS, *RULES]
RUNBOOKS = CONF.parent / "docs" / "runbooks"
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation", "When it is harmless"]

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SELECTOR = re.compile(r"(segtail_[a-z_]+)\{([^}]*)\}")
_THRESHOLD = re.compile(r'segtail_config_threshold_([a-z]+)\{[^}]*name="([a-z_]+)"\}')
_PARTS = (
    4  # of all alerts: one process for all of them takes too long for `make check`, one for each alert takes longer to start than to test
)
_MINUTES = re.compile(r"(\d+)m")
_LABEL = re.compile(r"([a-z_]+)(?:=~|!~|!=|=)")

ALWAYS = "Watchdog"
"""The alert that never ends."""


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


def test_a_file_holds_one_alert_of_its_own_name_and_begins_with_what_it_means() -> None:
    groups = {path: yaml.safe_load(path.read_text())["groups"] for path in ALERTS}
    names = {path: [(group["name"], *(rule["alert"] for rule in group["rules"])) for group in found] for path, found in groups.items()}
    assert names == {path: [(path.stem, path.stem)] for path in ALERTS}
    assert [path.stem for path in ALERTS if not path.read_text().startswith("# ")] == []


def test_an_alert_says_how_bad_it_is_what_it_is_about_and_where_to_read_on() -> None:
    stated = [(path.stem, rule["labels"], rule["annotations"]) for path in ALERTS for rule in _rules(path)]
    assert stated
    assert [name for name, labels, _ in stated if labels.keys() != {"severity", "scope"}] == []
    assert [path.stem for path in ALERTS if not _severities(path) or not _severities(path) <= {"critical", "warning", "info"}] == []
    assert [name for name, labels, _ in stated if labels["scope"] not in {"partition", "broker", "cluster", "group", "observer"}] == []
    assert [name for name, _, texts in stated if texts.keys() != {"summary", "description", "runbook_url"}] == []
    assert [name for name, _, texts in stated if texts["runbook_url"] != f"docs/runbooks/{name}.md"] == []


def test_the_summary_begins_with_the_name_of_the_cluster() -> None:
    heads = {path.stem: _alert(path)["annotations"]["summary"].partition(": ")[0] for path in ALERTS if path.stem != ALWAYS}
    assert heads.pop("ObserverDown").startswith("{{ with $labels.job }}{{ . }}")  # where no segtail is scraped, there is none
    assert {name: head for name, head in heads.items() if head != "{{ $labels.job }}"} == {}


def test_alerts_about_transactions_outlast_a_restart() -> None:
    of_transactions = [path for path in ALERTS if path.stem.startswith(("Transaction", "LastStable"))]
    kept = {path.stem: _alert(path).get("keep_firing_for") for path in of_transactions}
    assert kept == {path.stem: "4m" for path in of_transactions} | {"LastStableOffsetStalled": "2m"}  # it ends before what mutes it
    assert len(of_transactions) > 3


def test_what_a_rule_asks_for_is_exported_or_recorded() -> None:
    recorded = {rule["record"] for path in RULES for rule in _rules(path)}
    there = recorded | {metric.name for metric in METRICS}
    assert {path.stem: unknown for path in FILES if (unknown := _names(path) - there)} == {}


def test_a_selector_names_labels_that_the_metric_has() -> None:
    labels = {metric.name: {*metric.labels, "job", "instance"} for metric in METRICS}  # the last two are Prometheus' own
    texts = [(path.stem, text) for path in FILES for rule in _rules(path) for text in (rule["expr"], *rule.get("annotations", {}).values())]
    selectors = [(file, *found) for file, text in texts for found in _SELECTOR.findall(text)]
    assert selectors
    assert [each for each in selectors if not set(_LABEL.findall(each[2])) <= labels[each[1]]] == []


def test_a_threshold_is_one_that_is_exported_in_that_unit() -> None:
    exported = {(threshold.unit, threshold.name) for threshold in thresholds(Settings())}
    texts = {path.stem: path.read_text() for path in FILES}
    named = {file: _THRESHOLD.findall(text) for file, text in texts.items()}
    assert {file: unknown for file, found in named.items() if (unknown := set(found) - exported)} == {}
    assert {file: len(found) for file, found in named.items()} == {
        file: text.count("segtail_config_threshold_") for file, text in texts.items()
    }


def test_every_option_that_is_described_for_an_alert_is_in_its_rule() -> None:
    described = {
        (found[1], name)
        for name, field in Settings.model_fields.items()
        if (found := re.match(r"The alert (\w+)", field.description or ""))
    }
    named = {(path.stem, name) for path in ALERTS for _, name in _THRESHOLD.findall(_alert(path)["expr"])}
    assert described == {(alert, name) for alert, name in named if name != "trigger"}


def test_rules_aggregate_without_naming_the_labels_that_stay() -> None:
    assert [(path.stem, rule["expr"]) for path in FILES for rule in _rules(path) if re.search(r"\bby \(", rule["expr"])] == []


def test_what_waits_for_minutes_does_not_begin_again_at_a_failed_scrape() -> None:
    """Of all that is compared, the last value within three minutes counts: a scrape that fails ends no series that is waited for."""
    waiting = [
        path for path in ALERTS if seconds_of(_alert(path).get("for", "0s")) >= 5 * 60 and path.stem != "ObserverDown"
    ]  # which is about scrapes themselves
    assert len(waiting) > 10
    assert {path.stem: found for path in waiting if (found := _instant(_alert(path)["expr"]) - _bridged(_alert(path)["expr"]))} == {
        "LogDirUnreadable": {"segtail_log_dir_capacity_bytes", "segtail_log_dir_checkpoint_timestamp_seconds"}  # what must not be there
    }


def _bridged(expression: str) -> set[str]:
    """The metrics whose last value counts where the scrape failed: what is there only while something is wrong does not outlast it."""
    return set(
        re.findall(r"(segtail_\w+)(?:\{[^}]*\})? or last_over_time\(\1(?:\{[^}]*\})?\[5m\]\) and on \(job, instance\) up == 0", expression)
    )


def _instant(expression: str) -> set[str]:
    """The metrics that are asked for as of now."""
    return set(
        re.findall(
            r"\b(segtail_\w+)\b(?:\{[^}]*\})?(?!(?:\{[^}]*\})?\[)(?![\w{])", expression.replace("instance:segtail_not_current:max", "")
        )
    )


def test_a_page_outlasts_two_minutes_without_segtail_and_ends_within_five() -> None:
    """A job or an agent that is started again ends no page, and what is over is told as over before anybody looks for it in vain.

    Those about segtail's own absence and starts are left out, and so are events, which end with the time that they look back.
    """
    pages = {path.stem: _alert(path).get("keep_firing_for", "0m") for path in ALERTS if "critical" in _severities(path)}
    others = pages.keys() - {"ObserverDown", "ObserverRestarting"}
    assert others
    assert {name: pages[name] for name in others if not ((kept := _MINUTES.fullmatch(pages[name])) and 2 <= int(kept[1]) <= 4)} == {}
    assert {route["group_interval"] for route in _pages(yaml.safe_load((CONF / "alertmanager.yml").read_text())["route"])} == {"30s"}


def _pages(route: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in route["routes"] if each.get("receiver") == "pager"]


@pytest.mark.programs
@pytest.mark.parametrize("part", range(_PARTS))
def test_an_alert_behaves_as_its_promtool_test_says(part: int) -> None:
    run("promtool", "test", "rules", *(path.name for path in ALERTS[part::_PARTS]), cwd=TESTS)


@pytest.mark.programs
@pytest.mark.slow
@pytest.mark.parametrize("hours", sorted((Path(__file__).parent / "happenings").iterdir()), ids=lambda path: path.stem)
def test_nobody_gets_a_page_for_nothing_and_somebody_gets_what_is_due(hours: Path) -> None:
    """All rules together, over what ordinary hours have: what fires in them is what the file names, at the latest when it says."""
    run("promtool", "test", "rules", hours.name, cwd=hours.parent)


def _untried(path: Path) -> list[str]:
    """What the cases of an alert leave out."""
    cases = list(_cases(path))
    if path.stem == ALWAYS:
        return [] if all(check["exp_alerts"] for case in cases for check in case["alert_rule_test"]) else ["firing"]
    fires = [bool(check.get("exp_alerts")) for check in cases[0]["alert_rule_test"]]
    harmless = [case for case in cases if case["name"].startswith("harmless: ")]
    tried = {
        "quiet": not fires[0],
        "firing": True in fires,
        "ended": not fires[-1],
        "harmless": bool(harmless) and all(not case["alert_rule_test"][0].get("exp_alerts") for case in harmless),
    }
    return [what for what, there in tried.items() if not there]


def test_an_alert_is_tried_quiet_firing_ended_and_in_a_harmless_case() -> None:
    assert {path.stem: left_out for path in ALERTS if (left_out := _untried(path))} == {}


def test_an_alert_carries_neither_instance_nor_pod() -> None:
    labels = {
        (path.stem, name)
        for path in ALERTS
        for case in _cases(path)
        for check in case["alert_rule_test"]
        for alert in check.get("exp_alerts", [])
        for name in alert["exp_labels"]
    }
    assert labels
    assert {each for each in labels if each[1] in {"instance", "pod"}} <= {
        (name, "instance") for name in ("ObserverDown", "ObserverRestarting")
    }  # of which of them


def test_there_is_no_test_without_its_alert() -> None:
    assert {path.name for path in TESTS.iterdir()} == {path.name for path in ALERTS}


@pytest.mark.programs
def test_promtool_takes_the_example_configuration_with_all_rules() -> None:
    stated = run("promtool", "check", "config", CONF / "prometheus.yml")
    assert stated.count("rules found") == len(ALERTS) + len(RULES)


@pytest.mark.programs
def test_amtool_takes_the_example_configuration() -> None:
    run("amtool", "check-config", CONF / "alertmanager.yml")


@pytest.mark.programs
@each_row(
    ("labels", "receiver"),
    [
        ("alertname=TransactionHanging severity=critical topic=t", "pager"),
        ("alertname=TransactionHanging severity=warning topic=t", "tickets"),
        ("alertname=LastStableOffsetStalled severity=warning topic=t", "tickets"),
        ("alertname=LastStableOffsetStalled severity=critical topic=t", "pager"),
        ("alertname=GroupStopped severity=critical scope=group group=g", "pager"),
        ("alertname=AgentDown severity=warning", "tickets"),
        ("alertname=TransactionStuck severity=info topic=t", "tickets"),
    ],
)
def test_an_alert_goes_where_its_severity_says_also_where_that_was_overridden(labels: str, receiver: str) -> None:
    stated = run("amtool", "config", "routes", "test", f"--config.file={CONF / 'alertmanager.yml'}", *labels.split())
    assert stated.strip() == receiver


def _severities(path: Path) -> set[str]:
    """Those that an alert may have: a template chooses between them."""
    severity = _alert(path)["labels"]["severity"]
    return set(re.findall(r"\}\}(\w+)\{\{", severity)) if "{{" in severity else {severity}


def _receiver(path: Path, severity: str) -> str:
    """Where Alertmanager sends an alert."""
    labels = {"alertname": path.stem, **_alert(path)["labels"], "severity": severity}
    words = [f"{name}={value}" for name, value in labels.items()]
    return run("amtool", "config", "routes", "test", f"--config.file={CONF / 'alertmanager.yml'}", *words).strip()


@pytest.mark.programs
def test_what_is_critical_pages_and_nothing_else_does() -> None:
    possible = [(path, severity) for path in ALERTS for severity in sorted(_severities(path)) if path.stem != ALWAYS]
    sent = {(path.stem, severity): _receiver(path, severity) for path, severity in possible}
    assert sent == {(path.stem, severity): "pager" if severity == "critical" else "tickets" for path, severity in possible}
    assert _receiver(CONF / "alerts" / f"{ALWAYS}.yaml", "info") == "watchdog"


def _lacks(path: Path) -> list[str]:
    """What an alert's runbook should have."""
    text = (RUNBOOKS / f"{path.stem}.md").read_text()
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    exported = {metric.name for metric in METRICS}
    named = {re.sub("_(sum|count|bucket)$", "", name) for name in _NAME.findall(text) if re.fullmatch("segtail_.*[a-z]", name)}
    has = {
        "its heading": parts[0].startswith(f"# {path.stem}\n"),
        "the sections of all": parts[1::2] == SECTIONS,
        "words in each section": all(part.strip() for part in parts[2::2]),
        f"names of metrics that exist, not {named - exported}": named <= exported,
    }
    return [what for what, there in has.items() if not there]


def test_an_alert_has_a_runbook_with_the_sections_of_all_that_names_metrics_that_exist() -> None:
    assert {path.stem: lacks for path in ALERTS if (lacks := _lacks(path))} == {}


def test_the_index_lists_every_runbook_and_there_is_none_without_an_alert() -> None:
    listed = re.findall(r"\[(\w+)\]\((\w+)\.md\)", (RUNBOOKS / "README.md").read_text())
    names = [path.stem for path in ALERTS]
    assert sorted(listed) == [(name, name) for name in names]
    assert sorted(path.stem for path in RUNBOOKS.glob("*.md") if path.stem != "README") == names


def test_the_index_says_how_bad_an_alert_is() -> None:
    index = (RUNBOOKS / "README.md").read_text()
    rows = dict(re.findall(r"^\| \[(\w+)\]\(\1\.md\) \| ([\w ]+) \|", index, re.MULTILINE))
    assert {name: set(stated.split(" or ")) for name, stated in rows.items()} == {path.stem: _severities(path) for path in ALERTS}


OF_LOSSES = frozenset({"GroupLostData", "GroupWillLoseData"})
"""Alerts whose durations are still as Prometheus writes them."""


def test_durations_in_texts_are_whole_seconds_and_from_a_minute_on_whole_minutes() -> None:
    """Nobody needs to know that something is full in 4h 9m 14s, or was there 4.287s ago."""
    rounded = '| printf "%.0f" | humanizeDuration | reReplaceAll "m [0-9]+s$" "m" }}'
    texts = {path.stem: " ".join(_alert(path)["annotations"].values()) for path in ALERTS}
    found = {name: (text.count("humanizeDuration"), text.count(rounded)) for name, text in texts.items() if "humanizeDuration" in text}
    assert len(found) > 10
    assert {name for name, (all_of_them, of_these) in found.items() if all_of_them != of_these} <= OF_LOSSES


@pytest.mark.programs
def test_a_runbook_that_says_to_silence_an_alert_has_the_command_for_it() -> None:
    """amtool refuses what it does not understand before it asks an Alertmanager."""
    told = {path.stem: path.read_text() for path in RUNBOOKS.glob("*.md") if re.search(r"\b[Ss]ilence (it|the alert)\b", path.read_text())}
    assert len(told) > 4
    for alert, text in told.items():
        (command,) = re.findall(r"`(amtool silence add [^`]*)`", text)
        words = shlex.split(re.sub(r"<(\w+)>", r"a \1", command))
        matched = dict(each.split("=", 1) for each in words[3:] if not each.startswith("--"))
        fired = [
            found["exp_labels"]
            for case in _cases(CONF / "alerts" / f"{alert}.yaml")
            for check in case["alert_rule_test"]
            for found in check.get("exp_alerts", ())
        ]
        assert matched.pop("alertname") == alert
        assert set(matched) & {"broker", "group"} or alert == "ObserverDown"
        assert any(matched.keys() <= labels.keys() for labels in fired), command
        done = subprocess.run(
            [require_tool(words[0]), *words[1:], "--alertmanager.url=http://127.0.0.1:1"], capture_output=True, text=True, check=False
        )
        assert "connection refused" in done.stderr, done.stderr
