"""Calls to several agents, of which none holds up the others."""

from threading import Event

import pytest

from streaming.cluster.consumers.group_rounds import Calls
from streaming.errors import AgentError
from tests.limits import SECONDS


def raising(error: Exception) -> str:
    raise error


def test_answers_and_errors_are_reported_by_agent(caplog: pytest.LogCaptureFixture) -> None:
    calls: Calls[str] = Calls("test")
    away = AgentError("away")
    asked = {"a1": lambda: "one", "a2": lambda: raising(away), "a3": lambda: raising(ValueError("what is this?"))}
    answers, errors = calls.call(asked, SECONDS)
    assert answers == {"a1": "one"}
    assert errors["a2"] is away
    assert "what is this?" in str(errors["a3"])
    assert "not understood" in caplog.text
    calls.close()


def test_a_slow_agent_is_not_waited_for_and_answers_later() -> None:
    calls: Calls[str] = Calls("test")
    go_on, first = Event(), Event()

    def slow() -> str:
        first.set()
        go_on.wait(SECONDS)
        return "late"

    assert calls.call({"a1": slow}, 0.0) == ({}, {})
    assert first.wait(SECONDS)
    assert not calls.free("a1")
    assert calls.call({"a1": lambda: "never asked"}, 0.0) == ({}, {})
    go_on.set()
    found: dict[str, str] = {}
    while not found:
        found, _ = calls.call({}, 0.0)
    assert found == {"a1": "late"}
    assert calls.free("a1")
    calls.close()
