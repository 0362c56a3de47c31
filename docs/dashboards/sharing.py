"""The form of a dashboard that is uploaded to grafana.com, and that asks for its data source where it is imported.

It is what Grafana writes by *Export for sharing externally*: `__inputs` are what the importer is asked for, `__requires` what has to be
installed. A provisioning folder fills in no inputs, so `segtail export dashboards` and the chart have the files of conf/dashboards, which
choose the data source by a variable.
"""

import importlib.metadata
import json
from pathlib import Path
from typing import Any

_SOURCE, _RUNBOOKS = "DS_PROMETHEUS", "VAR_RUNBOOKS"
_PANELS = {"bargauge": "Bar gauge", "stat": "Stat", "table": "Table", "timeseries": "Time series"}
"""Grafana's names of the kinds of panels."""


def shared(text: str) -> str:
    """The form with inputs of a dashboard's JSON."""
    chosen = text.replace("var-datasource=${datasource}&", "").replace("${datasource}", f"${{{_SOURCE}}}")
    whole: dict[str, Any] = json.loads(chosen)
    variables = [each for each in whole["templating"]["list"] if each["name"] != "datasource"]
    (runbooks,) = (each for each in variables if each["name"] == "runbooks")
    folder = runbooks["query"]
    asked = f"${{{_RUNBOOKS}}}"
    whole["templating"]["list"] = [_constant(each, asked) if each is runbooks else each for each in variables]
    source = {"name": _SOURCE, "label": "Prometheus", "description": "It scrapes segtail's /metrics.", "type": "datasource"}
    inputs = [
        source | {"pluginId": "prometheus", "pluginName": "Prometheus"},
        {"name": _RUNBOOKS, "type": "constant", "label": "Address of the runbooks", "value": folder, "description": ""},
    ]
    head: dict[str, Any] = {"__inputs": inputs, "__elements": {}, "__requires": _requires(whole), "id": None}
    return json.dumps(head | whole, indent=2) + "\n"


def write(names_and_texts: dict[str, str], folder: Path) -> None:
    """Write the form with inputs of each dashboard, by its file's name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in names_and_texts.items():
        (folder / name).write_text(shared(text), encoding="utf-8")


def _constant(variable: dict[str, Any], value: str) -> dict[str, Any]:
    option = {"selected": True, "text": value, "value": value}
    return variable | {"type": "constant", "query": value, "current": option, "options": [option]}


def _requires(whole: dict[str, Any]) -> list[dict[str, str]]:
    """Grafana in the version whose schema the file has, the data source, and each kind of panel."""
    version = importlib.metadata.version("grafana-foundation-sdk").rpartition("!")[2]
    kinds = sorted({each["type"] for each in whole["panels"]} & _PANELS.keys())
    return [
        {"type": "grafana", "id": "grafana", "name": "Grafana", "version": version},
        {"type": "datasource", "id": "prometheus", "name": "Prometheus", "version": "1.0.0"},
        *({"type": "panel", "id": kind, "name": _PANELS[kind], "version": ""} for kind in kinds),
    ]
