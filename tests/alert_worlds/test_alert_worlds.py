"""Alerts and judge say the same: over the same worlds, and by the numbers that are written in both."""

import re
from pathlib import Path

import pytest

from streaming.cluster.verdicts.cases import RECENT_MS
from streaming.cluster.verdicts.circumstances import NOT_WRITING_MS
from streaming.cluster.verdicts.cluster_problems import NO_CONTROLLER_MS, STOPPED_FOR_MS
from streaming.cluster.verdicts.group_bounds import DEFAULT_BOUNDS
from streaming.cluster.verdicts.kinds import KINDS
from streaming.cluster.verdicts.log_dir_problems import FULL_WITHIN_S, LEAST_FREE, SCRUB_WAITS_S
from streaming.cluster.view.observer import FAR_LAG_S
from streaming.rules.cleaning import LONG_MS
from tests.alert_worlds.comparing import SUBJECTS, compare
from tests.alert_worlds.group_worlds import group_world
from tests.alert_worlds.prometheus_rules import recorded_rules, rule_of, seconds_of
from tests.alert_worlds.worlds import world
from tests.tables import each_row

GROUP_ALERTS = {kind.alert for kind in KINDS if kind.name.startswith("group_")}

SEEDS = (*range(40), 74, 84, 92, 112, 122, 243)
"""Enough for every alert to fire somewhere, and for two agents to read one metadata log, or one log dir."""

GROUP_SEEDS = range(30)

NUMBERS: dict[str, tuple[float, ...]] = {
    "BrokerMetadataStalled": (2 * NO_CONTROLLER_MS / 1000, NO_CONTROLLER_MS / 1000),
    "BrokerNotWriting": (NOT_WRITING_MS / 1000,),
    "GroupHeldUp": (DEFAULT_BOUNDS.held_after_ms / 1000,),
    "GroupWillLoseData": (DEFAULT_BOUNDS.loss_soon_ms / 1000,),
    "LogDirFillingUp": (LEAST_FREE, FULL_WITHIN_S),
    "LogDirOffline": (NOT_WRITING_MS / 1000,),
    "LogCorrupt": (6,),  # minutes of a role that is not known
    "ObserverLagging": (0.2,),  # of an hour, which one moment does not show
    "QuorumLost": (NO_CONTROLLER_MS / 1000, NOT_WRITING_MS / 1000),
    "RetentionOverdue": (2,),  # checks of the broker
    "ScrubUnreadable": (SCRUB_WAITS_S,),
    "UncleanElection": (RECENT_MS / 1000,),
    "currency": (FAR_LAG_S, NOT_WRITING_MS / 1000),
}
"""The numbers that something is compared with or divided by, in the expression of each alert and of the recording rule for currency."""

_NUMBER = re.compile(r"(?:[<>]=?|/)\s*(\d+(?:\.\d+)?)\b|(?<![\w.])(\d+) \*")


@pytest.mark.programs
@pytest.mark.slow
def test_an_alert_fires_where_the_judge_finds_a_problem_and_nowhere_else(tmp_path: Path) -> None:
    found = compare([world(seed) for seed in SEEDS], tmp_path)
    assert found.differences == []
    assert {kind.alert for kind in KINDS} - GROUP_ALERTS == {alert for alert, count in found.agreed.items() if count}


@pytest.mark.programs
@pytest.mark.slow
def test_an_alert_about_a_group_fires_where_the_judge_finds_a_problem_and_nowhere_else(tmp_path: Path) -> None:
    found = compare([group_world(seed) for seed in GROUP_SEEDS], tmp_path)
    assert found.differences == []
    assert {alert for alert, count in found.agreed.items() if count} & GROUP_ALERTS == GROUP_ALERTS


@each_row("alert", sorted({kind.alert for kind in KINDS} | {"currency"}))
def test_the_numbers_of_an_expression_are_those_of_the_judge(alert: str) -> None:
    expression = recorded_rules("broker:segtail_not_current:max")[0]["expr"] if alert == "currency" else rule_of(alert)["expr"]
    numbers = {float(one or other) for one, other in _NUMBER.findall(expression)}
    assert numbers - {0.0} == set(map(float, NUMBERS.get(alert, ())))


def test_what_lasts_lasts_as_long_for_an_alert_as_for_the_judge() -> None:
    assert seconds_of(rule_of("BrokerStopped")["for"]) * 1000 == STOPPED_FOR_MS
    assert seconds_of(*set(re.findall(r"offset (\d+h)\)", rule_of("CompactionStalled")["expr"]))) * 1000 == LONG_MS
    assert seconds_of(*re.findall(r"\[(\d+m)\]", rule_of("GroupPendingCommits")["expr"])) * 1000 == DEFAULT_BOUNDS.pending_long_ms
    (lately,) = set(re.findall(r"\[(\d+m)\]", rule_of("GroupLostData")["expr"]))
    assert seconds_of(lately) * 1000 == DEFAULT_BOUNDS.lost_lately_ms


def test_every_kind_has_a_subject() -> None:
    assert set(SUBJECTS) == set(KINDS)
