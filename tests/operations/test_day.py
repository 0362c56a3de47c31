"""A short day of a real cluster: the alerts that fire, are muted and resolve are those of docs/alerts.md."""

from collections.abc import Iterator

import pytest

from tests.alerts.monitoring import PROGRAMS
from tests.broker.archive_training import make_archive
from tests.broker.install import UnavailableError
from tests.operations.cluster import Cluster, cluster
from tests.operations.day import run_together
from tests.operations.events import EVENTS, SHORT
from tests.tools import missing, require_tool

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.long]

FACTOR = 6
"""A minute of an alert is ten seconds here: a machine that does not get to a scrape or to a batch for so long is busier than it may be."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    for program in PROGRAMS:
        require_tool(program)
    try:
        make_archive()
    except UnavailableError as reason:
        missing(str(reason))
    with cluster(tmp_path_factory.mktemp("operations"), FACTOR) as made:
        yield made


def test_what_fires_is_what_the_document_says(running: Cluster) -> None:
    assert run_together(running, {name: EVENTS[name] for name in SHORT}, running.recorder) == []
