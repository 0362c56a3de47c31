"""All times of alert rules, Alertmanager and segtail's options cut by one factor, so that a day of pages takes an hour.

A duration is shortened where it is one: ``for`` and ``keep_firing_for``, the brackets of a range or subquery, what follows ``offset``,
intervals of a configuration. Names, label values, texts and plain numbers stay as they are: what is compared with seconds in an expression
waits for the real seconds, because brokers do.
"""

import re
from datetime import timedelta
from fractions import Fraction
from typing import Any

from streaming.cluster.view import observer
from streaming.common.settings import Settings

_MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000, "y": 31_536_000_000}
_DURATION = r"(?:[0-9]+(?:ms|[smhdwy]))+"
_PART = re.compile(r"([0-9]+)(ms|[smhdwy])")

# What must not be looked into comes first: strings and comments.
_TOKEN = re.compile(
    r"""(?P<kept>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`|\#[^\n]*)"""
    rf"|(?P<range>\[\s*{_DURATION}\s*(?::\s*(?:{_DURATION})?\s*)?\])"
    rf"|(?P<offset>\boffset\s+-?\s*{_DURATION})",
    re.IGNORECASE,
)

KEPT_OPTIONS = frozenset({"ahead_limit"})
"""How far a clock is ahead is no time to wait for."""


def shorten_duration(text: str, factor: int) -> str:
    """A duration as Prometheus writes it, to the millisecond; what is not 0 stays above 0."""
    whole = _milliseconds_of(text)
    short = max(round(Fraction(whole, factor)), 1) if whole else 0
    parts = []
    for unit in ("h", "m", "s", "ms"):
        number, short = divmod(short, _MILLISECONDS[unit])
        parts += [f"{number}{unit}"] if number else []
    return "".join(parts) or "0s"


def seconds_of(duration: str) -> int:
    """A duration as Prometheus writes it, in whole seconds."""
    return _milliseconds_of(duration) // 1000


def _milliseconds_of(duration: str) -> int:
    return sum(int(number) * _MILLISECONDS[unit] for number, unit in _PART.findall(duration))


def shorten_expression(expression: str, factor: int) -> str:
    """PromQL whose ranges, subqueries and offsets look back for a shorter time."""

    def shorter(token: re.Match[str]) -> str:
        if token["kept"] is not None:
            return token[0]
        return re.sub(_DURATION, lambda duration: shorten_duration(duration[0], factor), token[0])

    return _TOKEN.sub(shorter, expression)


def shorten_rules(document: dict[str, Any], factor: int) -> dict[str, Any]:
    """A file of alerts or recording rules."""
    for group in document["groups"]:
        _shorten_values(group, ("interval",), factor)
        for rule in group["rules"]:
            rule["expr"] = shorten_expression(rule["expr"], factor)
            _shorten_values(rule, ("for", "keep_firing_for"), factor)
    return document


def shorten_prometheus(config: dict[str, Any], factor: int) -> dict[str, Any]:
    """Scrapes and evaluations as often for each shortened minute as they were for a whole one."""
    interval = shorten_duration(config["global"]["scrape_interval"], factor)
    evaluation = shorten_duration(config["global"]["evaluation_interval"], factor)
    config["global"].update(scrape_interval=interval, scrape_timeout=interval, evaluation_interval=evaluation)
    return config


def shorten_alertmanager(config: dict[str, Any], factor: int) -> dict[str, Any]:
    """Waits and repeats of the routes."""
    for route in (config["route"], *config["route"].get("routes", ())):
        _shorten_values(route, ("group_wait", "group_interval", "repeat_interval"), factor)
    return config


def shortened_options(factor: int) -> dict[str, str]:
    """Segtail's options that alerts wait for, by name, as a command line takes them."""
    found = {}
    for name in observer.SECONDS:
        default: timedelta = getattr(Settings(), name)
        if name not in KEPT_OPTIONS and default:
            found[name] = f"{default // timedelta(milliseconds=1) // factor}ms"
    return found


def _shorten_values(entry: dict[str, Any], names: tuple[str, ...], factor: int) -> None:
    entry.update({name: shorten_duration(entry[name], factor) for name in names if name in entry})
