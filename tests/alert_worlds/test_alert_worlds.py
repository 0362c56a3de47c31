"""Alerts and judge say the same: over the same worlds, and by the numbers that are written in both."""

import re
from pathlib import Path

import pytest

from streaming.cluster.verdicts.cases import RECENT_MS
from streaming.cluster.verdicts.circumstances import FULL_BYTES, FULL_RATIO, NOT_WRITING_MS
from streaming.cluster.verdicts.cluster_problems import NO_CONTROLLER_MS, STOPPED_FOR_MS
from streaming.cluster.verdicts.conditions import STORM_RATIO
from streaming.cluster.verdicts.group_bounds import DEFAULT_BOUNDS
from streaming.cluster.verdicts.kinds import KINDS
from streaming.cluster.verdicts.observer_problems import LEAST_FREE, SCRUB_WAITS_S
from streaming.cluster.view.observer import FAR_LAG_S
from streaming.kafka.groups.rebalance_log import STORM_PAUSE_MINUTES
from streaming.rules.cleaning import LONG_MS
from tests.alert_worlds.comparing import SUBJECTS, compare
from tests.alert_worlds.group_worlds import group_world
from tests.alert_worlds.prometheus_rules import recorded_rules, rule_of
from tests.alert_worlds.worlds import world
from tests.alerts.shortening import seconds_of
from tests.tables import each_row

REPORTED = [each for each in KINDS if each.alert]
"""The kinds that an alert reports, too."""

GROUP_KINDS = {kind.name for kind in REPORTED if kind.name.startswith("group")}

SEEDS = (*range(40), 45, 74, 81, 84, 92, 112, 122, 152, 202, 232, 243, 2081)
"""Enough for every alert to fire somewhere, and for two agents to read one metadata log, or one log dir.

In 202 one of two agents of a broker is away while the other one is behind; in 2081 a transaction is stuck in the offsets and elsewhere.
"""

GROUP_SEEDS = range(30)

NUMBERS: dict[str, tuple[float, ...]] = {
    "AgentDown": (0.9, 2),  # of a quarter of an hour, and how often it came and went
    "BrokerMetadataStalled": (2 * NO_CONTROLLER_MS / 1000, NO_CONTROLLER_MS / 1000),
    "BrokerNotWriting": (NOT_WRITING_MS / 1000,),
    "BrokerStarting": (0.4, 4),  # of two hours, and how often it began or ended
    "GroupHeldUp": (1200,),  # seconds from a start of the job on
    "GroupRebalanceStorm": (STORM_RATIO, 60 * STORM_PAUSE_MINUTES),
    "GroupOffsetsExpire": (DEFAULT_BOUNDS.expire_within_ms / 1000,),
    "GroupStopped": (1200,),
    "GroupWillLoseData": (300,),  # what may go with the next check is told at once
    "GroupSkippedRecords": (DEFAULT_BOUNDS.lost_lately_ms / 1000,),
    "GroupLostData": (DEFAULT_BOUNDS.lost_lately_ms / 1000,),
    "LogDirFillingUp": (LEAST_FREE, FULL_BYTES, FULL_RATIO, 1800),  # full within half an hour is told at once
    "LogDirOffline": (NOT_WRITING_MS / 1000,),
    "LogCorrupt": (6,),  # minutes of a role that is not known
    "LogUnreadable": (SCRUB_WAITS_S,),
    "ObserverLagging": (6, 0.2),  # of what one moment does not show
    "QuorumLost": (NO_CONTROLLER_MS / 1000, NOT_WRITING_MS / 1000),
    "RetentionOverdue": (2,),  # checks of the broker
    "UncleanElection": (RECENT_MS / 1000,),
    "currency": (FAR_LAG_S, NOT_WRITING_MS / 1000),
}
"""The numbers that something is compared with or divided by, in the expression of each alert and of the recording rules for currency."""

_NUMBER = re.compile(r"(?:[<>]=?|/)\s*(\d+(?:\.\d+)?)\b|(?<![\w.])(\d+) \*")


@pytest.mark.programs
@pytest.mark.slow
def test_an_alert_fires_where_the_judge_finds_a_problem_and_nowhere_else(tmp_path: Path) -> None:
    found = compare([world(seed) for seed in SEEDS], tmp_path)
    assert found.differences == []
    assert {kind.name for kind in REPORTED} - GROUP_KINDS == {*found.agreed}


@pytest.mark.programs
@pytest.mark.slow
def test_an_alert_about_a_group_fires_where_the_judge_finds_a_problem_and_nowhere_else(tmp_path: Path) -> None:
    found = compare([group_world(seed) for seed in GROUP_SEEDS], tmp_path)
    assert found.differences == []
    assert {*found.agreed} >= GROUP_KINDS


@each_row("alert", sorted({kind.alert for kind in REPORTED} | {"currency"}))
def test_the_numbers_of_an_expression_are_those_of_the_judge(alert: str) -> None:
    rules = recorded_rules("instance:segtail_not_current:max") if alert == "currency" else [rule_of(alert)]
    numbers = {float(one or other) for rule in rules for one, other in _NUMBER.findall(rule["expr"])}
    assert numbers - {0.0} == set(map(float, NUMBERS.get(alert, ())))


def test_what_lasts_lasts_as_long_for_an_alert_as_for_the_judge() -> None:
    assert seconds_of(rule_of("BrokerStopped")["for"]) * 1000 == STOPPED_FOR_MS
    assert seconds_of(*set(re.findall(r"offset (\d+h)\)", rule_of("CompactionStalled")["expr"]))) * 1000 == LONG_MS
    (pending,) = re.findall(r"_pending_transactional_commits\[(\d+m)\]", rule_of("GroupHeldUp")["expr"])
    assert seconds_of(pending) * 1000 == DEFAULT_BOUNDS.pending_long_ms


def test_every_kind_has_a_subject() -> None:
    assert set(SUBJECTS) == set(REPORTED)
