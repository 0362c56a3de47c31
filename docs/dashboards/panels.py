"""A panel as Grafana's own library builds it."""

import re
from typing import TypeVar

from grafana_foundation_sdk.builders import bargauge, common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import prometheus as prometheus_models

from docs.dashboards.tables import Panel, Show

DATASOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")

Built = bargauge.Panel | stat.Panel | table.Panel | timeseries.Panel
P = TypeVar("P", bargauge.Panel, stat.Panel, table.Panel, timeseries.Panel)

_ELSEWHERE = "var-datasource=${datasource}&${__url_time_range}"
_DRILL_DOWN = f"/d/segtail-partition?{_ELSEWHERE}"
_OF_A_SERIES = "&".join(
    [_DRILL_DOWN, *(f"var-{name}=${{__field.labels.{name}:percentencode}}" for name in ("job", "topic", "partition"))],
)
_OF_A_ROW = "&".join([_DRILL_DOWN, *(f"var-{name}=${{__data.fields.{name}:percentencode}}" for name in ("job", "topic", "partition"))])
_OF_A_CLUSTER = f"/d/segtail-overview?{_ELSEWHERE}&var-job=${{__data.fields.job:percentencode}}"
_OF_A_TOPIC = f"{_OF_A_CLUSTER}&var-topic=${{__data.fields.topic:percentencode}}"

_NAMES = frozenset(("broker", "topic", "partition", "group", "log_dir", "instance"))
"""Labels whose values two clusters may have in common, so that a series has to name its cluster."""
_GROWS = frozenset(("topic", "group", "groups", "transactional_id"))
"""Labels with names of any length: their columns have at least their width, and share the room that is left."""
_NUMBERS = frozenset(("Value", "broker", "partition", "first_offset", "producer_id", "producer_epoch"))
"""What is not worth a filter, whose sign needs room beside the head."""
_WIDE = 12  # from here on there is room for a legend of several columns


def build(panel: Panel) -> Built:
    """The panel, placed by its size alone: Grafana's library puts one beside the other."""
    match panel.kind:
        case "stat":
            return _finished(_stat(panel.show), panel, width=3, height=4)
        case "chart":
            return _finished(_chart(panel.show), panel, width=12)
        case "bars":
            return _finished(_bars(panel.show), panel, width=12, now_alone=prometheus_models.PromQueryFormat.TIME_SERIES)
        case "table":
            return _finished(_table(panel), panel, width=24, now_alone=prometheus_models.PromQueryFormat.TABLE)
        case "matrix":
            return _finished(_matrix(panel), panel, width=24, now_alone=prometheus_models.PromQueryFormat.TABLE)


def _stat(show: Show) -> stat.Panel:
    """One large number."""
    made = (
        stat.Panel()
        .no_value(show.none)
        .color_mode(common_models.BigValueColorMode.VALUE)
        .graph_mode(common_models.BigValueGraphMode.AREA if show.trend else common_models.BigValueGraphMode.NONE)
        .text_mode(common_models.BigValueTextMode.NAME if show.legend else common_models.BigValueTextMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )
    return made if show.decimals is None else made.decimals(show.decimals)


def _chart(show: Show) -> timeseries.Panel:
    """Lines over time, from 0 up, with the last value of each in the legend; where there is room, the largest too."""
    wide = (show.width or _WIDE) >= _WIDE
    legend = (
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(common_models.LegendDisplayMode.TABLE if wide else common_models.LegendDisplayMode.LIST)
        .placement(common_models.LegendPlacement.RIGHT if wide else common_models.LegendPlacement.BOTTOM)
        .calcs(["lastNotNull", "max"] if wide else ["lastNotNull"])
        .sort_by("Last *")
        .sort_desc(True)
    )
    made = (
        timeseries.Panel()
        .min(0)
        .line_width(1)
        .fill_opacity(25 if show.stacked else 8)
        .show_points(common_models.VisibilityMode.NEVER)
        .legend(legend)
        .tooltip(common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI).sort(common_models.SortOrder.DESCENDING))
        .color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC))
    )
    if show.most is not None:
        made = made.max(show.most)
    if show.stacked:
        made = made.stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL))
    if show.steps:
        made = made.thresholds_style(common.GraphThresholdsStyleConfig().mode(common_models.GraphThresholdsStyleMode.DASHED))
    return made


def _bars(show: Show) -> bargauge.Panel:
    """The last value of each series as a bar, the query's order kept."""
    made = (
        bargauge.Panel()
        .min(0)
        .orientation(common_models.VizOrientation.HORIZONTAL)
        .display_mode(common_models.BarGaugeDisplayMode.BASIC)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
    )
    if show.most is not None:
        made = made.max(show.most)
    return made.data_links([dashboard.DashboardLink("Open the partition").url(_OF_A_SERIES)]) if show.linked else made


def _table(panel: Panel) -> table.Panel:
    """A row for each series of an instant query, in the query's order; it leads to its partition, or where it has none, to its topic."""
    heads = {column[0]: column[1] if len(column) > 1 else column[0] for column in panel.columns}
    widths = {column[0]: column[2] for column in panel.columns if len(column) > 2}
    places = {label: place for place, label in enumerate(heads)}
    made = table.Panel().no_value(panel.show.none).filterable(True)
    for name, options in (
        ("filterFieldsByName", {"include": {"names": list(heads)}}),
        ("organize", {"indexByName": places, "renameByName": heads}),
    ):
        made = made.with_transformation(models.DataTransformerConfig(id_val=name, options=options))
    for label, head in heads.items():
        properties: dict[str, object] = {"unit": panel.show.unit} if label == "Value" else {}
        if label == "Value" and panel.show.steps:
            properties["custom.cellOptions"] = {"type": "color-text"}
        if label in widths:
            properties["custom.minWidth" if label in _GROWS else "custom.width"] = widths[label]
        if label in _NUMBERS:
            properties["custom.filterable"] = False
        if label in panel.texts:
            properties["mappings"] = [_mapping(value, text) for value, text in panel.texts[label].items()]
        if label in ("topic", "partition"):
            one = "partition" in heads
            properties["links"] = [{"title": f"Open the {'partition' if one else 'topic'}", "url": _OF_A_ROW if one else _OF_A_TOPIC}]
        if properties:
            made = made.override_by_name(head, [models.DynamicConfigValue(id_val=name, value=value) for name, value in properties.items()])
    return made


