"""Committed offsets, or the ends of logs and what is open in them, from jobs and log dirs while groups commit, logs grow and brokers go:
every answer against those that coordinators and leaders gave.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

from tests.broker.coordinator_answers import WINDOW, Counts
from tests.broker.install import OLDER_VERSION
from tests.broker.kafka import Kafka
from tests.broker.lab import Lab
from tests.broker.moving_clients import moving_clients
from tests.broker.moving_groups import BROKER_SETTINGS, MovingGroups, Sizes, await_replicas
from tests.broker.moving_jobs import Comparison, Job, Source, jobs
from tests.broker.moving_logs import LogComparison, MovingLogs, knows_logs
from tests.processes import until

_SIZES = Sizes(plain=10, transactional=5, classic=3, consumer=3, reset=2, forgetting=2, partitions=16)
AGENTS = ((1,), (1, 2), (1, 2, 3))
_PHASE_SECONDS = 40.0
ANSWERED = 0.99
"""So large a share has to be answered where the log of the coordinator, or of the leader, is current."""

Counted = dict[Source, Counts]
"""By who answered, and of how many brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """A run: how long, or until how much was compared if that is not 0; ``show_counts`` is called now and then with what was counted."""

    version: str
    minutes: float
    compared: int
    seed: int
    show_counts: Callable[[Counted], None]


def run_groups(directory: Path, run: Moving) -> Counted:
    """Groups that commit, on three brokers, one of which goes and comes back again and again."""
    sizes = replace(_SIZES, consumer=0, sharing=0) if run.version == OLDER_VERSION else _SIZES

    def scene(kafka: Kafka, asking: Lab, working: Lab) -> MovingGroups:
        return MovingGroups(kafka.bootstrap, asking, working, run.seed, sizes)

    return _run(directory, run, scene, AGENTS, Comparison)


def run_logs(directory: Path, run: Moving) -> Counted:
    """Logs that grow, likewise."""

    def scene(kafka: Kafka, asking: Lab, working: Lab) -> MovingLogs:
        return MovingLogs(kafka, asking, working, run.seed)

    return _run(directory, run, scene, AGENTS[-1:], LogComparison, knows_logs)


def _run(
    directory: Path,
    run: Moving,
    scene: Callable[[Kafka, Lab, Lab], MovingGroups | MovingLogs],
    agents: Iterable[tuple[int, ...]],
    comparing: type[Comparison],
    knows: Callable[[Job], bool] | None = None,
) -> Counted:
    kafka = Kafka(directory / "kafka", nodes=3, settings=BROKER_SETTINGS, heap_mb=384, version=run.version)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        asking, working = (
            stack.enter_context(moving_clients(kafka.bootstrap, directory / f"{name}.log")) for name in ("asking", "working")
        )
        moving = scene(kafka, asking, working)
        stack.enter_context(moving.running())
        running = stack.enter_context(jobs(kafka, directory, agents, knows))
        until("leaders have answered for some time", lambda: moving.answers.given(time.monotonic() - WINDOW, time.monotonic()))
        comparison, end = comparing(kafka, moving.answers), time.monotonic() + 60 * run.minutes
        for _ in _phases(kafka):
            _compare(comparison, running)
            run.show_counts(comparison.counts)
            done = comparison.total.compared >= run.compared if run.compared else time.monotonic() > end
            if done:
                break
    return comparison.counts


def problems_of(counted: Counted) -> list[str]:
    """What is wrong with the answers."""
    few = [
        f"{_named(source)}: only {counts.answered:.2%} are answered where the log is current"
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
