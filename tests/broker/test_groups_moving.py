"""Committed offsets from the log dirs of one, two and three brokers, while groups commit and a broker goes and comes back."""

import time
from contextlib import ExitStack
from pathlib import Path

from tests.broker.kafka import Kafka
from tests.broker.lab import lab
from tests.broker.moving_groups import WINDOW, Counts, MovingGroups, compare_all
from tests.broker.test_groups_replicated import await_in_sync
from tests.processes import until

_SEED = 1
_ROUNDS = 3
_COMPARED = 500
_ANSWERED = 0.99


def _look(moving: MovingGroups, kafka: Kafka, counts: Counts) -> None:
    for _ in range(_ROUNDS):
        compare_all(moving, kafka, counts)


def test_every_answer_is_one_that_the_coordinator_gave_in_the_last_seconds(kafka_jars: None, tmp_path: Path) -> None:
    kafka, counts = Kafka(tmp_path / "kafka", nodes=3), Counts()
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        clients = stack.enter_context(lab(kafka.bootstrap, tmp_path / "lab.log"))
        moving = MovingGroups(kafka.bootstrap, clients, _SEED)
        stack.enter_context(moving.running())
        until("groups have committed for some time", lambda: moving.answers.given(time.monotonic() - WINDOW, time.monotonic()))
        _look(moving, kafka, counts)
        kafka.terminate(2)
        await_in_sync(kafka, 2, "the others lead")
        _look(moving, kafka, counts)
        kafka.start(2)
        await_in_sync(kafka, 3, "all of them are in sync")
        _look(moving, kafka, counts)
    assert counts.differ == [], counts
    assert counts.compared > _COMPARED
    assert counts.answered >= _ANSWERED, counts
