"""What all dashboards share: variables, links to each other, and PromQL that stays readable with 10,000 partitions."""

from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as models

from conf.dashboards.generator.parts import DATASOURCE

TAG = "segtail"
TOP = 10
"""So many lines a chart shows at most."""
ROWS = 100
"""So many rows a table shows at most."""

BROKER = 'broker=~"$broker"'
TOPIC = f'{BROKER},topic=~"$topic"'
PARTITION = f'{TOPIC},partition=~"$partition"'
RATE = "$__rate_interval"

_DRILL_DOWN = "/d/segtail-partition?var-datasource=${datasource}&${__url_time_range}"
TO_PARTITION = f"{_DRILL_DOWN}&var-topic=${{__field.labels.topic}}&var-partition=${{__field.labels.partition}}"
"""Link of a series to its partition."""
ROW_TO_PARTITION = f"{_DRILL_DOWN}&var-topic=${{__data.fields.topic}}&var-partition=${{__data.fields.partition}}"
"""Link of a table's row to its partition."""

_VARIABLES = {
    "broker": "label_values(segtail_agent_up, broker)",
    "topic": f"label_values(segtail_partition_appended_bytes_total{{{BROKER}}}, topic)",
    "partition": f"label_values(segtail_partition_appended_bytes_total{{{TOPIC}}}, partition)",
}


def new_dashboard(uid: str, title: str, told: str, *, variables: Sequence[str], one: Sequence[str] = ()) -> dashboard.Dashboard:
    """An empty dashboard; of the variables in ``one`` just one value can be chosen, of the others any and all."""
    made = (
        dashboard.Dashboard(f"segtail / {title}")
        .uid(uid)
        .description(told)
        .tags([TAG])
        .time("now-3h", "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .link(dashboard.DashboardLink("segtail").type(models.DashboardLinkType.DASHBOARDS).tags([TAG]).include_vars(True).keep_time(True))
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    for name in variables:
        made = made.with_variable(_choice(name, several=name not in one))
    # Where docs/runbooks is published differs from place to place; who sets this variable has links that work.
    return made.with_variable(
        dashboard.TextBoxVariable("runbooks").label("Runbooks").default_value("docs/runbooks").hide(models.VariableHide.HIDE_VARIABLE)
    )


def _choice(name: str, *, several: bool) -> dashboard.QueryVariable:
    variable = (
        dashboard.QueryVariable(name)
        .label(name.capitalize())
        .datasource(DATASOURCE)
        .query({"query": _VARIABLES[name], "refId": name})
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.NUMERICAL_ASC if name != "topic" else models.VariableSort.ALPHABETICAL_ASC)
    )
    # ".*" and not all values joined: at 10,000 topics that would be a query of megabytes.
    everything = models.VariableOption(selected=True, text="All", value="$__all")
    return variable.multi(True).include_all(True).all_value(".*").current(everything) if several else variable


def rate(metric: str, selector: str, by: str = "") -> str:
    """A counter's rate, summed."""
    return _sum(f"rate({metric}{{{selector}}}[{RATE}])", by)


def largest_rates(metric: str, selector: str, by: str = "topic") -> str:
    """The rates of the few that were largest in the last hour shown: chosen once, so that no line comes and goes."""
    ranked = _sum(f"rate({metric}{{{selector}}}[1h] @ end())", by)
    return f"{rate(metric, selector, by)} and topk({TOP}, {ranked})"


def largest(expression: str, at_end: str, count: int = TOP) -> str:
    """The few series of a gauge that are largest at the end; ``at_end`` is the same expression there."""
    return f"{expression} and topk({count}, {at_end})"


def longest_ago(metric: str, selector: str, by: str) -> str:
    """Ages of the few groups for which a timestamp's maximum is oldest at the end of what is shown."""
    newest = f"max by ({by}) ({metric}{{{selector}}}"
    return f"time() - ({newest}) and bottomk({TOP}, {newest} @ end())))"


def largest_gauges(metric: str, selector: str, *, how: str = "max", by: str = "topic", count: int = TOP) -> str:
    """The few groups for which a gauge's sum or maximum is largest at the end of what is shown."""
    return largest(f"{how} by ({by}) ({metric}{{{selector}}})", f"{how} by ({by}) ({metric}{{{selector}}} @ end())", count)


def oldest_ages(metric: str, selector: str, *, by: str = "topic") -> str:
    """The few groups with the lowest point in time, as an age."""
    return largest(f"time() - min by ({by}) ({metric}{{{selector}}})", f"-min by ({by}) ({metric}{{{selector}}} @ end())")


def _sum(expression: str, by: str) -> str:
    return f"sum by ({by}) ({expression})" if by else f"sum({expression})"
