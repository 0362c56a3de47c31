"""Brokers that are up for as long as the tests of one fixture."""

from collections.abc import Iterator

from tests.broker.kafka import Kafka


def running(kafka: Kafka) -> Iterator[Kafka]:
    """What such a fixture yields from."""
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.kill()
