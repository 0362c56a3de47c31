"""Committed offsets from jobs and log dirs while groups commit and coordinators move: every answer against those that coordinators gave."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

from tests.broker.coordinator_answers import WINDOW, Counts
from tests.broker.kafka import Kafka
from tests.broker.moving_clients import moving_clients
from tests.broker.moving_groups import BROKER_SETTINGS, MovingGroups, Sizes, await_replicas
from tests.broker.moving_jobs import Comparison, Job, Source, jobs
from tests.processes import until

_SIZES = Sizes(plain=10, transactional=5, classic=3, consumer=3, reset=2, forgetting=2, partitions=16)
AGENTS = ((1,), (1, 2), (1, 2, 3))
_PHASE_SECONDS = 40.0
ANSWERED = 0.99
"""So large a share has to be answered where the log of the coordinator is current."""

Counted = dict[Source, Counts]
"""By who answered, and of how many brokers."""


def run_moving(directory: Path, minutes: float, compared: int, seed: int, show_counts: Callable[[Counted], None]) -> Counted:
    """Three brokers, one of which goes and comes back again and again, until so much was compared, or for so long if that is 0.

    Args:
        show_counts: called now and then with what was counted so far.
    """
    kafka = Kafka(directory / "kafka", nodes=3, settings=BROKER_SETTINGS, heap_mb=384)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        asking, working = (
            stack.enter_context(moving_clients(kafka.bootstrap, directory / f"{name}.log")) for name in ("asking", "working")
        )
        moving = MovingGroups(kafka.bootstrap, asking, working, seed, _SIZES)
        stack.enter_context(moving.running())
        running = stack.enter_context(jobs(kafka, directory, AGENTS))
        until("groups have committed for some time", lambda: moving.answers.given(time.monotonic() - WINDOW, time.monotonic()))
        comparison, end = Comparison(kafka, moving.answers), time.monotonic() + 60 * minutes
        for _ in _phases(kafka):
            _compare(comparison, running)
            show_counts(comparison.counts)
            done = comparison.total.compared >= compared if compared else time.monotonic() > end
            if done:
                break
    return comparison.counts


def problems_of(counted: Counted) -> list[str]:
    """What is wrong with the answers."""
    few = [
        f"{_named(source)}: only {counts.answered:.2%} are answered where the log of the coordinator is current"
        for source, counts in sorted(counted.items())
        if counts.answered < ANSWERED
    ]
    return [each for counts in counted.values() for each in counts.differ] + few


def table_of(counted: Counted) -> Iterator[tuple[str, ...]]:
    """A line for each source, and one for all."""
    for name, counts in [*((_named(source), counts) for source, counts in sorted(counted.items())), ("all", total_of(counted))]:
        doubts = (*counts.absent.most_common(), *counts.elsewhere.most_common())
        why = ", ".join(f"{reason} {count:,}" for reason, count in doubts)
        yield name, f"{counts.compared:,}", f"{len(counts.differ):,}", f"{counts.answered:.2%}", why


def total_of(counted: Counted) -> Counts:
    """Of all sources together."""
    return sum(counted.values(), Counts())


def _named(source: Source) -> str:
    who, brokers = source
    return f"{who}, {brokers} of 3"


def _phases(kafka: Kafka) -> Iterator[None]:
    """All brokers are there; one was ended, cleanly or not; all are there again; and so on."""
    yield
    for victim, end in zip(cycle((2, 3, 1)), cycle((kafka.terminate, kafka.kill)), strict=False):
        end(victim)
        await_replicas(kafka, "the others lead")
        yield
        kafka.start(victim)
        await_replicas(kafka, "all of them are in sync")
        yield


def _compare(comparison: Comparison, running: list[Job]) -> None:
    until_s = time.monotonic() + _PHASE_SECONDS
    while time.monotonic() < until_s:
        comparison.compare(running)
