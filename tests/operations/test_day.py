"""A short day of a real cluster: for each event the alerts that fire, are muted and resolve are those of docs/alerts.md."""

from collections.abc import Iterator

import pytest

from tests.alerts.monitoring import PROGRAMS
from tests.broker.install import UnavailableError, class_path
from tests.operations.cluster import Cluster, cluster
from tests.operations.day import run_event
from tests.operations.events import EVENTS, SHORT
from tests.tools import missing, require_tool

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(1800)]  # the first one fetches the jars and starts it all

FACTOR = 10


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    for program in PROGRAMS:
        require_tool(program)
    try:
        class_path()
    except UnavailableError as reason:
        missing(str(reason))
    with cluster(tmp_path_factory.mktemp("operations"), FACTOR) as made:
        yield made


@pytest.mark.parametrize("event", SHORT)
def test_what_fires_is_what_the_document_says(running: Cluster, event: str) -> None:
    assert run_event(running, event, EVENTS[event]) == []
