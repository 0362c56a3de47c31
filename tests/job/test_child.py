"""What the agent that a job starts is given."""

from datetime import timedelta

import pytest

from streaming.configuration import load
from streaming.job.child import environment
from streaming.settings import Settings


@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings(redact_ids=True, read_rate=1 << 20, beat=timedelta(seconds=5), producers_limit=7)],
    ids=["defaults", "others"],
)
def test_the_job_s_agent_reads_the_settings_of_its_job(settings: Settings) -> None:
    assert load(None, environment(settings), {}) == settings
