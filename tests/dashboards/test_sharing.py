"""The form of the dashboards that grafana.com takes: whole by Grafana's own schema, and the committed one when its inputs are filled in."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from docs.dashboards.generate import main
from docs.dashboards.sharing import shared
from tests.dashboards.panels import DASHBOARDS, FOLDER, read


def form(dashboard: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shared((FOLDER / f"{dashboard}.json").read_text(encoding="utf-8")))
    return found


def without_inputs(whole: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in whole.items() if not name.startswith("__")}


@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_grafana_s_schema_knows_every_field(dashboard: str) -> None:
    whole = without_inputs(form(dashboard))
    encoded = json.loads(JSONEncoder().encode(models.Dashboard.from_json(json.loads(json.dumps(whole)))))
    assert whole.pop("id") is None
    assert {name for name in whole if encoded.get(name) != whole[name]} == {"annotations"}  # of which it knows no titles


@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_with_its_inputs_filled_in_it_is_the_committed_dashboard(dashboard: str) -> None:
    whole = form(dashboard)
    asked = {each["name"]: each for each in whole["__inputs"]}
    assert {each["type"] for each in asked.values()} == {"datasource", "constant"}
    text = json.dumps(without_inputs(whole))
    assert set(re.findall(r"\$\{((?:DS|VAR)_\w+)}", text)) == asked.keys()
    for name, each in asked.items():
        text = text.replace(f"${{{name}}}", each.get("value", "${datasource}"))
    filled, committed = json.loads(text), read(dashboard)
    own = {each["name"]: each for each in filled["templating"]["list"]}
    there = {each["name"]: each for each in committed["templating"]["list"]}
    assert (own["runbooks"]["type"], own["runbooks"]["query"]) == ("constant", there["runbooks"]["query"])
    assert {**own, "datasource": there["datasource"], "runbooks": there["runbooks"]} == there
    assert filled.pop("id") is None
    for each in (filled, committed):
        del each["templating"]
    assert filled == json.loads(json.dumps(committed).replace("var-datasource=${datasource}&", ""))


@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_it_requires_what_its_panels_are_drawn_with(dashboard: str) -> None:
    required = {(each["type"], each["id"]) for each in form(dashboard)["__requires"]}
    kinds = {each["type"] for each in read(dashboard)["panels"]} - {"row"}
    assert required == {("grafana", "grafana"), ("datasource", "prometheus"), *(("panel", kind) for kind in kinds)}


def test_all_of_them_are_written_into_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["generate", "--share", str(tmp_path / "shared")])
    assert main() == 0
    written = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "shared").iterdir()}
    assert written == {dashboard: form(dashboard) for dashboard in DASHBOARDS}