def _matrix(panel: Panel) -> table.Panel:
    """A row for each cluster, a column for each query, the worst cluster first; a cluster leads to its overview."""
    heads = {"job": "cluster"} | {f"Value #{_letter(place)}": head for place, head in enumerate(panel.queries)}
    made = table.Panel().filterable(True).sort_by([_largest_first(head) for head in list(panel.queries)[:2]])
    for name, options in (
        ("joinByField", {"byField": "job", "mode": "outer"}),
        ("filterFieldsByName", {"include": {"names": list(heads)}}),
        ("organize", {"indexByName": {field: place for place, field in enumerate(heads)}, "renameByName": heads}),
    ):
        made = made.with_transformation(models.DataTransformerConfig(id_val=name, options=options))
    made = made.override_by_name("cluster", _values(links=[{"title": "Open the cluster's overview", "url": _OF_A_CLUSTER}]))
    for head, cell in panel.cells.items():
        mappings = [{"type": "value", "options": {str(value): {"text": text} for value, text in cell.texts.items()}}]
        steps = [{"value": None, "color": "text"}, *({"value": value, "color": color} for value, color in cell.steps)]
        properties = _values(unit=cell.unit, thresholds={"mode": "absolute", "steps": steps}, mappings=mappings if cell.texts else [])
        properties += [models.DynamicConfigValue("custom.width", cell.width), models.DynamicConfigValue("custom.filterable", False)]
        properties += [models.DynamicConfigValue("custom.cellOptions", {"type": "color-text"})] if cell.steps else []
        made = made.override_by_name(head, properties)
    return made


def _mapping(value: str, text: str) -> dict[str, object]:
    """A word in place of a value; for an empty one Grafana has a kind of its own."""
    if value:
        return {"type": "value", "options": {value: {"text": text}}}
    return {"type": "special", "options": {"match": "empty", "result": {"text": text}}}


def _values(**properties: object) -> list[models.DynamicConfigValue]:
    return [models.DynamicConfigValue(id_val=name, value=value) for name, value in properties.items()]


def _largest_first(head: str) -> common.TableSortByFieldState:
    return common.TableSortByFieldState().display_name(head).desc(True)


def _letter(place: int) -> str:
    """Grafana's name of a query, by which a table names its values."""
    return chr(ord("A") + place)


def _finished(made: P, panel: Panel, *, width: int, height: int = 8, now_alone: prometheus_models.PromQueryFormat | None = None) -> P:
    """The same with its queries, over time unless ``now_alone`` says in which format the present values come, and its words."""
    show = panel.show
    for place, (legend, expr) in enumerate(panel.queries.items()):
        target = prometheus.Dataquery().datasource(DATASOURCE).ref_id(_letter(place))
        target = target.expr(f"{expr} and topk({show.top}, {at_end(expr)})" if show.top else expr)
        if legend:
            target = target.legend_format(f"{legend} ({{{{job}}}})" if _may_be_of_several(legend, expr) else legend)
        made = made.with_target(target.range() if now_alone is None else target.instant().format(now_alone))
    if any(_may_be_of_several(legend, expr) for legend, expr in panel.queries.items()):
        made = made.with_transformation(_ONE_CLUSTER)
    if show.runbook:
        made = made.links([dashboard.DashboardLink(f"Runbook {show.runbook}").url(f"${{runbooks}}/{show.runbook}.md").target_blank(True)])
    # A label of a table that looks like a number must not be given the unit of the values.
    made = made.unit("string" if panel.kind in ("table", "matrix") else show.unit).thresholds(_thresholds(show))
    return made.title(panel.title).description(panel.text).datasource(DATASOURCE).span(show.width or width).height(show.height or height)


_ONE_CLUSTER = models.DataTransformerConfig(id_val="renameByRegex", options={"regex": r"^(.*) \(${job:text}\)$", "renamePattern": "$1"})
"""Where one cluster is chosen, its name stands at the top, and not behind every series."""


def _may_be_of_several(legend: str, expr: str) -> bool:
    """Whether two clusters may have a series of the same name."""
    return 'job="$job"' not in expr and not _NAMES.isdisjoint(re.findall(r"\{\{(\w+)}}", legend))


def at_end(expr: str) -> str:
    """What ranks the series of a query: their values at the end of the time shown, of a rate those of its last hour.

    So series are chosen once for the whole chart, and no line comes and goes. Ages are ranked by the time from which they are counted.
    """
    expr = f"-{expr.removeprefix('time() - ')}" if expr.startswith("time() - ") else expr
    if "[$__rate_interval]" in expr:
        return expr.replace("[$__rate_interval]", "[1h] @ end()")
    return re.sub(r"\}(\[[^\]]*\])?", r"}\1 @ end()", expr)


def _thresholds(show: Show) -> dashboard.ThresholdsConfig:
    base = models.Threshold(value=None, color="green" if show.steps else "text")
    others = [models.Threshold(value=value, color=color) for value, color in show.steps]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps([base, *others])
