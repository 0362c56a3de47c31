"""Every alert fires and stays although scrapes fail, and once where two jobs see the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alerts.promtool import TESTS, passes
from tests.alerts.rendering import CONF
from tests.alerts.scrape_faults import AWAY, away, expanded, failing, firing_cases, with_faults, with_twin
from tests.tables import each_row

ALERTS = sorted(path.stem for path in (CONF / "alerts").glob("*.yaml"))

ABOUT_ITSELF = frozenset({"ObserverDown", "Watchdog"})
"""Alerts about scrapes: these faults are what they are about."""
OF_EACH = frozenset({"ObserverRestarting"})
"""Those of which a twin has one of its own."""

Made = Callable[[dict[str, Any], int, int], dict[str, Any]]


def _fires(alert: str, within: str, *, lowest: bool = False) -> str:
    """How many alerts fire within the last minutes: the most, or the fewest."""
    count = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})'
    return f"min_over_time(({count} or vector(0))[{within}:1m])" if lowest else f"max_over_time({count}[{within}:1m])"


def _failing(alert: str) -> Made:
    def made(case: dict[str, Any], first: int, count: int) -> dict[str, Any]:
        series = with_faults(case, failing)
        return _test(case, series, _fires(alert, "6m"), first + 6, count)

    return made


def _twin(alert: str) -> Made:
    def made(case: dict[str, Any], first: int, count: int) -> dict[str, Any]:
        return _test(case, with_twin(case), _fires(alert, "3m"), first, count)

    return made


def _restart(alert: str) -> Made:
    def made(case: dict[str, Any], first: int, count: int) -> dict[str, Any]:
        series = with_faults(case, away(first + 1))
        return _test(case, series, _fires(alert, f"{AWAY}m", lowest=True), first + AWAY, count)

    return made


def _test(case: dict[str, Any], series: list[dict[str, str]], expression: str, at: int, count: int) -> dict[str, Any]:
    asked = {"expr": expression, "eval_time": f"{at}m", "exp_samples": [{"labels": "{}", "value": count}]}
    return {"name": case["name"], "interval": "1m", "input_series": series, "promql_expr_test": [asked]}


@pytest.mark.programs
@pytest.mark.slow
@pytest.mark.parametrize("made", [_failing, _twin, _restart], ids=["failing scrapes", "a twin", "a restart"])
def test_an_alert_fires_all_the_same(made: Callable[[str], Made], tmp_path: Path) -> None:
    left_out = ABOUT_ITSELF | (OF_EACH if made is _twin else frozenset())
    alerts = [alert for alert in ALERTS if alert not in left_out]
    firing = {alert: next(iter(firing_cases(yaml.safe_load((TESTS / f"{alert}.yaml").read_text())["tests"])), None) for alert in alerts}
    cases = {alert: [made(alert)(*case)] for alert, case in firing.items() if case}
    assert len(cases) > 30
    passes(cases, tmp_path)


@each_row(
    "values, samples",
    [
        ("1x2 stale _x2 5", ["1.0", "1.0", "1.0", "stale", "_", "_", "5"]),
        ("0+60x2", ["0.0", "60.0", "120.0"]),
        ("7200-60x1", ["7200.0", "7140.0"]),
        ("_ 3", ["_", "3"]),
    ],
)
def test_values_are_expanded_as_promtool_does(values: str, samples: list[str]) -> None:
    assert expanded(values) == samples


def test_a_fault_leaves_what_is_not_there_alone() -> None:
    assert failing(["1"] * 4 + ["_"] + ["1"] * 5) == ["1"] * 4 + ["_"] + ["1"] * 4 + ["stale"]
    assert away(2)(["1"] * 8) == ["1", "1", "stale", "_", "1", "1", "1", "1"]
