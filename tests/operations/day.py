"""Lets events happen, and compares what fires with what docs/alerts.md says of each step, both ways."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tests.operations.cluster import Cluster
from tests.operations.recording import Alert, Changes
from tests.operations.table import Row, of_document
from tests.processes import until

LEAST_MINUTES = 6
"""So long, of minutes that the factor shortens, every step is watched: longer than most alerts wait before they fire."""

PATIENCE_SECONDS = 300.0
"""How long a step may take beyond that, of real seconds: brokers and jobs start in it."""

_LOOK_SECONDS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What was just done, by the words of docs/alerts.md, and for how many minutes (shortened) it is watched at least.

    ``hosts`` are those that alerts may be about: one that fires for another broker is false, whatever its name.
    """

    name: str
    minutes: float = LEAST_MINUTES
    hosts: tuple[int, ...] = ()


Event = Callable[[Cluster], Iterator[Step]]
"""Does something, yields the step that describes it, and goes on when its alerts were compared."""


def run_event(cluster: Cluster, name: str, event: Event) -> list[str]:
    """What differs from the document, in words: nothing if all is as it says."""
    expected = {row.step: row for row in of_document() if row.event == name}
    try:
        until(f"nothing fires before {name}", cluster.calm, PATIENCE_SECONDS)
    except AssertionError:
        return [f"{name}: not begun, for these fire: {', '.join(sorted(cluster.monitoring.firing()))}"]
    cluster.recorder.begin()
    problems, taken = [], []
    for step in event(cluster):
        taken.append(step.name)
        row = expected[step.name]
        found = watch(cluster, row, step.minutes)
        problems += [
            f"{name}: {step.name}: {each}" for each in (*differences(row, found), *strangers(cluster.recorder.alerts(), step.hosts))
        ]
        cluster.recorder.begin()
    if taken != list(expected):
        problems.append(f"{name}: the steps are {taken}, the document has {list(expected)}")
    return problems


def watch(cluster: Cluster, row: Row, minutes: float) -> Changes:
    """Look until all is there that the row names and nothing is about to fire, for a least time, and not for ever."""
    began = time.monotonic()
    least = minutes * 60 / cluster.factor
    while True:
        found = cluster.recorder.changes()
        elapsed = time.monotonic() - began
        if elapsed > least + PATIENCE_SECONDS:
            return found
        if elapsed > least and not differences(row, found) and not cluster.recorder.pending():
            return found
        if elapsed > least + PATIENCE_SECONDS / 2 and (found.fires | found.muted) - row.fires - row.muted:
            return found  # what should not have fired will not go unfired
        time.sleep(_LOOK_SECONDS)


def strangers(alerts: Iterable[Alert], hosts: tuple[int, ...]) -> list[str]:
    """Alerts that began for brokers of other hosts, in words."""
    began = [dict(alert.labels) for alert in alerts if alert.began]
    allowed = {str(host) for host in hosts}
    return [f"{each['alertname']} for broker {each['broker']}" for each in began if each.get("broker", "") not in allowed | {""}]


def differences(row: Row, found: Changes) -> list[str]:
    """In words, both ways."""
    problems = []
    for column in ("fires", "muted", "resolves"):
        wanted: frozenset[str] = getattr(row, column)
        seen: frozenset[str] = getattr(found, column)
        problems += [f"{column}: {name} is missing" for name in sorted(wanted - seen)]
        problems += [f"{column}: {name} besides" for name in sorted(seen - wanted)]
    return problems + [f"{name} fired, resolved and fired again" for name in sorted(found.flaps)]
