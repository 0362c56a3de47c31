"""Writes conf/dashboards/*.json from the tables beside this file, or with ``--check`` says which of them are not current."""

import argparse
import json
import sys
from pathlib import Path

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from docs.dashboards.marks import marks
from docs.dashboards.panels import DATASOURCE, build
from docs.dashboards.sharing import write
from docs.dashboards.tables import Dashboard, names, promql, read

FOLDER = Path(__file__).parents[2] / "conf" / "dashboards"
TAG = "segtail"
_CLUSTERS = "label_values(segtail_build_info, job)"
"""Every segtail that was scraped in the time shown, also one whose agents are all away."""

_VARIABLES = {
    "broker": "label_values(segtail_agent_up{CLUSTER}, broker)",
    "topic": "label_values(segtail_partition_appended_bytes_total{BROKER}, topic)",
    "partition": "label_values(segtail_partition_appended_bytes_total{TOPIC}, partition)",
    "group": "label_values(segtail_group_last_commit_timestamp_seconds{CLUSTER}, group)",
}
_OF_GROUPS = {"topic": "label_values(segtail_group_last_commit_timestamp_seconds{GROUP}, topic)"}
"""Variables that depend on the group, and not on the broker."""


def render(name: str) -> str:
    """The JSON of one dashboard."""
    table = read(name)
    made = _empty(f"segtail-{name}", table)
    for title, panels in table.rows:
        made = made.with_row(dashboard.Row(f"{title} (cluster: $job)"))
        for panel in panels:
            made = made.with_panel(build(panel))
    finished = made.build()
    for number, each in enumerate(finished.panels or (), 1):
        each.id_val = number  # stable, so that a link to a panel outlives the next import
    encoded = json.loads(JSONEncoder(sort_keys=True).encode(finished))
    encoded["annotations"]["list"] = marks(table)
    return json.dumps(encoded, sort_keys=True, indent=2) + "\n"


def _empty(uid: str, table: Dashboard) -> dashboard.Dashboard:
    made = (
        dashboard.Dashboard(f"segtail / {table.title}")
        .uid(uid)
        .description(table.text)
        .tags([TAG])
        .time("now-3h", "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .link(dashboard.DashboardLink("segtail").type(models.DashboardLinkType.DASHBOARDS).tags([TAG]).include_vars(True).keep_time(True))
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    made = made.with_variable(_choice("job", _CLUSTERS, several="job" not in table.one))
    for name in table.variables:
        values = promql((_VARIABLES | _OF_GROUPS if "group" in table.variables else _VARIABLES)[name])
        made = made.with_variable(_choice(name, values, several=name not in table.one))
    # Where docs/runbooks is published differs from place to place; who sets this variable has links that work.
    return made.with_variable(
        dashboard.TextBoxVariable("runbooks").label("Runbooks").default_value("docs/runbooks").hide(models.VariableHide.HIDE_VARIABLE)
    )


def _choice(name: str, values: str, *, several: bool) -> dashboard.QueryVariable:
    variable = (
        dashboard.QueryVariable(name)
        .label("Cluster" if name == "job" else name.capitalize())
        .datasource(DATASOURCE)
        .query({"query": values, "refId": name})
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC if name in ("job", "topic", "group") else models.VariableSort.NUMERICAL_ASC)
    )
    # ".*" and not all values joined: at 10,000 topics that would be a query of megabytes.
    everything = models.VariableOption(selected=True, text="All", value="$__all")
    return variable.multi(True).include_all(True).all_value(".*").current(everything) if several else variable


def main() -> int:
    """Write or compare; with ``--check``, 1 if any differs."""
    parser = argparse.ArgumentParser(prog="python -m docs.dashboards.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, name what is not current")
    parser.add_argument("--share", type=Path, metavar="DIR", help="write the form that grafana.com takes into DIR instead")
    given = parser.parse_args()
    if given.share:
        write({f"{name}.json": render(name) for name in names()}, given.share)
        return 0
    check, stale = given.check, []
    for name in names():
        path = FOLDER / f"{name}.json"
        if check and (not path.exists() or path.read_text(encoding="utf-8") != render(name)):
            stale.append(path.name)
        elif not check:
            path.write_text(render(name), encoding="utf-8")
    if stale:
        sys.stderr.write(f"conf/dashboards: {', '.join(stale)} not current: make dashboards\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
