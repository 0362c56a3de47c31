"""A few hours of the month that `make month` runs, with fewer groups: what is sent is what was deserved."""

from random import Random

import pytest

from tests.month.alertmanager import Alertmanager
from tests.month.happenings import DAY, HOUR, MINUTE, Happening, required
from tests.month.judging import Verdict, judge
from tests.month.rule_run import alerts
from tests.month.running import run
from tests.month.usual_cluster import cluster
from tests.month.usual_month import (
    agents_die,
    consumers_deployed,
    crash_loop,
    exactly_once_dies,
    host_dies,
    month,
    poison_pill,
    segtail_deployed,
)

pytestmark = [pytest.mark.programs, pytest.mark.xdist_group("month/test_month")]

HOURS, IN_USE = 8, 30


@pytest.fixture(scope="module")
def happenings() -> list[Happening]:
    return [
        consumers_deployed(HOUR, week=0, in_use=IN_USE),
        poison_pill(HOUR, "app-012"),
        crash_loop(4 * HOUR, "app-021"),
        segtail_deployed(2 * HOUR, times=1),
        exactly_once_dies(2 * HOUR, "app-020", "topic-04"),
        host_dies(3 * HOUR),
        agents_die(6 * HOUR),
    ]


@pytest.fixture(scope="module")
def verdict(happenings: list[Happening]) -> Verdict:
    world = cluster(Random(1), in_use=IN_USE, abandoned=30)
    firings = run(world, happenings, HOURS * HOUR)
    return judge(Alertmanager().sent(firings, HOURS * HOUR), happenings)


@pytest.mark.slow
def test_nobody_gets_a_page_for_nothing(verdict: Verdict) -> None:
    assert verdict.wrong == []


@pytest.mark.slow
def test_somebody_gets_what_is_due(verdict: Verdict, happenings: list[Happening]) -> None:
    assert verdict.missing == []
    assert {due.alert for _, due in required(happenings)} <= {each.alert for each in verdict.counts}


def test_what_is_due_in_a_month_are_alerts_that_there_are() -> None:
    """One that was given up is named by nobody: the month would wait for it."""
    assert {due.alert for each in month(Random(0)) for due in each.due} <= alerts().keys()


def test_what_happens_in_a_month_is_over_within_it() -> None:
    assert [each.name for each in month(Random(0)) if each.ends_s > 30 * DAY] == []
    assert all(due.within_s >= MINUTE for _, due in required(month(Random(0))) if due.within_s is not None)
