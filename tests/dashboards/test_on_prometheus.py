"""Every panel's queries on a real Prometheus, with few clusters and partitions and with many."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from docs.dashboards.pairs import OF_A_TARGET
from streaming.common.definitions.sections import METRICS
from tests.dashboards.contract import samples
from tests.dashboards.history import BESIDE, END, HANGING, LONG_DOWN, NEVER_UP, PAIRED, SMALL, TOPICS, UNSEEN, Cluster
from tests.dashboards.panels import DASHBOARDS, Panel, Target, all_panels, panels, read
from tests.dashboards.prometheus import Prometheus, Series, answer, serving
from tests.tools import require_tool

FIRST, SECOND, TWINS = (replace(each, step=60) for each in (SMALL, BESIDE, PAIRED))
FEW = (FIRST, SECOND, TWINS)

LARGE = Cluster(topics=TOPICS | {f"topic-{number}": 20 for number in range(50)}, brokers=30, seconds=900, step=60)
"""Whatever grows with partitions, topics or brokers shows here."""

OTHERS = tuple(replace(LARGE, job=f"cluster-{number}", seed=number, topics={"orders": 5, "payments": 3}) for number in range(2, 31))
THIRTY = (LARGE, replace(OTHERS[0], job="paired", pair=True), *OTHERS)

MOST = {"timeseries": 12, "bargauge": 20, "stat": 1, "table": 100}
"""So many series of a panel can still be read; rows of a table."""

OF_A_PROCESS = re.compile("segtail_(query|scrape|series|build)_|scrape_|up{")
"""What a pair of segtails has twice, because each is asked about itself."""

OWN = ("job", "verdict")
"""What a cluster's pair may show otherwise than one segtail: its name, and of what the two disagree on, either."""

pytestmark = [pytest.mark.programs, pytest.mark.xdist_group("dashboards/test_on_prometheus")]  # one process starts it, not each


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """One that scrapes three clusters: the first, one of the same names, and the first again, watched by a pair."""
    yield from _served(FEW, tmp_path_factory, down=True)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """One that scrapes the first cluster only."""
    yield from _served((FIRST,), tmp_path_factory)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """One that scrapes thirty clusters."""
    yield from _served(THIRTY, tmp_path_factory, down=True)


def _served(clusters: tuple[Cluster, ...], folders: pytest.TempPathFactory, *, down: bool = False) -> Iterator[Prometheus]:
    programs = require_tool("prometheus"), require_tool("promtool")
    with serving(programs, clusters, folders.mktemp("prometheus"), down=down) as found:
        yield found


def values(dashboard: str, cluster: Cluster | None = None) -> dict[str, str]:
    """What a user has chosen: one cluster or all, everything of it, but for the dashboard of one partition."""
    if dashboard != "partition":
        return {"job": cluster.job} if cluster else {}
    topic, partition = HANGING
    return {"job": (cluster or SMALL).job, "topic": topic, "partition": str(partition)}


def asked(
    prometheus: Prometheus, panel: Panel, target: Target, cluster: Cluster | None = None, seconds: int = FIRST.seconds
) -> list[Series]:
    """What a query of a panel gets."""
    return answer(prometheus, target, values(panel.dashboard, cluster), end=END, seconds=seconds, step=60)


def wrong(prometheus: Prometheus, panel: Panel, seconds: int) -> str:
    """What a panel's reader would miss: an answer, or the overview."""
    found = [asked(prometheus, panel, target, seconds=seconds) for target in panel.targets]
    empty = [target.expr for target, series in zip(panel.targets, found, strict=True) if not series]
    if empty and not any(series and " or 0 * " in target.expr for target, series in zip(panel.targets, found, strict=True)):
        return f"empty: {empty}"
    count = max(map(len, found)) if panel.type == "table" else sum(map(len, found))
    return f"{count} series" if count > MOST[panel.type] else ""


def test_no_query_is_empty_and_no_panel_has_more_series_than_can_be_read(prometheus: Prometheus) -> None:
    assert {str(panel): reported for panel in all_panels() if (reported := wrong(prometheus, panel, FIRST.seconds))} == {}


@pytest.mark.slow
def test_nor_with_thirty_clusters_and_a_thousand_partitions(many: Prometheus) -> None:
    assert {str(panel): reported for panel in all_panels() if (reported := wrong(many, panel, LARGE.seconds))} == {}
    _down_is_counted(many, THIRTY)


def shown(found: list[Series], *, but: tuple[str, ...] = ()) -> dict[str, list[tuple[float, object]]]:
    """The values by labels, to nine digits: sums depend on an order."""
    labels = [{name: value for name, value in series.labels.items() if name not in but} for series in found]
    points = [[(at, pytest.approx(value, rel=1e-9, nan_ok=True)) for at, value in series.points] for series in found]
    return {str(sorted(each.items())): own for each, own in zip(labels, points, strict=True)}


def test_a_chosen_cluster_shows_what_it_does_where_it_is_alone(prometheus: Prometheus, alone: Prometheus) -> None:
    differing = [
        f"{panel}: {target.expr}"
        for panel in all_panels()
        for target in panel.targets
        if shown(asked(prometheus, panel, target, FIRST)) != shown(asked(alone, panel, target, FIRST))
    ]
    assert differing == []


def test_two_segtails_of_a_cluster_count_once(prometheus: Prometheus) -> None:
    queries = [(panel, target) for panel in all_panels() for target in panel.targets if not OF_A_PROCESS.search(target.expr)]
    assert {panel.dashboard for panel, _ in queries} == set(DASHBOARDS)
    both = [[shown(asked(prometheus, panel, target, cluster), but=OWN) for cluster in (FIRST, TWINS)] for panel, target in queries]
    assert [f"{panel}: {target.expr}" for (panel, target), (one, two) in zip(queries, both, strict=True) if one != two] == []


