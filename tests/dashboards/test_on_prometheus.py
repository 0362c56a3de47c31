"""Every panel's queries on a real Prometheus, with few partitions and with many."""

from collections.abc import Iterator

import pytest

from streaming.common.definitions.sections import METRICS
from tests.dashboards.contract import samples
from tests.dashboards.history import END, HANGING, SMALL, TOPICS, Cluster
from tests.dashboards.panels import DASHBOARDS, Panel, panels, read
from tests.dashboards.prometheus import Prometheus, answer, serving
from tests.tools import require_tool

LARGE = Cluster(topics=TOPICS | {f"topic-{number}": 20 for number in range(50)}, brokers=30, seconds=900, step=60)
"""Whatever grows with partitions, topics or brokers shows here."""

MOST = {"timeseries": 12, "bargauge": 20, "stat": 1, "table": 100}
"""So many series of a panel can still be read."""

pytestmark = [pytest.mark.programs, pytest.mark.xdist_group("dashboards/test_on_prometheus")]  # one process starts it, not each


@pytest.fixture(scope="module", params=[SMALL, pytest.param(LARGE, marks=pytest.mark.slow)], ids=["28 partitions", "1,028 partitions"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    found: Cluster = request.param
    return found


@pytest.fixture(scope="module")
def prometheus(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    programs = require_tool("prometheus"), require_tool("promtool")
    with serving(programs, cluster, tmp_path_factory.mktemp("prometheus")) as found:
        yield found


def values(panel: Panel) -> dict[str, str]:
    """What a user has chosen: everything, but for the dashboard of one partition."""
    if panel.dashboard != "partition":
        return {}
    topic, partition = HANGING
    return {"topic": topic, "partition": str(partition)}


def wrong(prometheus: Prometheus, cluster: Cluster, panel: Panel) -> str:
    """What a panel's reader would miss: an answer, or the overview."""
    found = [
        answer(prometheus, target, values(panel), end=END, seconds=cluster.seconds, step=max(60, cluster.step)) for target in panel.targets
    ]
    empty = [target.expr for target, series in zip(panel.targets, found, strict=True) if not series]
    if empty:
        return f"empty: {empty}"
    count = sum(map(len, found))
    return f"{count} series" if count > MOST[panel.type] else ""


@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_no_query_is_empty_and_no_panel_has_more_series_than_can_be_read(prometheus: Prometheus, cluster: Cluster, dashboard: str) -> None:
    assert {panel.title: reported for panel in panels(dashboard) if (reported := wrong(prometheus, cluster, panel))} == {}


@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_alerts_of_segtail_that_fired_are_marks_in_the_charts(prometheus: Prometheus, dashboard: str) -> None:
    marks = {each["name"]: each for each in read(dashboard)["annotations"]["list"]}
    found = {name: [series.labels["alertname"] for series in prometheus.at(each["expr"], END)] for name, each in marks.items()}
    assert found == {"Critical alerts": ["LogDirOffline"], "Warnings": ["GroupStopped"]}
    assert {each["datasource"]["uid"] for each in marks.values()} == {"${datasource}"}


def test_the_history_has_the_labels_that_the_metrics_are_defined_with(prometheus: Prometheus, cluster: Cluster) -> None:
    for metric in METRICS:
        for name in samples(metric):
            for series in prometheus.at(f"topk(1, {name})", END):
                found = set(series.labels) - {"__name__", "job", "instance", "le"}
                assert found <= set(metric.labels)
                assert set(metric.labels) - found <= {"stuck", "groups"}  # which most late transactions have empty


def test_every_broker_of_the_history_is_there(prometheus: Prometheus, cluster: Cluster) -> None:
    assert len(prometheus.at("count by (broker) (segtail_agent_up)", END)) == cluster.brokers
