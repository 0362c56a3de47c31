"""What Alertmanager sends of alerts that fire from one time to another, with conf/alertmanager.yml: a model, held against the real one.

It has no clock that could be moved, so a month of it is reckoned: groups, their waits and repeats, what mutes what, and what is said again.
"""

import heapq
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.alerts.rendering import CONF
from tests.alerts.shortening import seconds_of
from tests.month.rule_run import Firing, Labels

_DEFAULTS = {"group_wait": "30s", "group_interval": "5m", "repeat_interval": "4h"}
_MATCHER = re.compile(r'\s*(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*')


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What goes out at once. ``new``: those of ``firing`` that the one before of the same group did not have."""

    at_s: float
    receiver: str
    firing: tuple[Firing, ...]
    new: frozenset[Labels]
    resolved: tuple[Firing, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """One condition of a route or an inhibition."""

    label: str
    sign: str
    value: str

    def holds(self, labels: Mapping[str, str]) -> bool:
        own = labels.get(self.label, "")
        same = re.fullmatch(self.value, own) is not None if "~" in self.sign else own == self.value
        return same is not self.sign.startswith("!")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One without routes below it."""

    number: int
    receiver: str
    group_by: tuple[str, ...]
    wait_s: float
    interval_s: float
    repeat_s: float

    def group_of(self, labels: Mapping[str, str]) -> Labels:
        return frozenset((name, labels[name]) for name in self.group_by if name in labels)


@dataclass(slots=True)
class _Sent:
    at_s: float
    firing: frozenset[Labels]
    resolved: frozenset[Labels]


@dataclass(slots=True)
class _Group:
    route: Route
    alerts: dict[Labels, Firing] = field(default_factory=dict)
    living: bool = False


class Alertmanager:
    """``config``: the file."""

    def __init__(self, config: Path = CONF / "alertmanager.yml") -> None:
        read = yaml.safe_load(config.read_text())
        self._default = read["route"]
        self._inhibitions = [_Inhibition.of(rule) for rule in read.get("inhibit_rules", ())]
        self._says_resolved = {
            receiver["name"]: all(
                each.get("send_resolved", True) for kind, some in receiver.items() if kind.endswith("_configs") for each in some
            )
            for receiver in read["receivers"]
        }

    def routes_of(self, labels: Mapping[str, str]) -> list[Route]:
        """Where an alert goes: the first route that matches, and those after it as long as one says to go on."""
        found = []
        for number, each in enumerate(self._default.get("routes", ())):
            if all(matcher.holds(labels) for matcher in matchers(each["matchers"])):
                found.append(self._route(number, each))
                if not each.get("continue"):
                    break
        return found or [self._route(-1, {})]

    def sent(self, firings: Sequence[Firing], until_s: float) -> list[Notification]:
        """All notifications up to a time, in their order."""
        muting = {id(rule): [each for each in firings if rule.is_source(each)] for rule in self._inhibitions}
        groups: dict[tuple[int, Labels], _Group] = {}
        sent: dict[tuple[int, Labels], _Sent] = {}
        found: list[Notification] = []
        due: list[tuple[float, int, int, Any]] = []
        for number, each in enumerate(sorted(firings, key=lambda each: each.since_s)):
            heapq.heappush(due, (each.since_s, 0, number, each))
        while due and due[0][0] <= until_s:
            at_s, _, number, what = heapq.heappop(due)
            if isinstance(what, Firing):
                for route in self.routes_of(dict(what.labels)):
                    key = (route.number, route.group_of(dict(what.labels)))
                    group = groups.setdefault(key, _Group(route))
                    group.alerts[what.labels] = what
                    if not group.living:
                        group.living = True
                        heapq.heappush(due, (at_s + route.wait_s, 1, len(due) + number, key))
                continue
            group = groups[what]
            now_sent = self._flush(group, sent.get(what), muting, at_s)
            if now_sent is not None:
                found.append(now_sent)
                sent[what] = _Sent(
                    at_s, frozenset(each.labels for each in now_sent.firing), frozenset(each.labels for each in now_sent.resolved)
                )
            group.alerts = {labels: each for labels, each in group.alerts.items() if each.until_s > at_s}
            group.living = bool(group.alerts)
            if group.living:
                heapq.heappush(due, (at_s + group.route.interval_s, 1, number, what))
        return found

    def is_muted(self, alert: Firing, muting: Mapping[int, Sequence[Firing]], at_s: float) -> bool:
        return any(rule.mutes(alert, muting[id(rule)], at_s) for rule in self._inhibitions)

    def _flush(self, group: _Group, before: _Sent | None, muting: Mapping[int, Sequence[Firing]], at_s: float) -> Notification | None:
        """What a group says now, as Alertmanager's stage against duplicates decides it."""
        heard = [each for each in group.alerts.values() if not self.is_muted(each, muting, at_s)]
        firing = [each for each in heard if each.until_s > at_s]
        resolved = [each for each in heard if each.until_s <= at_s]
        now, over = frozenset(each.labels for each in firing), frozenset(each.labels for each in resolved)
        says_resolved = self._says_resolved[group.route.receiver]
        if before is None:
            says = bool(now)
        elif not now <= before.firing:
            says = True
        elif not now:
            says = bool(before.firing)
        elif says_resolved and not over <= before.resolved:
            says = True
        else:
            says = before.at_s < at_s - group.route.repeat_s
        if not says:
            return None
        return Notification(
            at_s=at_s,
            receiver=group.route.receiver,
            firing=tuple(firing),
            new=now - (before.firing if before else frozenset()),
            resolved=tuple(resolved),
        )

    def _route(self, number: int, own: Mapping[str, Any]) -> Route:
        given = {**_DEFAULTS, **self._default, **own}
        return Route(
            number=number,
            receiver=given["receiver"],
            group_by=tuple(given.get("group_by", ())),
            wait_s=seconds_of(given["group_wait"]),
            interval_s=seconds_of(given["group_interval"]),
            repeat_s=seconds_of(given["repeat_interval"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Inhibition:
    source: Sequence[Matcher]
    target: Sequence[Matcher]
    equal: Sequence[str]

    @classmethod
    def of(cls, rule: Mapping[str, Any]) -> "_Inhibition":
        return cls(source=matchers(rule["source_matchers"]), target=matchers(rule["target_matchers"]), equal=tuple(rule.get("equal", ())))

    def is_source(self, alert: Firing) -> bool:
        return all(each.holds(dict(alert.labels)) for each in self.source)

    def mutes(self, alert: Firing, sources: Sequence[Firing], at_s: float) -> bool:
        labels = dict(alert.labels)
        if not all(each.holds(labels) for each in self.target):
            return False
        both = self.is_source(alert)  # what is a source too is not muted by one that could be muted by it
        return any(
            each.since_s <= at_s < each.until_s
            and all(dict(each.labels).get(name, "") == labels.get(name, "") for name in self.equal)
            and not (both and all(matcher.holds(dict(each.labels)) for matcher in self.target))
            for each in sources
        )


def matchers(written: Sequence[str]) -> list[Matcher]:
    """Conditions as the file has them.

    Raises:
        ValueError: one is written in a way that this model does not know.
    """
    return [*_matchers(written)]


def _matchers(written: Sequence[str]) -> Iterator[Matcher]:
    for text in written:
        found = _MATCHER.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no matcher that is known here")
        yield Matcher(label=found[1], sign=found[2], value=found[3])


def by_receiver(notifications: Sequence[Notification]) -> dict[str, list[Notification]]:
    """Notifications by who gets them."""
    found = defaultdict(list)
    for each in notifications:
        found[each.receiver].append(each)
    return dict(found)
