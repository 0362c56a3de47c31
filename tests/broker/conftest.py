"""The brokers of these tests: one or three for the module that asks for them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker import rebalancing
from tests.broker.archive_training import make_archive
from tests.broker.install import UnavailableError, spark_kafka_jars
from tests.broker.kafka import CONTROLLER_ID, Kafka
from tests.broker.loss_experiment import BROKER, LOGGERS
from tests.broker.running import running
from tests.tools import missing

_HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # the marks must be there when the other conftest groups by them
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker("broker")


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    """Kafka's jars, fetched where they are not there yet, and the archive with which they start sooner."""
    try:
        make_archive()
    except UnavailableError as reason:
        missing(str(reason))


@pytest.fixture(scope="session")
def connector() -> None:
    """The jars of Spark's own Kafka source."""
    try:
        spark_kafka_jars()
    except UnavailableError as reason:
        missing(str(reason))


@pytest.fixture(scope="session")
def kafka(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """One broker for the tests of several modules: each uses topics and groups of its own and leaves the broker up."""
    deletes_at_once = {"log.flush.start.offset.checkpoint.interval.ms": 1000, "log.initial.task.delay.ms": 500}
    yield from running(Kafka(tmp_path_factory.mktemp("kafka"), settings={**deletes_at_once, **rebalancing.SETTINGS}))


@pytest.fixture(scope="module")
def kafka_alone(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """One broker for the tests of one module, which may end it, or look at all that is there."""
    yield from running(Kafka(tmp_path_factory.mktemp("kafka-alone")))


@pytest.fixture(scope="session")
def kafka_cluster(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Three brokers, every topic replicated on all, for several modules, which may kill some: whoever comes next starts them."""
    yield from running(Kafka(tmp_path_factory.mktemp("kafka-cluster"), nodes=3, settings={"log.retention.hours": 48}))


@pytest.fixture(scope="session")
def kafka_that_deletes(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """One broker that says in its log what retention takes."""
    yield from running(Kafka(tmp_path_factory.mktemp("kafka-that-deletes"), settings=BROKER, loggers=LOGGERS))


@pytest.fixture(scope="session")
def kafka_with_quorum(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Brokers beside a controller of its own: whichever is killed, there is a quorum. Whoever comes next starts those that are down.

    Of three that lose a partition's replicas nobody would be left who hears that nobody leads it.
    """
    settings = {"replica.high.watermark.checkpoint.interval.ms": 500}
    made = Kafka(tmp_path_factory.mktemp("kafka-with-quorum"), 4, settings, controller=True, heap_mb=256)
    try:
        made.start(CONTROLLER_ID)
        made.start(*made.down)
        yield made
    finally:
        made.kill()
