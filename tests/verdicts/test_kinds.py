"""Problems and alerts say the same: each alert has a kind or a reason, and their words are the same."""

import re
from pathlib import Path
from typing import Any

import yaml

from streaming.broker.protocol.group_json import GroupVerdict
from streaming.broker.protocol.status_json import INFO, SEVERITIES
from streaming.cluster.verdicts.commands import REMEDIES
from streaming.cluster.verdicts.group_bounds import CALM, PROBLEMS, SEVERITY
from streaming.cluster.verdicts.kinds import BLIND, KINDS, NO_KIND, ProblemKind
from streaming.cluster.verdicts.observer_problems import UNKNOWN
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
DOCS, RUNBOOKS = ROOT / "docs" / "groups.md", ROOT / "docs" / "runbooks"
ALERTS = {path.stem: path for path in sorted((ROOT / "conf" / "alerts").glob("*.yaml"))}

each_kind = each_row("kind", [each for each in KINDS if each.alert])


def alert(name: str) -> dict[str, Any]:
    (group,) = yaml.safe_load(ALERTS[name].read_text())["groups"]
    rule: dict[str, Any] = group["rules"][0]
    return rule


def plain(text: str) -> str:
    """A text of an alert with {topic} for its label, and {does} for a choice between two phrases."""
    text = re.sub(r"\{\{ if query .*?\}\}.*?\{\{ else \}\}.*?\{\{ end \}\}", "{does}", text)
    text = re.sub(r"\{\{ reReplaceAll `[^`]+` \"\?\" (\$labels\.[a-z]+) \| reReplaceAll [^}]*\{250\}[^}]* \}\}", r"{{ \1 }}", text)
    text = text.replace('{{ printf "%.0f" $value }}', "{value}")
    return re.sub(r"\{\{ \$(?:labels\.)?([a-z_]+) \}\}", r"{\1}", text)


def texts(template: str) -> set[str]:
    """The texts between which a template chooses."""
    chosen = re.fullmatch(r"\{\{ if eq \$labels\.\w+ \"\w+\" \}\}(.*)\{\{ else \}\}(.*)\{\{ end \}\}", template)
    return {plain(each) for each in (chosen.groups() if chosen else (template,))}


def test_every_alert_has_a_kind_or_a_reason_why_it_has_none() -> None:
    alerts = {each.alert for each in KINDS} - {""}
    assert alerts | NO_KIND.keys() == ALERTS.keys()
    assert not alerts & NO_KIND.keys()
    assert all(NO_KIND.values())


def test_a_verdict_about_groups_with_a_severity_has_its_problem_and_its_alert_and_documents_say_the_same() -> None:
    """What is a warning is a ticket: nobody has to look at a list to be told."""
    described = dict(re.findall(r"^\| `(\w+)` \((\w+)", DOCS.read_text(), re.MULTILINE))
    decided = {verdict.label: SEVERITIES[severity] for verdict, severity in SEVERITY.items() if severity < CALM}
    assert described == decided
    assert {verdict.label for verdict in PROBLEMS} == {name for name, severity in decided.items() if severity != INFO}
    assert all(kind.alert for kind in PROBLEMS.values()), (
        "a warning about a group has an alert in conf/alerts and a runbook, else it is info"
    )
    for_use = next(line for line in DOCS.read_text().splitlines() if line.startswith("| `lost`, "))
    listed = {*re.findall(r"`(\w+)`", for_use)} | {GroupVerdict.WILL_LOSE.label, GroupVerdict.WILL_EXPIRE.label}  # with lines of their own
    assert listed == {verdict.label for verdict in PROBLEMS}
    shown = {alert(kind.alert)["alert"] for kind in PROBLEMS.values()}
    assert shown <= {path.stem for path in RUNBOOKS.glob("*.md")}


def test_names_of_kinds_are_distinct() -> None:
    assert len({each.name for each in KINDS}) == len(KINDS)


def test_the_most_severe_kinds_come_first() -> None:
    places = [SEVERITIES.index(each.severity) for each in KINDS]
    assert places == sorted(places)


@each_kind
def test_a_kind_is_as_severe_as_its_alert(kind: ProblemKind) -> None:
    severity = alert(kind.alert)["labels"]["severity"]
    possible = {*re.findall(r"\}\}(\w+)\{\{", severity)} or {severity}
    assert possible >= {kind.severity} | ({kind.else_severity} - {""})
    assert kind.else_severity or len(possible) == 1 or kind.alert == BLIND.alert


@each_kind
def test_a_problem_begins_with_the_summary_of_its_alert(kind: ProblemKind) -> None:
    summary = alert(kind.alert)["annotations"]["summary"].removeprefix("{{ $labels.job }}: ")  # a page is of one cluster
    assert kind.summary.replace(f"({kind.name})", "({reason})") in texts(summary)


@each_kind
def test_what_a_problem_costs_is_in_the_description_of_its_alert(kind: ProblemKind) -> None:
    assert kind.costs in alert(kind.alert)["annotations"]["description"]


@each_row("sentence", UNKNOWN.values())
def test_what_is_not_seen_is_stated_as_the_alert_does(sentence: str) -> None:
    assert sentence in plain(alert(BLIND.alert)["annotations"]["description"])


@each_row("reason", REMEDIES)
def test_why_retention_is_blocked_and_what_mends_it_is_stated_as_the_alert_does(reason: str) -> None:
    description = alert("RetentionBlocked")["annotations"]["description"]
    if reason == "active_segment":  # which wakes nobody up
        assert reason not in description
    else:
        assert f"{REMEDIES[reason].why} {REMEDIES[reason].mend}" in description


def test_a_name_can_neither_hide_nor_pretend_anything() -> None:
    (held,) = (each for each in KINDS if each.name == "group_held")
    assert held.about(group="a\nb\u202e{topic}", topic="<b>") == (r'Group "a\nb\u202e{topic}" waits for an open transaction in topic <b>')
