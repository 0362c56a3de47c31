"""Where alerts lead: views of the page that exist, dashboards that exist, and what a hostile label makes of the addresses."""

import json
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from streaming.pages.site.page_site import PageSite
from streaming.shipped.addresses import Addresses, dashboard_link, page_link, with_addresses
from streaming.shipped.shipped_files import ShippedFile, ShippedKind, shipped
from tests.site.page_reading import ask
from tests.site.page_world import MadeUpJob, site_of
from tests.tables import each_row
from tests.tools import require_tool

ALERTS = {each.stem: each for each in shipped(ShippedKind.ALERTS)}
PAGE, GRAFANA = "https://segtail.example.org", "https://grafana.example.org/g"
FILLED = Addresses(page=PAGE, grafana=GRAFANA)
RULE = """\
groups:
  - name: A
    rules:
      - alert: A
        expr: a
        labels: {{severity: info, scope: {scope}}}
        annotations:
          runbook_url: docs/runbooks/{name}.md
"""


@pytest.fixture(scope="module")
def site() -> PageSite:
    return site_of(MadeUpJob())


def rendered(name: str, labels: dict[str, str], folder: Path) -> dict[str, str]:
    """What Prometheus makes of the annotations of an alert of this name with these labels: the test asks for what it is not, and reads."""
    scope = yaml.safe_load(ALERTS[name].text)["groups"][0]["rules"][0]["labels"]["scope"]
    alert = ShippedFile(name=f"{name}.yaml", text=RULE.format(scope=scope, name=name))
    (folder / "alert.yaml").write_text(with_addresses(ShippedKind.ALERTS, alert, FILLED))
    given = ",".join(f"{label}={json.dumps(value)}" for label, value in labels.items())
    check = {"eval_time": "1m", "alertname": "A", "exp_alerts": []}
    series = {"interval": "1m", "input_series": [{"series": f"a{{{given}}}", "values": "1x5"}], "alert_rule_test": [check]}
    (folder / "test.yaml").write_text(json.dumps({"rule_files": ["alert.yaml"], "evaluation_interval": "1m", "tests": [series]}))
    done = subprocess.run([require_tool("promtool"), "test", "rules", "test.yaml"], cwd=folder, capture_output=True, text=True, check=False)
    got = (done.stdout + done.stderr).rpartition("got:[")[2].partition("Annotations:{")[2].partition("}\n")[0]
    return {field: json.loads(text) for field, _, text in (each.partition("=") for each in got.split(", ") if each)}


@pytest.mark.programs
@each_row(
    ("alert", "labels", "page", "dashboard"),
    [
        ("GroupStopped", {"group": "billing", "topic": "payments"}, "/groups?group=billing", "segtail-groups"),
        ("LogCorrupt", {"topic": "payments", "partition": "3"}, "/partitions?topic=payments&partition=3", "segtail-retention"),
        ("TransactionStuck", {"topic": "payments"}, "/transactions?filter=payments", "segtail-transactions"),
        ("RetentionBlocked", {"topic": "payments"}, "/retention?filter=payments", "segtail-retention"),
        ("UnderReplicated", {"topic": "payments"}, "/topics?topic=payments", "segtail-overview"),
        ("GroupsAbandoned", {"job": "segtail"}, "/groups", "segtail-groups"),
        ("BrokerDown", {"broker": "2"}, "/", "segtail-overview"),
        ("MetadataUnreadable", {"job": "segtail"}, "/", "segtail-observer"),
    ],
)
def test_an_alert_leads_to_its_view_and_its_dashboard(
    alert: str, labels: dict[str, str], page: str, dashboard: str, site: PageSite, tmp_path: Path
) -> None:
    texts = rendered(alert, labels, tmp_path)
    assert (texts["runbook_url"], texts["page"]) == (f"{PAGE}/runbooks/{alert}", PAGE + page)
    assert texts["dashboard"].startswith(f"{GRAFANA}/d/{dashboard}?")
    assert ask(site, page).status == 200
    assert ask(site, f"/runbooks/{alert}").status == 200


@pytest.mark.programs
@each_row("name", ["a b", "a/b&c=d#e?f", "a'b\"c", "süß 語", "100%", "{{ $value }}"])
def test_a_name_stays_one_part_of_the_address(name: str, tmp_path: Path) -> None:
    texts = rendered("GroupStopped", {"group": name, "topic": "payments"}, tmp_path)
    page, dashboard = urlsplit(texts["page"]), urlsplit(texts["dashboard"])
    assert (page.path, parse_qs(page.query)) == ("/groups", {"group": [name]})
    assert parse_qs(dashboard.query)["var-group"] == [name]


def test_every_alert_has_a_dashboard_that_is_there_and_one_link_of_each_kind() -> None:
    there = {each.stem for each in shipped(ShippedKind.DASHBOARDS)}
    for alert in ALERTS.values():
        assert dashboard_link(alert).partition("?")[0].removeprefix("/d/segtail-") in there
        filled = yaml.safe_load(with_addresses(ShippedKind.ALERTS, alert, FILLED))["groups"][0]["rules"][0]
        own = yaml.safe_load(alert.text)["groups"][0]["rules"][0]
        links = {"page": PAGE + page_link(alert), "dashboard": GRAFANA + dashboard_link(alert)}
        assert filled["annotations"] == own["annotations"] | links | {"runbook_url": f"{PAGE}/runbooks/{alert.stem}"}
        assert filled | {"annotations": {}} == own | {"annotations": {}}


def test_without_addresses_nothing_changes() -> None:
    for kind in ShippedKind:
        assert [with_addresses(kind, each, Addresses()) for each in shipped(kind)] == [each.text for each in shipped(kind)]
