"""Prints the SBOM of an image, as CycloneDX JSON: ``podman run ... IMAGE < install/inventory.py | python -m install.sbom NAME VERSION``.

Its input is what install/inventory.py prints inside of the image: the packages of Debian and of Python, and the jars, that are
really there. The same packages give the same file but for its time.
"""

import json
import sys
import uuid
from collections.abc import Iterable

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL


def bom(name: str, version: str, packages: Iterable[dict[str, str]]) -> Bom:
    """The SBOM of an image from its packages, as install/inventory.py describes them."""
    components = [_component(package) for package in packages]
    whole = Component(name=name, version=version, type=ComponentType.CONTAINER, bom_ref="image")
    made = Bom(components=components)
    made.metadata.component = whole
    refs = "\n".join(sorted(f"{each.purl}" for each in components))
    made.serial_number = uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {version}\n{refs}")
    made.register_dependency(whole, components)
    return made


def _component(package: dict[str, str]) -> Component:
    if package["kind"] == "deb":
        told = {"arch": package["architecture"], "distro": package["release"]}
        purl = PackageURL("deb", "debian", package["name"], package["version"], told)
    elif package["kind"] == "maven":
        told = {"type": "jar", "classifier": package["classifier"]} if package["classifier"] else {"type": "jar"}
        purl = PackageURL("maven", package["group"] or None, package["name"], package["version"], told)
    else:
        purl = PackageURL("pypi", None, package["name"], package["version"])
    return Component(
        group=package.get("group") or None,
        name=package["name"],
        version=package["version"],
        type=ComponentType.LIBRARY,
        purl=purl,
        bom_ref=f"{purl}#{package['sha256']}" if "sha256" in package else str(purl),  # two builds of one version may be there
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=package["sha256"])] if "sha256" in package else [],
    )


if __name__ == "__main__":
    sys.stdout.write(JsonV1Dot6(bom(sys.argv[1], sys.argv[2], json.load(sys.stdin))).output_as_string(indent=1) + "\n")
