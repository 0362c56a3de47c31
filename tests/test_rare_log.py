"""A line a second, whatever strangers do."""

import logging

import pytest

from streaming.common.logs import EVERY_SECONDS, RareLog


def test_what_is_left_out_is_in_the_next_line(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    log = RareLog(logging.getLogger("port"), lambda: now[0])
    for number in range(5):
        log.write(logging.WARNING, "refused", {"number": number})
    now[0] += EVERY_SECONDS / 2
    log.write(logging.ERROR, "failed", {}, ValueError("of a stranger"))
    now[0] += EVERY_SECONDS / 2
    log.write(logging.ERROR, "failed", {"number": 7}, ValueError("of another"))
    now[0] += EVERY_SECONDS
    log.write(logging.WARNING, "refused", {"number": 8})
    reported = [(each.getMessage(), vars(each)["number"], vars(each).get("lines_left_out", 0)) for each in caplog.records]
    assert reported == [("refused", 0, 0), ("failed", 7, 5), ("refused", 8, 0)]
    assert log.left_out == 5
    assert "of another" in caplog.text


def test_what_is_not_logged_at_this_level_takes_no_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = RareLog(logging.getLogger("port"), lambda: 1.0)
    log.write(logging.DEBUG, "quiet", {})
    log.write(logging.INFO, "heard", {})
    assert (caplog.messages, log.left_out) == (["heard"], 0)
