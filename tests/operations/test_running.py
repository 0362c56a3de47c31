"""A day goes on after a step that failed: what differed until then is in the table, and the next event has a cluster of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.operations.day import GaveUpError, Outcome, Step, run_event, run_events
from tests.operations.recording import Changes

EVENT, STEPS = "A minute of lag", ("An agent stands still for a minute", "The job stands still for a minute")
"""One that the document has, in which nothing fires."""


class Quiet:
    """A cluster in which nothing fires, or always the same."""

    factor = 10**9

    def __init__(self, fires: str = "") -> None:
        self.recorder = self
        self._changes = Changes(fires=frozenset({fires} - {""}), muted=frozenset(), resolves=frozenset(), flaps=frozenset())

    def calm(self) -> bool:
        return True

    def begin(self) -> None:
        """A new stretch of time."""

    def changes(self) -> Changes:
        return self._changes

    def pending(self) -> set[str]:
        return set()

    def alerts(self) -> list[Any]:
        return []


def whole(_cluster: Any) -> Iterator[Step]:
    yield from (Step(name=each) for each in STEPS)


def clean(_cluster: Any) -> Iterator[Step]:
    yield Step(name="Producers write, transactions commit, segments roll and are deleted")


def broken(_cluster: Any) -> Iterator[Step]:
    yield Step(name=STEPS[0])
    raise AssertionError("not within 120 s: the replicas are moved\nand more")


def test_what_differed_before_a_step_failed_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.operations.day.SECONDS", 0.0)
    with pytest.raises(GaveUpError) as raised:
        run_event(Quiet("BrokerDown"), EVENT, broken)
    assert raised.value.problems == [
        f"{EVENT}: {STEPS[0]}: fires: BrokerDown besides",
        f"{EVENT}: gave up after the step {STEPS[0]!r}: AssertionError: not within 120 s: the replicas are moved",
    ]


def outcomes(*clusters: Any, **events: Any) -> list[Outcome]:
    left = list(clusters)

    @contextmanager
    def make() -> Iterator[Any]:
        made = left.pop(0)
        if isinstance(made, BaseException):
            raise made
        yield made

    found = list(run_events(make, {name.replace("_", " "): event for name, event in events.items()}))
    assert left == []
    return found


def test_an_event_that_gives_up_gives_the_next_a_new_cluster() -> None:
    events = {"A_minute_of_lag": broken, "A_clean_day": clean}
    found = outcomes(Quiet(), Quiet(), **events)
    assert [(each.name, bool(each.problems)) for each in found] == [(EVENT, True), ("A clean day", False)]
    assert "gave up after the step" in found[0].problems[0]


def test_events_that_end_share_a_cluster() -> None:
    assert [(each.name, each.problems) for each in outcomes(Quiet(), A_minute_of_lag=whole)] == [(EVENT, [])]


def test_a_cluster_that_does_not_start_costs_one_event() -> None:
    found = outcomes(AssertionError("nothing fires"), Quiet(), A_clean_day=clean, A_minute_of_lag=whole)
    assert [each.problems for each in found] == [["not run: AssertionError: nothing fires"], []]
