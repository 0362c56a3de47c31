"""The configuration of conf/ with the addresses of one run and, for tests, with its times cut short."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.alerts.shortening import shorten_alertmanager, shorten_prometheus, shorten_rules

CONF = Path(__file__).resolve().parents[2] / "conf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where the parts of one run are, each as ``host:port``."""

    target: str
    prometheus: str
    alertmanager: str
    webhook: str


def write(directory: Path, addresses: Addresses, *, hurried: bool = False, factor: int = 1) -> None:
    """Write prometheus.yml, alertmanager.yml, rules/ and alerts/ into ``directory``, as conf/ has them but for the addresses.

    ``hurried`` is for tests: see `hurry_prometheus`, `hurry_alertmanager` and `hurry_rules`. Expressions and texts stay as they are, so
    what looks back over minutes still needs minutes. ``factor`` divides all times alike: see `tests.alerts.shortening`.
    """
    prometheus = _read(CONF / "prometheus.yml")
    prometheus["scrape_configs"][0]["static_configs"] = [{"targets": [addresses.target]}]
    prometheus["alerting"]["alertmanagers"][0]["static_configs"] = [{"targets": [addresses.alertmanager]}]
    alertmanager = _read(CONF / "alertmanager.yml")
    for receiver in alertmanager["receivers"]:
        for webhook in receiver["webhook_configs"]:
            webhook["url"] = f"http://{addresses.webhook}/"
    if hurried:
        hurry_prometheus(prometheus)
        hurry_alertmanager(alertmanager)
    _write(directory / "prometheus.yml", shorten_prometheus(prometheus, factor) if factor > 1 else prometheus)
    _write(directory / "alertmanager.yml", shorten_alertmanager(alertmanager, factor) if factor > 1 else alertmanager)
    for folder in ("rules", "alerts"):
        (directory / folder).mkdir()
        for source in (CONF / folder).glob("*.yaml"):
            if hurried:
                _write(directory / folder / source.name, hurry_rules(_read(source)))
            elif factor > 1:
                _write(directory / folder / source.name, shorten_rules(_read(source), factor))
            else:
                shutil.copy(source, directory / folder)


def set_targets(directory: Path, targets: Sequence[str]) -> None:
    """Write into the prometheus.yml of a run what it scrapes."""
    prometheus = _read(directory / "prometheus.yml")
    prometheus["scrape_configs"][0]["static_configs"] = [{"targets": list(targets)}]
    _write(directory / "prometheus.yml", prometheus)


def hurry_prometheus(config: dict[str, Any]) -> None:
    """Scrape and evaluate every second."""
    config["global"].update(scrape_interval="1s", scrape_timeout="1s", evaluation_interval="1s")


def hurry_alertmanager(config: dict[str, Any]) -> None:
    """Send a group a second after its first alert, and its changes a second apart."""
    for route in (config["route"], *config["route"]["routes"]):
        route.update(group_wait="1s", group_interval="1s")


def hurry_rules(document: dict[str, Any]) -> dict[str, Any]:
    """Seconds in place of every ``for`` and ``keep_firing_for``; as many as a busy machine may need for a scrape."""
    for group in document["groups"]:
        for rule in group["rules"]:
            rule.update({key: "5s" for key in ("for", "keep_firing_for") if key in rule})
    return document


def _read(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read


def _write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(document, sort_keys=False, width=1000), encoding="utf-8")
