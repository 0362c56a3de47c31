"""A run that is to end by itself says what it could not read."""

from types import SimpleNamespace
from typing import Any

import pytest

from streaming.broker.protocol.status_messages import UnreadableLog
from streaming.cluster.view.observer import AgentStatus
from streaming.errors import IncompleteError
from streaming.spark.job.job import Job


def job(*logs: UnreadableLog, log_dirs: tuple[Any, ...] = ()) -> Any:
    """As much of a job as knows of them."""
    agent = AgentStatus(name="a1", up=True, log_dirs=log_dirs)
    return SimpleNamespace(_agents=SimpleNamespace(unreadable=list(logs)), observer=SimpleNamespace(agents=(agent,)))


def log(number: int) -> UnreadableLog:
    return UnreadableLog(1, "t", number, "", f"/d1/t-{number}/0.log", "Input/output error")


def test_nothing_is_stated_where_everything_was_read() -> None:
    Job.refuse_unread(job(log_dirs=(SimpleNamespace(log_dir="/d1", up=True),)))


def test_logs_and_log_dirs_are_named() -> None:
    with pytest.raises(IncompleteError) as raised:
        Job.refuse_unread(job(log(0), log(1), log_dirs=(SimpleNamespace(log_dir="/d2", up=False),)))
    assert str(raised.value) == (
        "everything else was processed, but this could not be read: log dir /d2, "
        "t-0 of broker 1 (/d1/t-0/0.log: Input/output error), t-1 of broker 1 (/d1/t-1/0.log: Input/output error)"
    )
    assert raised.value.exit_status != 0


def test_of_very_many_some_are_named_and_the_others_counted() -> None:
    with pytest.raises(IncompleteError, match=r"t-9 of broker 1 \(.*\) and 1,190 more$"):
        Job.refuse_unread(job(*map(log, range(1200))))
