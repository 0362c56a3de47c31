"""The steady run of `make soak`, in small: everything is counted, and no file stays open. Memory tells nothing in so short a time."""

from pathlib import Path

import pytest

from tests.soak.sampling import DESCRIPTORS, MEASURES
from tests.soak.services import AGENT
from tests.soak.steady import Plan, run_steady

pytestmark = [pytest.mark.spark, pytest.mark.live]

PLAN = Plan(minutes=0.4, partitions=60, active=20, appends_a_second=100, backlog_bytes=128 << 20, seed=3)


def test_a_short_run_beside_logs_that_roll_come_and_go(tmp_path: Path) -> None:
    report = run_steady(tmp_path, PLAN)
    assert [problem for problem in report.problems if not problem.endswith(" grows")] == []
    assert report.trends.keys() == set(MEASURES)
    assert report.trends[DESCRIPTORS[AGENT]].flat
    assert min(report.written.rolls, report.written.topics_deleted) > 0
