"""Three brokers, an agent beside each, a Spark standalone cluster, and the job on it: made once, for all tests of this folder."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.broker.install import UnavailableError, class_path
from tests.broker.kafka import Kafka
from tests.cluster.world import SpreadJob
from tests.tools import missing

_HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # the marks must be there when the other conftest groups by them
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker("broker")


@pytest.fixture(scope="module")
def world(java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpreadJob]:
    try:
        class_path()
    except UnavailableError as reason:
        missing(str(reason))
    directory = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        kafka = Kafka(directory / "kafka", nodes=3)
        stack.callback(kafka.kill)
        kafka.start()
        yield SpreadJob(directory, kafka, java_home, stack)
