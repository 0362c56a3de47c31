"""What fired, who was reported and what resolved between two moments, as Prometheus and Alertmanager have it."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.alerts.monitoring import Monitoring, Page

Labels = frozenset[tuple[str, str]]
ALWAYS = frozenset({"Watchdog"})
"""Fires from the beginning to the end; what matters is whether it ceases."""

STEP_SECONDS = 0.5
"""How closely Prometheus is asked; rules are evaluated less often."""

_SENT_WITHIN_SECONDS = 90
"""Longer than any group's interval that is divided by four: by then Alertmanager has sent whatever it sends of an alert's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert in a stretch of time: at which steps it began and ceased to fire, and whether it fires at the end."""

    labels: Labels
    began: int
    ended: int
    fires: bool

    @property
    def name(self) -> str:
        return dict(self.labels)["alertname"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Names of alerts that newly reached somebody, that fired and reached nobody, that fire no longer, that came and went and came."""

    fires: frozenset[str]
    muted: frozenset[str]
    resolves: frozenset[str]
    flaps: frozenset[str]


def changed(alerts: Sequence[Alert], reported: Iterable[Labels], reported_before: frozenset[Labels]) -> Changes:
    """What a stretch of time has brought.

    Args:
        reported: alerts that a notification of that time called firing.
        reported_before: those of earlier notifications that did not resolve before that time.
    """
    reached = frozenset(labels for labels in reported if dict(labels)["alertname"] not in ALWAYS)
    alerts = [alert for alert in alerts if alert.name not in ALWAYS or alert.ended]
    still = {alert.name for alert in alerts if alert.fires}
    again = {alert.name for alert in alerts if alert.began and alert.labels in reported_before}
    fires = frozenset(dict(labels)["alertname"] for labels in reached - reported_before) | again
    return Changes(
        fires=fires,
        muted=frozenset(alert.name for alert in alerts if alert.began and alert.labels not in reached | reported_before) - fires,
        resolves=frozenset(alert.name for alert in alerts if alert.ended) - still,
        flaps=frozenset(alert.name for alert in alerts if alert.began > 1),
    )


def unresolved(pages: Iterable[Page], before: frozenset[Labels]) -> frozenset[Labels]:
    """The alerts that a notification called firing, or that were ``before``, and that none called resolved since."""
    found = set(before)
    for page in pages:
        (found.add if page.status == "firing" else found.discard)(_labels(page.labels))
    return frozenset(found)


class Recorder:
    """Looks at a stretch of time that begins with `begin`.

    Args:
        pages: everything that Alertmanager has sent, which grows.
    """

    def __init__(self, monitoring: Monitoring, pages: Sequence[Page]) -> None:
        self._monitoring = monitoring
        self._pages = pages
        self._since = time.time()
        self._seen = 0
        self._reported_before: frozenset[Labels] = frozenset()

    def begin(self) -> None:
        """What was before counts no longer, but for what somebody was reported and what has not resolved since."""
        self._since = time.time()
        waiting = unresolved(self._pages[self._seen :], self._reported_before)
        firing = {alert.labels for alert in self.alerts() if alert.fires}
        self._seen = len(self._pages)
        self._reported_before = waiting & firing

    def changes(self) -> Changes:
        pages = [page for page in self._pages[self._seen :] if page.status == "firing"]
        reported = [_labels(page.labels) for page in pages]
        return changed(self.alerts(), reported, self._reported_before)

    def alerts(self) -> list[Alert]:
        """Those that have fired since the beginning, or were firing then."""
        now = time.time()
        steps = max(int((now - self._since) / STEP_SECONDS), 1)
        start = now - steps * STEP_SECONDS
        return [
            alert_of(_labels(labels), {round((each - start) / STEP_SECONDS) for each in times}, steps)
            for labels, times in self._states("firing", start, now, STEP_SECONDS)
        ]

    def firing(self, within_s: float = 0) -> set[str]:
        """What fires now, or did within so many seconds, but for what always does."""
        return self._named("firing", within_s) - ALWAYS

    def pending(self) -> set[str]:
        """What may fire soon."""
        return self._named("pending")

    def calm(self) -> bool:
        """Whether nothing fires, nothing is about to, and nobody waits to hear that something is over.

        What comes back before that was sent is no news to Alertmanager. Of what is over while it is muted nobody hears.
        """
        return not self.firing() and not self.pending() and (not self._waits() or not self.firing(_SENT_WITHIN_SECONDS))

    def _waits(self) -> bool:
        """Whether somebody has not heard yet of everything that it is over."""
        return any(dict(each)["alertname"] not in ALWAYS for each in unresolved(self._pages, frozenset()))

    def _named(self, state: str, within_s: float = 0) -> set[str]:
        now = time.time()
        return {labels["alertname"] for labels, _ in self._states(state, now - within_s, now, STEP_SECONDS)}

    def _states(self, state: str, start: float, end: float, step: float) -> list[tuple[dict[str, str], list[float]]]:
        return self._monitoring.states(state, start, end, step)


def alert_of(labels: Labels, firing: set[int], last: int) -> Alert:
    """From the steps, 0 to ``last``, at which it fired."""
    return Alert(
        labels=labels,
        began=sum(1 for step in firing if step > 0 and step - 1 not in firing),
        ended=sum(1 for step in firing if step < last and step + 1 not in firing),
        fires=last in firing,
    )


def _labels(labels: dict[str, str]) -> Labels:
    return frozenset(labels.items())
