"""The kinds of panel that the dashboards are made of; none can be made without a unit, a description and a legend."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from grafana_foundation_sdk.builders import bargauge, common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import prometheus as prometheus_models

DATASOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
COLUMNS = 24
"""Width of a dashboard."""

Steps = Sequence[tuple[float, str]]
"""Where a colour begins; below the first step a value is green."""

NEVER: Steps = ((1.0, "red"),)
"""Any of it is an incident."""
NO_LIMIT: Steps = ()
"""No value is bad by itself; such a value is shown without judgement."""

P = TypeVar("P", bargauge.Panel, stat.Panel, table.Panel, timeseries.Panel)


@dataclass(frozen=True, slots=True)
class Query:
    """PromQL, and what names each of its series."""

    expr: str
    legend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table: the label it shows (or "Value"), its head, and a link of its cells."""

    of: str
    head: str
    link: str = ""
    width: int = 0


def single(
    title: str,
    query: str,
    *,
    unit: str,
    told: str,
    steps: Steps = NO_LIMIT,
    none: str = "none",
    runbook: str = "",
    width: int = 3,
    legend: str = "",
    decimals: int | None = None,
    trend: bool = True,
) -> stat.Panel:
    """One large number; ``none`` stands where the query has no answer."""
    panel = (
        stat.Panel()
        .height(4)
        .span(width)
        .no_value(none)
        .color_mode(common_models.BigValueColorMode.VALUE)
        .graph_mode(common_models.BigValueGraphMode.AREA if trend else common_models.BigValueGraphMode.NONE)
        .text_mode(common_models.BigValueTextMode.NAME if legend else common_models.BigValueTextMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )
    if decimals is not None:
        panel = panel.decimals(decimals)
    return _finished(panel, title, (Query(query, legend),), unit, told, steps, runbook)


def chart(
    title: str,
    *queries: Query,
    unit: str,
    told: str,
    steps: Steps = NO_LIMIT,
    runbook: str = "",
    width: int = 12,
    stacked: bool = False,
    link: str = "",
    most: float | None = None,
) -> timeseries.Panel:
    """Lines over time, from 0 up, with the last value of each in the legend; where there is room, the largest too."""
    wide = width >= 12
    legend = (
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(common_models.LegendDisplayMode.TABLE if wide else common_models.LegendDisplayMode.LIST)
        .placement(common_models.LegendPlacement.RIGHT if wide else common_models.LegendPlacement.BOTTOM)
        .calcs(["lastNotNull", "max"] if wide else ["lastNotNull"])
        .sort_by("Last *")
        .sort_desc(True)
    )
    panel = (
        timeseries.Panel()
        .height(8)
        .span(width)
        .min(0)
        .line_width(1)
        .fill_opacity(25 if stacked else 8)
        .show_points(common_models.VisibilityMode.NEVER)
        .legend(legend)
        .tooltip(common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI).sort(common_models.SortOrder.DESCENDING))
        .color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC))
    )
    if most is not None:
        panel = panel.max(most)
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL))
    if steps:
        panel = panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(common_models.GraphThresholdsStyleMode.DASHED))
    if link:
        panel = panel.data_links([_to("Open the partition", link)])
    return _finished(panel, title, queries, unit, told, steps, runbook)


def bars(
    title: str,
    query: Query,
    *,
    unit: str,
    told: str,
    steps: Steps = NO_LIMIT,
    runbook: str = "",
    width: int = 12,
    link: str = "",
    most: float | None = None,
) -> bargauge.Panel:
    """The last value of each series as a bar, the query's order kept."""
    panel = (
        bargauge.Panel()
        .height(8)
        .span(width)
        .min(0)
        .orientation(common_models.VizOrientation.HORIZONTAL)
        .display_mode(common_models.BarGaugeDisplayMode.BASIC)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
    )
    if most is not None:
        panel = panel.max(most)
    if link:
        panel = panel.data_links([_to("Open the partition", link)])
    return _finished(panel, title, (query,), unit, told, steps, runbook, now_alone=prometheus_models.PromQueryFormat.TIME_SERIES)


def listing(
    title: str,
    query: str,
    columns: Sequence[Column],
    *,
    unit: str,
    told: str,
    steps: Steps = NO_LIMIT,
    runbook: str = "",
    width: int = 24,
    height: int = 8,
    none: str = "none",
) -> table.Panel:
    """A row for each series of an instant query, in the query's order; only ``columns`` are shown, and ``unit`` is that of Value."""
    shown = {column.of: column for column in columns}
    panel = (
        table.Panel()
        .height(height)
        .span(width)
        .no_value(none)
        .filterable(True)
        .with_transformation(
            models.DataTransformerConfig(id_val="filterFieldsByName", options={"include": {"names": [column.of for column in columns]}})
        )
        .with_transformation(
            models.DataTransformerConfig(
                id_val="organize",
                options={
                    "indexByName": {name: place for place, name in enumerate(shown)},
                    "renameByName": {column.of: column.head for column in columns},
                },
            )
        )
    )
    for column in columns:
        properties: list[models.DynamicConfigValue] = []
        if column.of == "Value":
            properties.append(models.DynamicConfigValue(id_val="unit", value=unit))
            if steps:
                properties.append(models.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}))
        if column.width:
            properties.append(models.DynamicConfigValue(id_val="custom.width", value=column.width))
        if column.link:
            properties.append(models.DynamicConfigValue(id_val="links", value=[{"title": "Open the partition", "url": column.link}]))
        if properties:
            panel = panel.override_by_name(column.head, properties)
    # A label that looks like a number must not be given the unit of the values.
    return _finished(panel, title, (Query(query, ""),), "string", told, steps, runbook, now_alone=prometheus_models.PromQueryFormat.TABLE)


def _finished(
    panel: P,
    title: str,
    queries: Sequence[Query],
    unit: str,
    told: str,
    steps: Steps,
    runbook: str,
    *,
    now_alone: prometheus_models.PromQueryFormat | None = None,
) -> P:
    """Give a panel its queries, over time unless ``now_alone`` says in which format the present values come, and its words."""
    for place, query in enumerate(queries):
        target = prometheus.Dataquery().datasource(DATASOURCE).expr(query.expr).ref_id(chr(ord("A") + place))
        if query.legend:
            target = target.legend_format(query.legend)
        target = target.range() if now_alone is None else target.instant().format(now_alone)
        panel = panel.with_target(target)
    if runbook:
        panel = panel.links([dashboard.DashboardLink(f"Runbook {runbook}").url(f"${{runbooks}}/{runbook}.md").target_blank(True)])
    return panel.title(title).description(told).datasource(DATASOURCE).unit(unit).thresholds(_thresholds(steps))


def _thresholds(steps: Steps) -> dashboard.ThresholdsConfig:
    base = models.Threshold(value=None, color="green" if steps else "text")
    others = [models.Threshold(value=value, color=color) for value, color in steps]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps([base, *others])


def _to(title: str, url: str) -> Any:
    return dashboard.DashboardLink(title).url(url)
