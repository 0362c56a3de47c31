"""Holds what was sent in a month against what happened in it: what nobody had reason to get, and what somebody did not get."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.month.alertmanager import Notification
from tests.month.happenings import DAY, HOUR, MINUTE, Happening, required
from tests.month.rule_run import Firing

CRITICAL = "critical"
_ALWAYS = "Watchdog"
"""Goes to a receiver of its own, which notices when it stays away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertCount:
    """What was sent of an alert: notifications that named it as firing, those of them that said nothing new of it, subjects of them all.

    ``deserved``: notifications for which something that happened gives reason.
    """

    alert: str
    severity: str
    notifications: int
    repeats: int
    subjects: int
    deserved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``wrong``: criticals without a reason; ``missing``: what was due and not sent, or late; ``needless``: tickets without a reason."""

    counts: Sequence[AlertCount]
    wrong: Sequence[str]
    missing: Sequence[str]
    needless: Sequence[str]
    pages: int
    tickets: int


def judge(notifications: Sequence[Notification], happenings: Sequence[Happening]) -> Verdict:
    """Of all that was sent."""
    sent = [each for each in notifications if any(alert.name != _ALWAYS for alert in each.firing)]
    alerts = {alert for each in sent for alert in each.firing}
    without = sorted((each for each in alerts if not _has_reason(each, happenings)), key=lambda each: (each.name, each.since_s))
    is_page = [any(alert.severity == CRITICAL for alert in each.firing) for each in sent]
    return Verdict(
        counts=[_count(name, severity, sent, happenings) for name, severity in sorted({(each.name, each.severity) for each in alerts})],
        wrong=[_words(each) for each in without if each.severity == CRITICAL],
        missing=[
            f"{happening.name} ({when(happening.at_s)}): {due.alert} as {due.severity} within {_length(due.within_s or 0)}, {words}"
            for happening, due in required(happenings)
            if (words := _missed(happening, due.within_s or 0, due.alert, due.severity, sent))
        ],
        needless=[_words(each) for each in without if each.severity != CRITICAL],
        pages=sum(is_page),
        tickets=len(sent) - sum(is_page),
    )


def when(at_s: float) -> str:
    """A time of the month, for people."""
    day, rest = divmod(int(at_s), DAY)
    return f"day {day + 1}, {rest // HOUR:02}:{rest % HOUR // MINUTE:02}"


def _has_reason(alert: Firing, happenings: Sequence[Happening]) -> bool:
    return any(each.reason_for(alert) is not None for each in happenings)


def _missed(happening: Happening, within_s: float, name: str, severity: str, sent: Sequence[Notification]) -> str:
    """Why what was due does not count as sent; "" if it does."""
    about = [
        (each.at_s, alert)
        for each in sent
        for alert in each.firing
        if alert.name == name and (due := happening.reason_for(alert)) is not None and due.alert == name
    ]
    as_due = [at_s for at_s, alert in about if alert.severity == severity]
    if as_due and min(as_due) <= happening.at_s + within_s:
        return ""
    if as_due:
        return f"sent after {_length(min(as_due) - happening.at_s)}"
    return f"sent as {about[0][1].severity} after {_length(about[0][0] - happening.at_s)}" if about else "not sent"


def _count(name: str, severity: str, sent: Sequence[Notification], happenings: Sequence[Happening]) -> AlertCount:
    def own(each: Notification) -> list[Firing]:
        return [alert for alert in each.firing if (alert.name, alert.severity) == (name, severity)]

    naming = [each for each in sent if own(each)]
    return AlertCount(
        alert=name,
        severity=severity,
        notifications=len(naming),
        repeats=sum(not any(alert.labels in each.new for alert in own(each)) for each in naming),
        subjects=len({alert.labels for each in naming for alert in own(each)}),
        deserved=sum(any(_has_reason(alert, happenings) for alert in own(each)) for each in naming),
    )


def _words(alert: Firing) -> str:
    about = ", ".join(f"{name} {value}" for name, value in sorted(alert.labels) if name not in ("alertname", "severity", "scope", "job"))
    return (
        f"{alert.name} ({alert.severity}) from {when(alert.since_s)} for {_length(alert.until_s - alert.since_s)}: {about or 'the cluster'}"
    )


def _length(seconds: float) -> str:
    minutes = int(seconds // MINUTE)
    return f"{minutes} min" if minutes < 180 else f"{minutes // 60} h"
