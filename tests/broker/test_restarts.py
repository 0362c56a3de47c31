"""Verdicts about restarts of real brokers, made before; and the documented loop, which restarts them all under load."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from streaming.broker.protocol.restart_json import SAFE, UNSAFE
from tests.broker.clients import create_topic, delete_topic, producer
from tests.broker.kafka import Kafka
from tests.broker.restarts import ALL_UP, HANGS, KILLED, KINDS, MOVES, NO_CONTROLLER, ROBUST, Restarts
from tests.docs.documented import blocks
from tests.job_without_spark import WITHOUT_SPARK
from tests.limits import SECONDS
from tests.operations.actions import await_replicated, partitions
from tests.processes import segtail, until
from tests.tools import require_tool


@pytest.fixture
def kafka(kafka_with_quorum: Kafka) -> Kafka:
    """All of them up, everything replicated, and no topic of a test before: one with a single replica lets no loop end."""
    if kafka_with_quorum.down:
        kafka_with_quorum.start(*kafka_with_quorum.down)
    for topic in {topic for topic, _ in partitions(kafka_with_quorum) if not topic.startswith("__")}:
        delete_topic(kafka_with_quorum.bootstrap, topic)
    await_replicated(kafka_with_quorum)
    return kafka_with_quorum


@pytest.mark.parametrize(
    ("kinds", "of", "verdicts"),
    [(KINDS, (KILLED, HANGS), {UNSAFE: 2}), (KINDS, (MOVES,), {UNSAFE: 2}), (ROBUST, (ALL_UP,), {SAFE: 2}), (ROBUST, (NO_CONTROLLER,), {})],
)
def test_what_is_said_before_a_restart_is_what_happens(
    kafka: Kafka, kinds: dict[int, tuple[int, ...]], of: tuple[str, ...], verdicts: dict[str, int]
) -> None:
    with Restarts(kafka, 1, kinds) as restarts:
        outcomes = restarts.run(2, of)
    assert (outcomes.problems, outcomes.compared, outcomes.verdicts) == ([], 2 * sum(verdicts.values()), verdicts)


def test_the_documented_loop_restarts_all_brokers_and_no_producer_is_refused(kafka: Kafka, tmp_path: Path) -> None:
    require_tool("curl")
    create_topic(kafka.bootstrap, "rolling", partitions=6, replicas=3, config={"min.insync.replicas": "2"})
    (loop,) = (text for path, text in blocks("sh") if path.name == "restart-check.md" and text.startswith("for broker"))
    shim = f"restart_broker() {{ touch {tmp_path}/asked-$1; while [ ! -e {tmp_path}/done-$1 ]; do command sleep 0.2; done; }}\n"
    shim += "sleep() { command sleep 5; }\n"
    refused: list[object] = []
    ended = threading.Event()

    def produce() -> None:
        client = producer(kafka.bootstrap, more={"acks": "all", "linger.ms": 0, "retries": 100, "message.timeout.ms": 20_000})
        number = 0
        while not ended.wait(0.02):
            number += 1
            client.produce("rolling", b"x", partition=number % 6, on_delivery=lambda error, _: refused.append(error) if error else None)
            client.poll(0)
        client.flush(SECONDS)

    arguments = ("--log-dirs", ",".join(map(str, kafka.log_dirs)), "--checkpoint", tmp_path / "c", "--listen", "127.0.0.1:0")
    with segtail("run", *arguments, stated=tmp_path / "said", before=WITHOUT_SPARK) as job:
        url = until("it serves", lambda: job.url).removesuffix("/metrics")
        environ = os.environ | {"JOB": url}
        with subprocess.Popen(["sh", "-e", "-c", shim + loop], env=environ, stdout=subprocess.PIPE, text=True) as running:
            writing = threading.Thread(target=produce)
            writing.start()
            try:
                for expected in (1, 2, 3):
                    until(f"{expected} is safe", lambda each=expected: (tmp_path / f"asked-{each}").exists() or running.poll() is not None)
                    assert [key for key, state in partitions(kafka).items() if len(state.isrs) < len(state.replicas)] == []
                    kafka.stop(expected)
                    kafka.start(expected)
                    (tmp_path / f"done-{expected}").touch()
                assert running.wait(SECONDS) == 0
            finally:
                running.kill()
                ended.set()
                writing.join()
        assert job.running()
    assert refused == []
