"""What the browser draws: panels with their boxes in pixels and their data out of Prometheus."""

import re
from collections.abc import Mapping
from typing import Any

from tests.dashboards.panels import Panel, Target, panels, read
from tests.dashboards.prometheus import Prometheus, Series, answer

WIDTH, COLUMN, ROW, GAP = 1408, 58, 36, 8
"""Pixels: a column is 1/24 of the page, a row the unit of a panel's height."""
_HEADER = 44
SPAN = 3 * 3600
"""Seconds that a picture shows."""
POINTS = 240
"""Points of a line, so that two pixels at least are between any two."""


def page(dashboard: str, prometheus: Prometheus, values: Mapping[str, str], *, end: float, seconds: float, rows: int = 0) -> dict[str, Any]:
    """All that `page.tsx` needs, as it goes into JSON. ``rows``: only the first ones with their panels, 0 for all."""
    step = max(15.0, seconds / POINTS // 15 * 15)
    whole = read(dashboard)
    data = {panel.json["id"]: _data(panel, prometheus, dict(values), end=end, seconds=seconds, step=step) for panel in panels(dashboard)}
    ends = [index for index, each in enumerate(whole["panels"]) if each["type"] == "row"][rows:] if rows else []
    drawn = [_looks(each, values) | data.get(each["id"], {}) for each in whole["panels"][: ends[0] if ends else None]]
    chosen = [variable for variable in whole["templating"]["list"] if variable["type"] == "query"]
    return {
        "title": whole["title"],
        "variables": "   ".join(f"{variable['label']}: {values.get(variable['name'], 'All')}" for variable in chosen),
        "panels": drawn,
        "from": (end - seconds) * 1000,
        "to": end * 1000,
        "width": WIDTH,
        "height": _HEADER + GAP + max(each["box"]["top"] + each["box"]["height"] - _HEADER for each in drawn),
    }


def _looks(panel: dict[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    at = panel["gridPos"]
    box = {
        "left": GAP + at["x"] * COLUMN,
        "top": _HEADER + at["y"] * ROW,
        "width": at["w"] * COLUMN - GAP,
        "height": at["h"] * ROW - (GAP if panel["type"] != "row" else 0),
    }
    title = re.sub(r"\$(\w+)", lambda found: values.get(found[1], "All" if found[1] == "job" else found[0]), panel["title"])
    kept = {name: panel.get(name, default) for name, default in (("description", ""), ("options", {}), ("fieldConfig", {}))}
    return {"type": panel["type"], "title": title, "box": box, "series": [], "columns": [], "rows": []} | kept


def _data(panel: Panel, prometheus: Prometheus, values: dict[str, str], **span: float) -> dict[str, Any]:
    if panel.type == "table":
        return _table(panel, [answer(prometheus, target, values, **span) for target in panel.targets])
    found = [(target, series) for target in panel.targets for series in answer(prometheus, target, values, **span)]
    return {"series": [_line(target, series, values.get("job", "All"), **span) for target, series in found]}


def _line(target: Target, series: Series, cluster: str, *, end: float, seconds: float, step: float) -> dict[str, Any]:
    """Points at every step, null where there is none: else a line would be drawn across a gap. A chosen cluster stands behind no name."""
    name = re.sub(r"\{\{(\w+)}}", lambda found: series.labels.get(found[1], ""), target.legend).removesuffix(f" ({cluster})")
    if target.instant:
        return {"name": name, "times": [at * 1000 for at, _ in series.points], "values": [value for _, value in series.points]}
    there = dict(series.points)
    times = [end - seconds + number * step for number in range(int(seconds / step) + 1)]
    return {"name": name, "times": [at * 1000 for at in times], "values": [_finite(there.get(at)) for at in times]}


def _finite(value: float | None) -> float | None:
    return None if value is None or value != value or value in (float("inf"), float("-inf")) else value


def _table(panel: Panel, found: list[list[Series]]) -> dict[str, Any]:
    """Rows as Grafana makes them: the labels and the values, joined, chosen, named and sorted by the panel's own settings."""
    changes = {each["id"]: each["options"] for each in panel.json["transformations"]}
    organize, joined = changes["organize"], changes.get("joinByField", {}).get("byField")
    rows: dict[str, dict[str, Any]] = {}
    for target, answered in zip(panel.targets, found, strict=True):
        for series in answered:
            row = rows.setdefault(series.labels[joined] if joined else str(len(rows)), {})
            row |= series.labels | {f"Value #{target.ref}" if joined else "Value": series.points[0][1]}
    names = {of: organize["renameByName"][of] for of in sorted(organize["indexByName"], key=organize["indexByName"].__getitem__)}
    headed = [{head: row.get(of, "") for of, head in names.items()} for row in rows.values()]
    for order in reversed(panel.json.get("options", {}).get("sortBy", ())):
        headed.sort(key=lambda row, by=order["displayName"]: row[by] or 0, reverse=order["desc"])  # type: ignore[misc]
    return {"columns": list(names.values()), "rows": headed}
