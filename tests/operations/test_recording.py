"""What is made of the series that Prometheus gives and of the notifications that came."""

import pytest

from tests.alerts.monitoring import Page
from tests.operations.day import differences, strangers
from tests.operations.recording import Alert, Changes, Labels, alert_of, changed, unresolved
from tests.operations.table import Row

NOBODY: frozenset[Labels] = frozenset()
EMPTY = Changes(fires=frozenset(), muted=frozenset(), resolves=frozenset(), flaps=frozenset())


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


def test_one_that_reached_somebody_and_one_that_did_not() -> None:
    heard, unheard = labels("A"), labels("B")
    found = changed([alert_of(heard, {2, 3}, 3), alert_of(unheard, {2, 3}, 3)], [heard], NOBODY)
    assert (found.fires, found.muted, found.resolves, found.flaps) == ({"A"}, {"B"}, set(), set())


def test_one_that_stands_since_before_is_nothing_new_though_it_is_sent_again() -> None:
    waiting = labels("A")
    assert changed([alert_of(waiting, {0, 1, 2}, 2)], [waiting], frozenset({waiting})) == EMPTY


def test_one_that_was_muted_and_is_sent_at_last_fires() -> None:
    freed = labels("A")
    assert changed([alert_of(freed, {0, 1, 2}, 2)], [freed], NOBODY).fires == {"A"}


def test_one_that_stood_and_came_again_fires_and_flaps_only_if_it_came_twice() -> None:
    again = labels("A")
    once = changed([alert_of(again, {0, 2, 3}, 3)], [], frozenset({again}))
    assert (once.fires, once.muted, once.flaps) == ({"A"}, set(), set())
    twice = changed([alert_of(again, {1, 3}, 3)], [again], NOBODY)
    assert (twice.fires, twice.resolves, twice.flaps) == ({"A"}, set(), {"A"})


def test_somebody_waits_until_a_notification_says_that_it_is_over() -> None:
    one, other, before = labels("A", topic="x"), labels("A", topic="y"), labels("B")
    pages = [
        Page(notification=number, status=status, labels=dict(of), annotations={})
        for number, (status, of) in enumerate((("firing", one), ("firing", other), ("resolved", one), ("resolved", other), ("firing", one)))
    ]
    assert unresolved(pages, frozenset({before})) == {before, one}
    assert unresolved(pages[:3], NOBODY) == {other}


def test_a_name_resolves_when_none_of_its_alerts_is_left() -> None:
    one, other = labels("A", topic="x"), labels("A", topic="y")
    assert changed([alert_of(one, {0, 1}, 3), alert_of(other, {0, 1, 2, 3}, 3)], [], frozenset({one, other})).resolves == set()
    assert changed([alert_of(one, {0, 1}, 3), alert_of(other, {0}, 3)], [], frozenset({one, other})).resolves == {"A"}


def test_what_always_fires_is_reported_when_it_ceases() -> None:
    always = labels("Watchdog")
    assert changed([alert_of(always, {1, 2, 3}, 3)], [always], NOBODY) == EMPTY
    assert changed([alert_of(always, {0, 1}, 3)], [], NOBODY).resolves == {"Watchdog"}


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


def test_an_alert_has_a_name() -> None:
    assert Alert(labels=labels("A", topic="x"), began=0, ended=0, fires=True).name == "A"
