"""What is shortened, and what is not."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from streaming.cluster.view import observer
from tests.alerts.rendering import CONF
from tests.alerts.shortening import (
    KEPT_OPTIONS,
    shorten_alertmanager,
    shorten_duration,
    shorten_expression,
    shorten_prometheus,
    shorten_rules,
    shortened_options,
)

_TIME = re.compile(r"\b(?:\d+(?:ms|[smhd]))+\b")
RULES = sorted([*(CONF / "alerts").glob("*.yaml"), *(CONF / "rules").glob("*.yaml")])


@pytest.mark.parametrize(
    ("text", "factor", "short"),
    [
        ("5m", 10, "30s"),
        ("15s", 10, "1s500ms"),
        ("1h30m", 6, "15m"),
        ("1d", 12, "2h"),
        ("1w", 7, "24h"),
        ("0s", 10, "0s"),
        ("1ms", 10, "1ms"),
        ("2m", 1, "2m"),
    ],
)
def test_a_duration(text: str, factor: int, short: str) -> None:
    assert shorten_duration(text, factor) == short


@given(milliseconds=st.integers(0, 10**9), factor=st.integers(1, 1000))
def test_a_duration_is_divided_to_the_millisecond(milliseconds: int, factor: int) -> None:
    short = shorten_duration(f"{milliseconds}ms", factor)
    assert shorten_duration(short, 1) == short
    units = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
    whole = sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)(ms|[hms])", short))
    assert abs(whole * factor - milliseconds) < factor


@pytest.mark.parametrize(
    ("expression", "short"),
    [
        ("rate(x[15m]) > 60", "rate(x[1m30s]) > 60"),
        ("x offset 1h", "x offset 6m"),
        ("x offset -1h", "x offset -6m"),
        ("max_over_time(rate(x[5m])[1h:1m])", "max_over_time(rate(x[30s])[6m:6s])"),
        ("max_over_time(x[1h:])", "max_over_time(x[6m:])"),
        ("partition:x:rate15m[10m]", "partition:x:rate15m[1m]"),
        ('x{a="offset 1h",b="[5m]"}[5m]', 'x{a="offset 1h",b="[5m]"}[30s]'),
        (r'x{a="\"[5m]",b=' + "'[5m]'}[5m]", r'x{a="\"[5m]",b=' + "'[5m]'}[30s]"),
        ("x # not [5m]\n[5m]", "x # not [5m]\n[30s]"),
        ("time() - x > 2 * y", "time() - x > 2 * y"),
        ("offset_5m[5m]", "offset_5m[30s]"),
    ],
)
def test_an_expression(expression: str, short: str) -> None:
    assert shorten_expression(expression, 10) == short


def changed(path: Path) -> Iterator[tuple[str, set[str]]]:
    """What is another one in shortened rules, but for the times that are to be."""

    def rules(factor: int) -> list[dict[str, Any]]:
        document = shorten_rules(yaml.safe_load(path.read_text()), factor)
        return [rule for group in document["groups"] for rule in group["rules"]]

    for before, after in zip(rules(1), rules(7), strict=True):
        same = _TIME.sub("T", before.pop("expr")) == _TIME.sub("T", after.pop("expr"))
        times = {name for name in before if before[name] != after[name]}
        if wrong := (set() if same else {"expr"}) | times ^ ({"for", "keep_firing_for"} & before.keys()):
            yield path.stem, wrong


def test_nothing_but_times_changes_in_the_rules() -> None:
    assert len(RULES) > 30
    assert [each for path in RULES for each in changed(path)] == []


def test_a_rule_keeps_its_labels_and_texts() -> None:
    rule = {
        "alert": "A",
        "expr": "x[10m]",
        "for": "5m",
        "keep_firing_for": "2m",
        "labels": {"after": "5m"},
        "annotations": {"description": "in the last 10m: {{ query `x[10m]` }}"},
    }
    (group,) = shorten_rules({"groups": [{"name": "A", "interval": "1m", "rules": [rule]}]}, 10)["groups"]
    assert group["interval"] == "6s"
    (short,) = group["rules"]
    assert (short["expr"], short["for"], short["keep_firing_for"]) == ("x[1m]", "30s", "12s")
    assert short["labels"] == {"after": "5m"}
    assert short["annotations"] == {"description": "in the last 10m: {{ query `x[10m]` }}"}


def test_the_configurations() -> None:
    prometheus = shorten_prometheus({"global": {"scrape_interval": "15s", "evaluation_interval": "15s"}}, 10)
    assert prometheus["global"] == {"scrape_interval": "1s500ms", "scrape_timeout": "1s500ms", "evaluation_interval": "1s500ms"}
    routes = {"route": {"group_wait": "30s", "routes": [{"repeat_interval": "4h"}, {"group_interval": "5m"}]}}
    short = shorten_alertmanager(routes, 10)["route"]
    assert short == {"group_wait": "3s", "routes": [{"repeat_interval": "24m"}, {"group_interval": "30s"}]}


def test_every_option_that_alerts_wait_for_is_shortened() -> None:
    options = shortened_options(10)
    assert options["hanging_after"] == "90000ms"
    assert set(options) | KEPT_OPTIONS == set(observer.SECONDS)
