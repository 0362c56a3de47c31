"""Committed offsets from jobs and log dirs of one, two and three brokers, while groups of every kind commit and coordinators move."""

import time
from contextlib import ExitStack
from pathlib import Path

from tests.broker.coordinator_answers import WINDOW
from tests.broker.kafka import Kafka
from tests.broker.moving_clients import moving_clients
from tests.broker.moving_groups import BROKER_SETTINGS, MovingGroups, await_replicas
from tests.broker.moving_jobs import Comparison, Job, jobs
from tests.processes import until

_SEED = 1
_LOOKED_SECONDS = 10.0
"""Looks that follow one another at once see the same moment: a coordinator that has just moved would count for all of them."""
_COMPARED = 500
_ANSWERED, _ANSWERED_OF_A_PART = 0.9, 0.8
"""Groups that have begun since a high watermark was written are not known to whoever sees some of the brokers, and in a minute in which a
broker ends and starts, many begin. How large the share is over a long time, ``make soak ONLY=groups`` measures."""
_AGENTS = ((1,), (1, 2), (1, 2, 3))


def _look(comparison: Comparison, running: list[Job]) -> None:
    until_s = time.monotonic() + _LOOKED_SECONDS
    while time.monotonic() < until_s:
        comparison.compare(running)


def test_every_answer_is_one_that_the_coordinator_gave_in_the_last_seconds(kafka_jars: None, tmp_path: Path) -> None:
    kafka = Kafka(tmp_path / "kafka", nodes=3, settings=BROKER_SETTINGS, heap_mb=384)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        clients = (moving_clients(kafka.bootstrap, tmp_path / f"{name}.log") for name in ("asking", "working"))
        asking, working = map(stack.enter_context, clients)
        moving = MovingGroups(kafka.bootstrap, asking, working, _SEED)
        stack.enter_context(moving.running())
        running = stack.enter_context(jobs(kafka, tmp_path, _AGENTS))
        until("groups have committed for some time", lambda: moving.answers.given(time.monotonic() - WINDOW, time.monotonic()))
        comparison = Comparison(kafka, moving.answers)
        _look(comparison, running)
        kafka.kill(2)
        await_replicas(kafka, "the others lead")
        _look(comparison, running)
        kafka.start(2)
        await_replicas(kafka, "all of them are in sync")
        _look(comparison, running)
    total = comparison.total
    assert total.differ == []
    assert total.compared > _COMPARED
    for (kind, brokers), counts in comparison.counts.items():
        least = _ANSWERED if brokers == len(kafka.brokers) else _ANSWERED_OF_A_PART
        assert counts.answered >= least, (kind, brokers, counts)
