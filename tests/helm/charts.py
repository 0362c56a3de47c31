"""The chart as the tests render it, with the tools that `make tools` builds."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.tools import require_tool

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "segtail"
CASES = sorted((CHART / "ci").glob("*-values.yaml"))
SHARE = Path(sys.prefix) / "share" / "segtail"

RELEASE = "rel"
NAMESPACE = "kafka"

Manifest = dict[str, Any]


def run(name: str, *arguments: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a tool to its end, whatever that is."""
    return subprocess.run([require_tool(name), *arguments], input=given, capture_output=True, text=True, cwd=ROOT)


def template(
    values: Mapping[str, object] | None = None, *files: Path, chart: Path = CHART, show: str = ""
) -> subprocess.CompletedProcess[str]:
    """Renders the chart."""
    arguments: list[str | Path] = ["template", RELEASE, chart, "--namespace", NAMESPACE]
    for file in files:
        arguments += ["--values", file]
    if show:
        arguments += ["--show-only", show]
    return run("helm", *arguments, "--values", "-", given=json.dumps(values or {}))


def render(values: Mapping[str, object] | None = None, *files: Path, chart: Path = CHART, show: str = "") -> list[Manifest]:
    """What is rendered; the chart has to take the values."""
    done = template(values, *files, chart=chart, show=show)
    assert done.returncode == 0, done.stderr
    return [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]


def named(manifests: list[Manifest], kind: str, name: str) -> Manifest:
    """The one of that kind and name."""
    (found,) = [each for each in manifests if each["kind"] == kind and each["metadata"]["name"] == name]
    return found


def pods(manifests: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """The specification of every pod, by the component that it belongs to, those of Spark's executors included."""
    for each in manifests:
        if each["kind"] in ("CronJob", "DaemonSet", "StatefulSet"):
            template = each["spec"].get("jobTemplate", each)["spec"]["template"]
            yield template["metadata"]["labels"]["app.kubernetes.io/component"], template["spec"]
        if each["kind"] == "ConfigMap" and "executor.yaml" in each["data"]:
            executor = yaml.safe_load(each["data"]["executor.yaml"])
            yield executor["metadata"]["labels"]["app.kubernetes.io/component"], executor["spec"]


def settings(manifests: list[Manifest], component: str) -> Manifest:
    """segtail.yaml of agent or job."""
    read: Manifest = yaml.safe_load(named(manifests, "ConfigMap", f"{RELEASE}-segtail-{component}")["data"]["segtail.yaml"])
    return read
