"""Writes what the chart has from elsewhere: the schema of its values, alerts, rules and dashboards, its version of the image.

``python helm/generate.py [CHART]`` writes into the chart, or into another folder: a test compares the two.
"""

import json
import re
import shutil
import sys
from base64 import b64encode
from pathlib import Path

import yaml

import streaming
from streaming.common.settings import OPTIONS, Option
from streaming.shipped.addresses import dashboard_link, page_link
from streaming.shipped.shipped_files import ShippedKind, shipped

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "helm" / "segtail"
ICON = ROOT / "streaming" / "pages" / "site" / "static" / "icon.svg"
OWN_OPTIONS = frozenset(
    (
        *("log_dirs", "checkpoint", "spark_checkpoint", "listen", "web_config", "metrics_listen", "master", "spark"),
        *("agents", "agent_ca", "agent_cert", "agent_key", "agent_token_file"),
        *("job", "public_url", "class_archives"),
        *("tls_cert", "tls_key", "tls_client_ca", "token_file"),
    )
)
"""Options that the chart sets itself, from values of its own, or the image does."""

AGENT_OPTIONS = frozenset(
    (
        *("read_rate", "groups_limit", "ladder_rate", "scrub_rate", "scrub_every", "producers_limit", "redact_ids"),
        *("log_level", "log_format", "server_properties", "broker_config"),
    )
)
"""Those of the others that an agent reads: it gets no more, so that a change for the job alone starts no agent anew."""


def write(chart: Path) -> None:
    """Write everything that is generated, from the sources in this checkout."""
    files = chart / "files"
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir(parents=True)
    for source in sources():
        target = files / source.parent.name / source.name
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(source, target)
    (files / "agent-options.yaml").write_text(yaml.safe_dump(sorted(AGENT_OPTIONS)))
    (files / "links.yaml").write_text(yaml.safe_dump(links(), width=1000))
    (chart / "values.schema.json").write_text(json.dumps(schema(), indent=1, ensure_ascii=False) + "\n")
    text = (CHART / "Chart.yaml").read_text()
    text = re.sub(r"(?m)^appVersion: .*$", f'appVersion: "{streaming.__version__}"', text)
    (chart / "Chart.yaml").write_text(re.sub(r"(?m)^icon: .*$", f"icon: {icon()}", text))


def icon() -> str:
    """The page's icon, as an address that holds it."""
    return f"data:image/svg+xml;base64,{b64encode(ICON.read_bytes()).decode()}"


def sources() -> list[Path]:
    """What of conf/ belongs into the chart: files of rules, not their tests, and dashboards."""
    rules = [path for folder in ("alerts", "rules") for path in sorted((ROOT / "conf" / folder).glob("*.y*ml")) if _has_groups(path)]
    return rules + sorted((ROOT / "conf" / "dashboards").glob("*.json"))


def _has_groups(path: Path) -> bool:
    return "groups" in (yaml.safe_load(path.read_text()) or {})


def schema() -> dict[str, object]:
    """The schema of values.yaml, with segtail's own options under ``config``."""
    whole: dict[str, object] = yaml.safe_load((ROOT / "helm" / "values.schema.yaml").read_text())
    options = {name: _of(option) for name, option in OPTIONS.items() if name not in OWN_OPTIONS}
    groups = {group for group, dot, _ in map(_parted, options) if dot}
    for group in sorted(groups):  # export.topics may be written as a mapping too
        options[group] = _closed({rest: form for name, form in options.items() for first, _, rest in [_parted(name)] if first == group})
    properties = whole["properties"]
    assert isinstance(properties, dict)
    properties["config"] = _closed(options)
    rule = properties["monitoring"]["properties"]["prometheusRule"]["properties"]
    rule["overrides"] = _closed({each.stem: {"$ref": "#/definitions/override"} for each in shipped(ShippedKind.ALERTS)})
    return whole


def links() -> dict[str, dict[str, str]]:
    """Where each alert leads, for the chart to put behind the addresses of an installation."""
    return {each.stem: {"page": page_link(each), "dashboard": dashboard_link(each)} for each in shipped(ShippedKind.ALERTS)}


def _parted(name: str) -> tuple[str, str, str]:
    return name.partition(".")


def _closed(properties: dict[str, dict[str, object]]) -> dict[str, object]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


_SCALARS: dict[str, object] = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
_FORMS: dict[str, dict[str, object]] = {
    "true or false": {"type": "boolean"},
    "auto or a duration": {"type": "string", "pattern": "^(auto|[0-9]{1,15} ?(ms|s|m|h|d))$"},
    "a duration": {"type": "string", "pattern": "^[0-9]{1,15} ?(ms|s|m|h|d)$"},
    "a size": {"type": ["string", "integer"], "pattern": "^[0-9]{1,15} ?([KMGT]iB)?$", "minimum": 1},
    "0 or a size": {"type": ["string", "integer"], "pattern": "^[0-9]{1,15} ?([KMGT]iB)?$", "minimum": 0},
    "a regular expression": {"type": "string"},
    "files": {"type": "array", "items": {"type": "string", "pattern": "^/"}},
    "a mapping of names to URIs": {
        "type": "object",
        "additionalProperties": {
            "oneOf": [
                {"type": "string", "minLength": 1},
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["uri"],
                    "properties": {
                        "uri": {"type": "string", "minLength": 1},
                        "isolation": {"enum": ["read_committed", "read_uncommitted"]},
                    },
                },
            ]
        },
    },
    "a mapping of a broker's configurations": _SCALARS,
    "a mapping of regular expressions to mappings": {"type": "object", "additionalProperties": _SCALARS},
}
"""What a value looks like, by how the words for what an option accepts begin."""


def _of(option: Option) -> dict[str, object]:
    """The schema of one option, read off the words for what it accepts."""
    accepts = option.form.accepts
    for words, form in _FORMS.items():
        if accepts.startswith(words):
            return {"description": option.description, **form}
    numbers = [float(number) if "." in number else int(number) for number in re.findall(r"[0-9]+(?:\.[0-9]+)?", accepts)]
    limit = {"maximum": numbers[1]} if len(numbers) > 1 else {}
    match accepts.split():
        case ["one", "of", *_]:
            form = {"enum": accepts.removeprefix("one of ").split(", ")}
        case ["some", "of", *_]:
            form = {"type": "array", "items": {"enum": accepts.removeprefix("some of ").split(", ")}}
        case ["auto", "or", "a", "whole", *_]:
            form = {"type": ["string", "integer"], "pattern": "^auto$", "minimum": numbers[0], **limit}
        case ["a", "whole", *_]:
            form = {"type": "integer", "minimum": numbers[0], **limit}
        case ["a", "number", "above", *_]:
            form = {"type": "number", "exclusiveMinimum": numbers[0], **limit}
        case _:
            raise ValueError(f"{option.name} accepts {accepts!r}, of which no schema is known here; or is it the chart's to set?")
    return {"description": option.description, **form}


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else CHART)
