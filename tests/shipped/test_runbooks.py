"""Runbooks by their names, and the list of all."""

from pathlib import Path

from streaming.shipped.runbooks import entries, find_runbook, runbooks
from streaming.shipped.shipped_files import ShippedKind, shipped

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_shipped_is_what_the_checkout_has() -> None:
    folders = {
        ShippedKind.ALERTS: "conf/alerts",
        ShippedKind.RULES: "conf/rules",
        ShippedKind.DASHBOARDS: "conf/dashboards",
        ShippedKind.MIGRATION: "conf/migration",
        ShippedKind.RUNBOOKS: "docs/runbooks",
    }
    for kind, folder in folders.items():
        there = {path.name: path.read_text() for path in (ROOT / folder).iterdir()}
        assert {each.name: each.text for each in shipped(kind)} == there
    assert [each.name for each in shipped(ShippedKind.EXAMPLES)] == [
        "alertmanager.yml",
        "keda.yaml",
        "otel-collector.yaml",
        "prometheus.yml",
    ]


def test_the_list_has_a_line_for_every_runbook_and_every_alert() -> None:
    names = sorted(each.name for each in entries())
    assert names == sorted(each.name for each in runbooks()) == sorted(each.stem for each in shipped(ShippedKind.ALERTS))
    assert all(each.meaning and set(each.severity.split(" or ")) <= {"critical", "warning", "info"} for each in entries())


def test_the_list_itself_is_none_of_them() -> None:
    assert find_runbook("README") is None
    assert find_runbook("GroupStopped.md") == find_runbook("GroupStopped") is not None
