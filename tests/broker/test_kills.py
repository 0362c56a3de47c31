"""Kills of every part of a job at random moments while a real broker is written to: the numbers of an undisturbed job and of the broker."""

from pathlib import Path

import pytest

from tests.broker.kills import run_kills
from tests.worlds.services import PARTS

pytestmark = pytest.mark.spark

KILLS, SEED = 8, 5
"""Each part once, and agents between: `make soak` kills a thousand."""


def test_kills_under_load_leave_the_numbers_of_an_undisturbed_run_and_of_the_broker(kafka_jars: None, tmp_path: Path) -> None:
    report = run_kills(tmp_path, KILLS, SEED)
    assert report.problems == ()
    assert set(report.kills) == set(PARTS)
    assert report.scrapes > KILLS
    assert report.records > 0
