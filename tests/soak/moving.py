"""Committed offsets from log dirs while groups commit and coordinators move: every answer against those that the coordinators gave."""

import time
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

from tests.broker.kafka import Kafka
from tests.broker.lab import lab
from tests.broker.moving_groups import WINDOW, Counts, MovingGroups, compare_all
from tests.broker.test_groups_replicated import await_in_sync
from tests.processes import until

_PHASE_SECONDS = 40.0
ANSWERED = 0.99
"""So large a share has to be answered where the log of the coordinator is current."""


def run_moving(directory: Path, minutes: float, seed: int) -> Counts:
    """Three brokers, one of which goes and comes back again and again, so that coordinators move."""
    kafka, counts = Kafka(directory / "kafka", nodes=3, heap_mb=384), Counts()
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        moving = MovingGroups(kafka.bootstrap, stack.enter_context(lab(kafka.bootstrap, directory / "lab.log")), seed)
        stack.enter_context(moving.running())
        until("groups have committed for some time", lambda: moving.answers.given(time.monotonic() - WINDOW, time.monotonic()))
        end = time.monotonic() + 60 * minutes
        for victim in cycle((2, 3, 1)):
            _compare(moving, kafka, counts, end)
            if time.monotonic() > end:
                return counts
            kafka.terminate(victim)
            await_in_sync(kafka, 2, "the others lead")
            _compare(moving, kafka, counts, end)
            kafka.start(victim)
            await_in_sync(kafka, 3, "all of them are in sync")
    return counts


def problems_of(counts: Counts) -> list[str]:
    """What is wrong with the answers."""
    few = counts.answered < ANSWERED
    return counts.differ + ([f"only {counts.answered:.2%} are answered where the log of the coordinator is current"] if few else [])


def _compare(moving: MovingGroups, kafka: Kafka, counts: Counts, end: float) -> None:
    until_s = min(time.monotonic() + _PHASE_SECONDS, end)
    while time.monotonic() < until_s:
        compare_all(moving, kafka, counts)
