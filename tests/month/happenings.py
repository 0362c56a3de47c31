"""What happens in a month: when, what it does to the cluster, and which alerts it deserves."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tests.month.cluster_month import ClusterMonth
from tests.month.rule_run import Firing

Change = Callable[[ClusterMonth, float], None]
"""Of the cluster, at a time."""

MINUTE, HOUR, DAY = 60, 3_600, 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """An alert that a happening gives reason for.

    ``labels``: what it has to be about; a happening of one group gives no reason for an alert about another one. ``within_s``: it has to be
    sent so long after the beginning; None if it may be, and need not.
    """

    alert: str
    severity: str
    labels: tuple[tuple[str, str], ...] = ()
    within_s: float | None = None

    def fits(self, firing: Firing) -> bool:
        """Whether an alert is this one. What is due as critical may be a warning, too, for some of the time."""
        worse = firing.severity == "critical" and self.severity != "critical"
        return firing.name == self.alert and not worse and set(self.labels) <= firing.labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """``lasts_s``: for so long it gives reason for what is due, an hour included in which its alerts end.

    ``close_s``: for so long each minute counts; None for as long as it lasts.
    """

    name: str
    at_s: float
    lasts_s: float
    changes: Sequence[tuple[float, Change]] = field(default=(), repr=False)
    due: Sequence[Due] = ()
    close_s: float | None = None

    @property
    def ends_s(self) -> float:
        return self.at_s + self.lasts_s

    @property
    def watched(self) -> tuple[float, float]:
        """Between these times each minute counts."""
        return self.at_s, self.at_s + (self.lasts_s if self.close_s is None else self.close_s)

    def reason_for(self, firing: Firing) -> Due | None:
        """What of it an alert is."""
        if not self.at_s <= firing.since_s <= self.ends_s:
            return None
        return next((due for due in self.due if due.fits(firing)), None)


def required(happenings: Iterable[Happening]) -> list[tuple[Happening, Due]]:
    """What has to be sent."""
    return [(each, due) for each in happenings for due in each.due if due.within_s is not None]
