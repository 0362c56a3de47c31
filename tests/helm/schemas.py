"""JSON schemas for kubeconform: Kubernetes' own out of a package, those of custom resources out of their definitions; no network."""

import importlib.util
import json
from pathlib import Path

import yaml

from tests.helm.charts import SHARE
from tests.tools import missing

KUBERNETES = "1.36"


def locations(folder: Path) -> list[str]:
    """Write the schemas into a folder; returns kubeconform's arguments to find them."""
    kubernetes, custom = folder / "kubernetes", folder / "custom"
    _kubernetes(kubernetes / f"v{KUBERNETES}.0-standalone-strict")
    _custom(custom)
    return [
        "-kubernetes-version",
        f"{KUBERNETES}.0",
        "-schema-location",
        f"{kubernetes}/{{{{.NormalizedKubernetesVersion}}}}-standalone{{{{.StrictSuffix}}}}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json",
        "-schema-location",
        f"{custom}/{{{{.Group}}}}/{{{{.ResourceKind}}}}_{{{{.ResourceAPIVersion}}}}.json",
    ]


def _kubernetes(target: Path) -> None:
    package = importlib.util.find_spec("kubernetes_validate")
    if package is None or package.origin is None:
        missing("the package kubernetes-validate is not installed")
    target.mkdir(parents=True)
    source = Path(package.origin).parent / "kubernetes-json-schema" / f"v{KUBERNETES}.0-local-strict"
    for file in source.glob("*.json"):
        (target / file.name).write_text(json.dumps(_flat(json.loads(file.read_text()), target)))


def _flat(node: object, target: Path) -> object:
    """The same with references to files instead of to places on a server, which there is not."""
    if isinstance(node, list):
        return [_flat(each, target) for each in node]
    if not isinstance(node, dict):
        return node
    flat: dict[str, object] = {}
    for key, value in node.items():
        if key == "$ref" and isinstance(value, str) and value.startswith("/api/"):
            path, _, fragment = value.removeprefix("/api/").partition("#")
            flat[key] = f"file://{target}/{path}#{fragment}"
        elif not (key == "$id" and isinstance(value, str)):
            flat[key] = _flat(value, target)
    return flat


def _custom(target: Path) -> None:
    definitions = sorted((SHARE / "crds").glob("*.yaml"))
    if not definitions:
        missing(f"there are no definitions of custom resources in {SHARE / 'crds'} (make tools)")
    for file in definitions:
        for definition in filter(None, yaml.safe_load_all(file.read_text())):
            spec = definition["spec"]
            for version in spec["versions"]:
                schema = _strict(version["schema"]["openAPIV3Schema"])
                assert isinstance(schema, dict)
                schema["properties"] |= {"metadata": {"type": "object"}, "apiVersion": {"type": "string"}, "kind": {"type": "string"}}
                path = target / spec["group"] / f"{spec['names']['kind'].lower()}_{version['name']}.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(schema))


def _strict(node: object) -> object:
    """The same, refusing fields that are not named: what the API server does with them is to drop them."""
    if isinstance(node, list):
        return [_strict(each) for each in node]
    if not isinstance(node, dict):
        return node
    strict = {key: _strict(value) for key, value in node.items()}
    if "properties" in strict and "additionalProperties" not in strict and not strict.get("x-kubernetes-preserve-unknown-fields"):
        strict["additionalProperties"] = False
    if strict.get("x-kubernetes-int-or-string"):
        strict.pop("type", None)
        strict.pop("format", None)
    return strict
