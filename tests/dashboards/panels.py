"""The committed dashboards, read as people's Grafana reads them."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "conf" / "dashboards"
DASHBOARDS = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))

_VARIABLE = re.compile(r"\$\{?(\w+)\}?")


@dataclass(frozen=True, slots=True)
class Target:
    """One query of a panel."""

    ref: str
    expr: str
    legend: str
    instant: bool


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; ``json`` is all of it."""

    dashboard: str
    title: str
    type: str
    targets: tuple[Target, ...]
    json: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.title}"


def read(dashboard: str) -> dict[str, Any]:
    """The JSON of a dashboard."""
    found: dict[str, Any] = json.loads((FOLDER / f"{dashboard}.json").read_text(encoding="utf-8"))
    return found


def panels(dashboard: str) -> Iterator[Panel]:
    """Its panels in the order of the page, without the rows that group them."""
    for each in read(dashboard)["panels"]:
        if each["type"] != "row":
            targets = tuple(
                Target(target["refId"], target["expr"], target.get("legendFormat", ""), target["instant"]) for target in each["targets"]
            )
            yield Panel(dashboard, each["title"], each["type"], targets, each)


def all_panels() -> list[Panel]:
    """Those of all dashboards."""
    return [panel for dashboard in DASHBOARDS for panel in panels(dashboard)]


def fill(expr: str, values: Mapping[str, str], *, rate: str = "5m") -> str:
    """PromQL with every variable filled in: those without a value match anything.

    ``rate`` stands for Grafana's own intervals.
    """
    own = {"__rate_interval": rate, "__interval": rate, "__range": "3h"}
    return _VARIABLE.sub(lambda found: own.get(found[1]) or values.get(found[1], ".*"), expr)
