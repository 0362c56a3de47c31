"""What is held against the happenings of a month: reasons, and what was due."""

from tests.month.alertmanager import Notification
from tests.month.happenings import HOUR, Due, Happening
from tests.month.judging import judge
from tests.month.rule_run import Firing
from tests.month.running import Closely, joined, stretches

DUE = Due(alert="GroupWillLoseData", severity="critical", labels=(("group", "g"),), within_s=1_000)
LOSS = Happening(name="a loss", at_s=HOUR, lasts_s=HOUR, due=[DUE])


def firing(since_s: float = HOUR, until_s: float = 2 * HOUR, severity: str = "critical", group: str = "g", name: str = DUE.alert) -> Firing:
    labels = {"alertname": name, "severity": severity, "group": group}
    return Firing(labels=frozenset(labels.items()), since_s=since_s, until_s=until_s)


def sent(*alerts: Firing, at_s: float = HOUR + 60) -> Notification:
    return Notification(at_s=at_s, receiver="pager", firing=alerts, new=frozenset(each.labels for each in alerts), resolved=())


def test_what_is_due_and_sent_in_time_is_neither_wrong_nor_missing() -> None:
    found = judge([sent(firing())], [LOSS])
    assert (found.wrong, found.missing, found.pages) == ([], [], 1)
    assert [(each.alert, each.notifications, each.deserved) for each in found.counts] == [("GroupWillLoseData", 1, 1)]


def test_a_critical_about_somebody_else_is_wrong_though_its_notification_is_due() -> None:
    found = judge([sent(firing(), firing(group="other"))], [LOSS])
    assert [each.endswith("group other") for each in found.wrong] == [True]
    assert found.missing == []


def test_a_critical_at_another_time_is_wrong_and_what_was_due_is_missing() -> None:
    found = judge([sent(firing(since_s=9 * HOUR), at_s=9 * HOUR)], [LOSS])
    assert (len(found.wrong), [each.rpartition(", ")[2] for each in found.missing]) == (1, ["not sent"])


def test_what_is_due_as_a_critical_is_missing_where_it_is_a_ticket_or_comes_late() -> None:
    ticket = judge([sent(firing(severity="warning"))], [LOSS])
    assert (ticket.wrong, [each.rpartition(", ")[2] for each in ticket.missing]) == ([], ["sent as warning after 1 min"])
    late = judge([sent(firing(), at_s=HOUR + 1_800)], [LOSS])
    assert [each.rpartition(", ")[2] for each in late.missing] == ["sent after 30 min"]


def test_a_critical_is_wrong_where_a_ticket_is_due() -> None:
    found = judge([sent(firing())], [Happening(name="", at_s=HOUR, lasts_s=HOUR, due=[Due(alert=DUE.alert, severity="warning")])])
    assert len(found.wrong) == 1


def test_tickets_without_a_reason_are_named_and_end_nothing() -> None:
    found = judge([sent(firing(severity="warning", group="other"))], [])
    assert (found.wrong, found.missing, len(found.needless)) == ([], [], 1)


def test_what_is_seen_closely_takes_the_place_of_the_rest() -> None:
    stretch = Closely(begins_s=0, since_s=1_000, until_s=2_000)
    assert joined([firing(600, 1_200)], [firing(0, 1_260)], stretch) == [firing(600, 1_260)]
    assert joined([firing(600, 1_200)], [firing(1_100, 1_160)], stretch) == [firing(600, 1_000), firing(1_100, 1_160)]
    assert joined([firing(1_200, 2_600)], [firing(1_500, 2_000)], stretch) == [firing(1_500, 2_600)]


def test_happenings_close_to_each_other_are_one_stretch() -> None:
    each = [Happening(name="", at_s=at_s, lasts_s=600) for at_s in (6_000, 7_000, 30_000)]
    assert [(found.begins_s, found.since_s, found.until_s) for found in stretches(each, 40_000)] == [
        (4_800, 6_000, 7_800),
        (28_800, 30_000, 30_600),
    ]
