"""Prints the packages of the machine or image that it runs in, as JSON: those of Debian, and those of the Python that runs it."""

import json
import platform
import subprocess
import sys
from importlib.metadata import distributions


def packages() -> list[dict[str, str]]:
    """Each with ``kind`` (deb or pypi), ``name``, ``version``, ``architecture`` and ``release``, sorted."""
    release = platform.freedesktop_os_release()
    here = f"{release['ID']}-{release.get('VERSION_ID', '')}"
    query = ["dpkg-query", "--show", "--showformat", "${db:Status-Status}\t${Package}\t${Version}\t${Architecture}\n"]
    lines = subprocess.run(query, check=True, capture_output=True, text=True).stdout.splitlines()
    debs = [line.split("\t")[1:] for line in lines if line.startswith("installed\t")]
    found = [{"kind": "deb", "name": name, "version": version, "architecture": arch, "release": here} for name, version, arch in debs]
    found += [{"kind": "pypi", "name": each.name.lower().replace("_", "-"), "version": each.version} for each in distributions()]
    return sorted(found, key=lambda each: (each["kind"], each["name"]))


if __name__ == "__main__":
    json.dump(packages(), sys.stdout)
