"""What is made of the series that Prometheus gives and of the notifications that came."""

import pytest

from tests.alerts.monitoring import Page
from tests.operations.day import differences, strangers
from tests.operations.recording import Changes, Labels, alert_of, changed, unresolved
from tests.operations.table import Row
from tests.tables import each_row

NOBODY: frozenset[Labels] = frozenset()


def labels(name: str, **more: str) -> Labels:
    return frozenset({"alertname": name, **more}.items())


@pytest.mark.parametrize(
    ("firing", "began", "ended", "fires"),
    [
        ({0, 1, 2, 3, 4}, 0, 0, True),
        ({2, 3, 4}, 1, 0, True),
        ({0, 1}, 0, 1, False),
        ({1, 2}, 1, 1, False),
        ({0, 1, 3, 4}, 1, 1, True),
        ({1, 3}, 2, 2, False),
        ({4}, 1, 0, True),
        ({0}, 0, 1, False),
    ],
)
def test_how_often_an_alert_began_and_ended(firing: set[int], began: int, ended: int, fires: bool) -> None:
    alert = alert_of(labels("A"), firing, 4)
    assert (alert.name, alert.began, alert.ended, alert.fires) == ("A", began, ended, fires)


A, B, X, Y, ALWAYS = labels("A"), labels("B"), labels("A", topic="x"), labels("A", topic="y"), labels("Watchdog")


@each_row(
    ("why", "firing", "heard", "before", "expected"),
    [
        ("one reached somebody, and one did not", {A: {2, 3}, B: {2, 3}}, [A], set(), "fires A; muted B"),
        ("one that stands since before is nothing new, though it is sent again", {A: {0, 1, 2, 3}}, [A], {A}, ""),
        ("one that was muted and is sent at last fires", {A: {0, 1, 2, 3}}, [A], set(), "fires A"),
        ("one that stood and came again fires", {A: {0, 2, 3}}, [], {A}, "fires A"),
        ("one that came twice flaps", {A: {1, 3}}, [A], set(), "fires A; flaps A"),
        ("a name does not resolve while one of its alerts fires", {X: {0, 1}, Y: {0, 1, 2, 3}}, [], {X, Y}, ""),
        ("it resolves when none is left", {X: {0, 1}, Y: {0}}, [], {X, Y}, "resolves A"),
        ("what always fires is no news", {ALWAYS: {1, 2, 3}}, [ALWAYS], set(), ""),
        ("until it ceases", {ALWAYS: {0, 1}}, [], set(), "resolves Watchdog"),
    ],
)
def test_what_a_stretch_of_time_has_brought(
    why: str, firing: dict[Labels, set[int]], heard: list[Labels], before: set[Labels], expected: str
) -> None:
    found = changed([alert_of(each, steps, 3) for each, steps in firing.items()], heard, frozenset(before))
    columns = {name: " ".join(sorted(getattr(found, name))) for name in ("fires", "muted", "resolves", "flaps")}
    assert "; ".join(f"{name} {names}" for name, names in columns.items() if names) == expected


def test_somebody_waits_until_a_notification_says_that_it_is_over() -> None:
    one, other, before = labels("A", topic="x"), labels("A", topic="y"), labels("B")
    pages = [
        Page(notification=number, status=status, labels=dict(of), annotations={})
        for number, (status, of) in enumerate((("firing", one), ("firing", other), ("resolved", one), ("resolved", other), ("firing", one)))
    ]
    assert unresolved(pages, frozenset({before})) == {before, one}
    assert unresolved(pages[:3], NOBODY) == {other}


def test_differences_are_reported_both_ways() -> None:
    row = Row(event="e", step="s", fires=frozenset("AB"), muted=frozenset(), resolves=frozenset("C"))
    found = Changes(fires=frozenset("BD"), muted=frozenset("E"), resolves=frozenset("C"), flaps=frozenset("B"))
    assert differences(row, found) == [
        "fires: A is missing",
        "fires: D besides",
        "muted: E besides",
        "B fired, resolved and fired again",
    ]


def test_an_alert_for_the_broker_of_another_host_is_reported() -> None:
    new = alert_of(labels("A", broker="2"), {1, 2}, 2)
    old = alert_of(labels("A", broker="3"), {0, 1, 2}, 2)
    topic = alert_of(labels("B", topic="t"), {1, 2}, 2)
    assert strangers([new, old, topic], (1, 3)) == ["A for broker 2"]
    assert strangers([new, old, topic], (2,)) == []