def test_where_all_are_chosen_what_has_a_name_is_one_cluster_s(prometheus: Prometheus) -> None:
    names = {"broker", "topic", "partition", "group", "log_dir", "agent", "name"}
    mixed = {
        f"{panel}: {target.expr}"
        for panel in all_panels()
        for target in panel.targets
        if panel.dashboard != "partition"
        for series in asked(prometheus, panel, target)
        if names & series.labels.keys() and "job" not in series.labels
    }
    assert mixed == set()


def test_a_cluster_whose_segtail_has_long_been_down_or_never_answered_has_a_row(prometheus: Prometheus) -> None:
    _down_is_counted(prometheus, FEW)


def _down_is_counted(prometheus: Prometheus, clusters: tuple[Cluster, ...]) -> None:
    found = {
        panel.title: [asked(prometheus, panel, target, seconds=clusters[0].seconds) for target in panel.targets]
        for panel in panels("clusters")
    }
    (segtail,) = (of for of in found["Clusters, the worst first"] if {each.points[-1][1] for each in of} == {0, 1})
    down = {each.labels["job"] for each in segtail if each.points[-1][1] == 0}
    assert down == {LONG_DOWN, NEVER_UP}
    counts = {title: found[title][0][0].points[-1][1] for title in ("Clusters", "segtail down")}
    assert counts == {"Clusters": len(clusters) + 2, "segtail down": 2}


MARKS = {
    "Critical alerts": ["GroupWillLoseData", "TransactionHanging"],
    "Warnings": ["GroupStopped"],
    "Brokers down or starting": ["Broker 3: down"],
    "Agents away": ["Agent agent-3 away"],
    "segtail restarts": ["segtail began at shop-eu-a:9712"],
    "Leader elections": ["Leaders elected"],
}


@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_alerts_and_what_changed_are_marks_in_the_charts(prometheus: Prometheus, dashboard: str) -> None:
    marks = read(dashboard)["annotations"]["list"]
    found = {}
    for mark in marks:
        target = Target("A", mark["expr"], mark["titleFormat"], instant=False)
        series = answer(prometheus, target, values(dashboard, FIRST), end=END, seconds=FIRST.seconds, step=60)
        assert all(value >= 1 for each in series for _, value in each.points), "Grafana before 10 draws no mark for less"
        found[mark["name"]] = [re.sub(r"\{\{(\w+)}}", lambda of, each=each: each.labels[of[1]], mark["titleFormat"]) for each in series]
    assert (list(found), found) == (list(MARKS), MARKS)
    assert {each["datasource"]["uid"] for each in marks} == {"${datasource}"}


def test_the_history_has_the_labels_that_the_metrics_are_defined_with(prometheus: Prometheus) -> None:
    for metric in METRICS:
        for name in samples(metric):
            for series in prometheus.at(f"topk(1, {name})", END):
                found = set(series.labels) - {"__name__", "job", "le", *OF_A_TARGET.split(", ")}
                assert found <= set(metric.labels)
                assert set(metric.labels) - found <= {"stuck", "groups"}  # which most late transactions have empty


def numbers(prometheus: Prometheus, dashboard: str, cluster: Cluster, end: float = END) -> dict[str, float]:
    """The last values of the panels of one number each, by title; those without any are left out."""
    found = {
        panel.title: answer(prometheus, panel.targets[0], values(dashboard, cluster), end=end, seconds=60, step=60)
        for panel in panels(dashboard)
        if panel.type == "stat"
    }
    return {title: series[0].points[-1][1] for title, series in found.items() if series}


def test_a_lag_counts_by_the_record_s_own_time_where_its_append_was_not_seen(prometheus: Prometheus) -> None:
    (record,) = prometheus.at(f'segtail_group_lag_seconds{{job="{FIRST.job}",group="{UNSEEN}",clock="record"}}', END)
    assert prometheus.at(f'segtail_group_lag_seconds{{job="{FIRST.job}",clock="append"}} >= {record.points[0][1]}', END) == []
    assert numbers(prometheus, "overview", FIRST)["Worst lag"] == record.points[0][1]
    lags = [panel for panel in all_panels() if any("segtail_group_lag_seconds" in target.expr for target in panel.targets)]
    assert lags
    assert [str(panel) for panel in lags if not any("record" in target.expr for target in panel.targets)] == []


def test_what_groups_are_about_to_lose_and_what_is_not_known_is_0_where_all_is_well(prometheus: Prometheus) -> None:
    quiet = numbers(prometheus, "groups", FIRST, END - 9000)
    assert {title: quiet.get(title) for title in ("Will lose data", "Lag unknown")} == {"Will lose data": 0, "Lag unknown": 0}


@pytest.mark.parametrize("dashboard", ["overview", "groups", "clusters"])
def test_how_near_a_loss_counts_is_what_the_cluster_is_configured_to(prometheus: Prometheus, dashboard: str) -> None:
    assert [numbers(prometheus, dashboard, each)["Will lose data"] for each in (FIRST, SECOND)] == [2, 0]


@pytest.mark.parametrize("dashboard", ["overview", "groups"])
def test_a_group_of_which_no_alert_is_sent_is_in_no_number_of_such_groups(prometheus: Prometheus, dashboard: str) -> None:
    """One that was thrown away has stopped and is held up, too."""
    found = numbers(prometheus, dashboard, FIRST)
    assert {title: found[title] for title in ("Groups stopped", "Groups held up")} == {"Groups stopped": 1, "Groups held up": 1}
