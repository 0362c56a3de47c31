"""Looks that hang, fail or come late."""

import threading

import pytest

from streaming.errors import QueryCheckpointError
from streaming.queries import QueryLook, QueryLooks
from tests.limits import SECONDS
from tests.processes import until


def test_a_look_that_hangs_holds_up_no_other_and_counts_when_it_comes() -> None:
    go_on, begun = threading.Event(), list[int]()

    def slow() -> QueryLook:
        begun.append(1)
        go_on.wait(SECONDS)
        return QueryLook(query_id="slow")

    looks = QueryLooks({"slow": slow, "quick": lambda: QueryLook(query_id="quick")})
    found = dict(looks.look(0.0))
    until("the quick one is there", lambda: "quick" in found or found.update(looks.look(0.01)) or "quick" in found)
    until("the slow one has begun", lambda: len(begun) == 1)
    found.update(looks.look(0.01))
    assert "slow" not in found
    assert len(begun) == 1
    go_on.set()
    until("the slow one is there", lambda: found.update(looks.look(0.01)) or "slow" in found)
    assert found["slow"] == QueryLook(query_id="slow")


def test_an_error_is_what_was_found(caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> QueryLook:
        raise QueryCheckpointError("why")

    def breaks() -> QueryLook:
        raise ZeroDivisionError("odd")

    found = QueryLooks({"a": fails, "b": breaks}).look(SECONDS)
    assert [str(found[name]) for name in "ab"] == ["why", "the checkpoint of query b is not understood: odd"]
    assert [record.message for record in caplog.records] == ["the checkpoint of a streaming query is not understood"]
