"""Groups that do not go on, each for a reason of its own, and the same groups when the reason is gone."""

import time
from contextlib import ExitStack

from tests.broker.clients import create_topic
from tests.broker.group_consuming import described
from tests.broker.kafka import Kafka
from tests.broker.lab import Lab, Record, lab
from tests.recorded.making import Making
from tests.recorded.worlds.resting import rest

LEAVING = {"left-classic": "classic", "left-consumer": "consumer"}
TOPICS = ("held", "markers", "stopped", "shared", *LEAVING)
"""Each has the name of the group that reads it."""

STOPPED_SECONDS = 2


def make(making: Making) -> None:
    """The states are `standing` and `resolved`. Moments, in Unix milliseconds: before and after a commit, and before members leave."""
    kafka = Kafka(making.directory / "kafka", version=making.version)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        clients = stack.enter_context(lab(kafka.bootstrap, making.directory / "lab.log"))
        for topic in TOPICS:
            create_topic(kafka.bootstrap, topic)
        moments = {"before": now_ms()}
        stand(kafka, clients, moments)
        making.answer("groups", described(kafka), by="kafka-consumer-groups --describe --all-groups --offsets")
        making.answer("commits", clients.commits(), by="Kafka's Java admin client")
        at_rest(kafka, clients)
        making.disk(kafka, "standing")

        clients.ask("end", transaction="the holder", commit=True)
        clients.commit("stopped", "classic", [("stopped", 0, 3)])
        moments["left"] = now_ms()
        for group in LEAVING:
            clients.ask("leave", group=group)
        held = ("held", 0)
        kafka.until(lambda: clients.ends()[held].last_stable == clients.ends()[held].high_watermark == 11, "the marker is written")
        making.answer("clock", moments, by="the clock of the machine")
        at_rest(kafka, clients)
        making.disk(kafka, "resolved")


def stand(kafka: Kafka, clients: Lab, moments: dict[str, int]) -> None:
    """Notes the moment ``after`` the first commit of the group that then stops."""
    clients.produce("stopped", 0, records(5))
    clients.commit("stopped", "classic", [("stopped", 0, 2)])
    moments["after"] = now_ms()

    clients.produce("held", 0, records(5))
    clients.ask("begin", transaction="the holder")
    clients.produce("held", 0, records(2), transaction="the holder")
    clients.produce("held", 0, records(3))
    clients.commit("held", "assign", [("held", 0, 5)])

    with clients.transaction("marks", commit=True):
        clients.produce("markers", 0, records(3), transaction="marks")
    with clients.transaction("marks", commit=False):
        clients.produce("markers", 0, records(2), transaction="marks")
    clients.commit("markers", "assign", [("markers", 0, 3)])

    for group, kind in LEAVING.items():
        clients.produce(group, 0, records(5))
        clients.commit(group, kind, [(group, 0, 2)])

    clients.produce("shared", 0, records(12))
    clients.ask("share", group="shared", topic="shared", answers="aarxa")

    over = moments["after"] + 1000 * STOPPED_SECONDS
    kafka.until(lambda: now_ms() > over, "the group counts as stopped")
    clients.commit("stopped", "classic", [("stopped", 0, 2)])  # as auto-commit repeats it


def at_rest(kafka: Kafka, clients: Lab) -> None:
    """All that is committed is on the disk."""
    rest(kafka, {place: ends.high_watermark for place, ends in clients.ends().items()})


def records(count: int) -> list[list[Record]]:
    """That many batches of one record."""
    return [[(None, 100, None)] for _ in range(count)]


def now_ms() -> int:
    """By the clock that brokers and clients have."""
    return time.time_ns() // 1_000_000
