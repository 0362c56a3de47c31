"""The brokers of these tests: one or three for the module that asks for them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.archive_training import make_archive
from tests.broker.install import UnavailableError, spark_kafka_jars
from tests.broker.kafka import Kafka
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


@pytest.fixture(scope="module")
def kafka(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """One broker for the tests of one module: each uses topics of its own and leaves the broker up."""
    yield from running(Kafka(tmp_path_factory.mktemp("kafka")))


@pytest.fixture(scope="module")
def kafka_cluster(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Three brokers, every topic replicated on all: for the tests of one module, which may kill them."""
    yield from running(Kafka(tmp_path_factory.mktemp("kafka-cluster"), nodes=3))
