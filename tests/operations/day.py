"""Lets events happen, and compares what fires with what docs/alerts.md says of each step, both ways."""

import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from confluent_kafka import KafkaException

from tests.limits import SECONDS
from tests.operations.cluster import Cluster
from tests.operations.recording import Alert, Changes, Recorder
from tests.operations.table import Row, of_document
from tests.processes import until

LEAST_MINUTES = 6
"""So long, of minutes that the factor shortens, every step is watched: longer than most alerts wait before they fire."""

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


_FAILURES = (AssertionError, OSError, subprocess.SubprocessError, KafkaException)
"""What a step may raise that waits for something in vain, or that a tool or a broker refuses."""


class GaveUpError(Exception):
    """A step failed, so the event did not get to its end. ``problems``: what differed until then, and why it ended."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an event: how long it took, and what differed from the document."""

    name: str
    seconds: float
    problems: list[str]


def run_events(make: Callable[[], AbstractContextManager[Cluster]], events: Mapping[str, Event]) -> Iterator[Outcome]:
    """One event after the other. After one that gave up there is a new cluster: what it left undone would be in the way of the next."""
    waiting = list(events)
    while waiting:
        at_first = len(waiting)
        began = time.monotonic()
        try:
            with make() as cluster:
                gave_up = False
                while waiting and not gave_up:
                    name, began = waiting.pop(0), time.monotonic()
                    try:
                        problems = run_event(cluster, name, events[name])
                    except GaveUpError as error:
                        problems, gave_up = error.problems, True
                    yield Outcome(name=name, seconds=time.monotonic() - began, problems=problems)
        except _FAILURES as error:
            if len(waiting) == at_first:  # the cluster was not there: the next one may be
                yield Outcome(name=waiting.pop(0), seconds=time.monotonic() - began, problems=[f"not run: {_words(error)}"])


def run_event(cluster: Cluster, name: str, event: Event) -> list[str]:
    """What differs from the document, in words: nothing if all is as it says."""
    return run_together(cluster, {name: event}, cluster.recorder)


def run_together(cluster: Cluster, events: Mapping[str, Event], recorder: Recorder) -> list[str]:
    """The same of events that happen at the same time, step by step: what fires is what all of their rows say."""
    problems: list[str] = []
    taken: list[tuple[str, str]] = []
    try:
        _take_steps(cluster, recorder, events, problems, taken)
    except _FAILURES as error:
        after = f"after the step {taken[-1][1]!r}" if taken else "before its first step"
        raise GaveUpError([*problems, f"{', '.join(events)}: gave up {after}: {_words(error)}"]) from error
    return problems


def _take_steps(
    cluster: Cluster, recorder: Recorder, events: Mapping[str, Event], problems: list[str], taken: list[tuple[str, str]]
) -> None:
    """Puts what differs into ``problems``, and each step that was taken into ``taken``, as it is so."""
    whole = ", ".join(events)
    expected = {(row.event, row.step): row for row in of_document() if row.event in events}
    until(f"nothing fires before {whole}", recorder.calm, saw=lambda: (recorder.firing(), recorder.pending()))
    recorder.begin()
    for steps in zip(*(event(cluster) for event in events.values()), strict=True):
        taken += [(name, step.name) for name, step in zip(events, steps, strict=True)]
        row = union([expected[key] for key in taken[-len(steps) :]])
        found = watch(recorder, row, max(step.minutes for step in steps) * 60 / cluster.factor)
        hosts = tuple(host for step in steps for host in step.hosts)
        wrong = (*differences(row, found), *strangers(recorder.alerts(), hosts))
        problems += [f"{row.event}: {row.step}: {each}" for each in wrong]
        recorder.begin()
    if sorted(taken) != sorted(expected):
        problems.append(f"{whole}: the steps are {taken}, the document has {list(expected)}")


def union(rows: Sequence[Row]) -> Row:
    """What is said of steps that are taken at the same time."""
    return Row(
        event=", ".join(row.event for row in rows),
        step=", ".join(row.step for row in rows),
        fires=frozenset().union(*(row.fires for row in rows)),
        muted=frozenset().union(*(row.muted for row in rows)),
        resolves=frozenset().union(*(row.resolves for row in rows)),
    )


def watch(recorder: Recorder, row: Row, least: float) -> Changes:
    """Look until all is there that the row names and nothing is about to fire, for some seconds at least: brokers may start in them."""
    began = time.monotonic()
    while True:
        found = recorder.changes()
        elapsed = time.monotonic() - began
        if elapsed > least + SECONDS:
            return found
        if elapsed > least and not differences(row, found) and not recorder.pending():
            return found
        if elapsed > least + SECONDS / 2 and (found.fires | found.muted) - row.fires - row.muted:
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


def _words(error: BaseException) -> str:
    """The first line of what an error says."""
    return f"{type(error).__name__}: {error}".splitlines()[0]
