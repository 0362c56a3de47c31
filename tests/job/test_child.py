"""The agent that a job starts: what it is given, and how soon it is started again."""

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from streaming.configuration import load
from streaming.job.child import ChildAgent, environment
from streaming.settings import Settings
from tests.builders import log_dir


@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings(redact_ids=True, read_rate=1 << 20, consumer_expiry=timedelta(hours=5), producers_limit=7)],
    ids=["defaults", "others"],
)
def test_the_job_s_agent_reads_the_settings_of_its_job(settings: Settings) -> None:
    assert load(None, environment(settings), {}) == settings


def test_the_job_s_agent_gets_no_setting_that_is_not_its_own_from_the_environment_of_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEGTAIL_JOURNAL", "/elsewhere")
    monkeypatch.setenv("LANG", "C.UTF-8")
    found = environment(Settings())
    assert ("SEGTAIL_JOURNAL" in found, found["LANG"]) == (False, "C.UTF-8")


def test_one_that_ended_often_long_ago_is_started_again_at_once(tmp_path: Path) -> None:
    child = ChildAgent((log_dir(tmp_path).path,), tmp_path / "agent", tmp_path / "address", tmp_path / "token", dict(os.environ))
    child.start()
    now = time.monotonic() + 1.0
    try:
        for ends in range(6):  # the sixth waits for ten seconds
            kill(child)
            child.keep_alive(now)
            assert child.restarts == ends + 1
            now += 10.0
            child.keep_alive(now)
            assert child._process is not None
            assert child._process.poll() is None
        now += 100.0
        before = child._process
        kill(child)
        child.keep_alive(now)
        assert child._process is not before
    finally:
        child.stop()


def kill(child: ChildAgent) -> None:
    assert child._process is not None
    child._process.kill()
    child._process.wait()
