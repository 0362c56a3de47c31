"""Prints what each file of a release is for, as a part of its notes: ``python -m install.release.listing DIR``."""

import sys
from fnmatch import fnmatch
from pathlib import Path

from streaming.common.units import format_size

NOTES = "RELEASE_NOTES.md"
_USES = {
    "segtail-*.pyz": (
        "commands on log dirs for this Python (py311 is 3.11) and machine, to copy to a host: `python3 FILE top`; "
        "unpacks 240 MB into `~/.cache/segtail`, or where `SEGTAIL_UNPACKED` says"
    ),
    "segtail_*.deb": "agent and commands for Debian 12: `apt install ./FILE`",
    "segtail-*.rpm": "agent and commands for RHEL 9: `dnf install ./FILE`",
    "*.whl": "all, for pip: `pip install './FILE[spark]'`",
    "kafka_segment_tail-*.tar.gz": "the source, with the files that the notes name: `tar -xzf FILE`",
    "segtail-look-image-*.tar": "a small image with commands alone, for `kubectl debug`: `podman load --input FILE`",
    "segtail-image-*.tar": "the image of agent and job: `podman load --input FILE`",
    "*.cdx.json": "what is in an image (CycloneDX)",
    "segtail-dashboards-*": "dashboards for Grafana",
    "segtail-ansible-*": "a role of Ansible",
    "segtail-*.tgz": "the Helm chart: `helm install segtail FILE`",
}


def listing(folder: Path) -> str:
    """A table of all files but the notes.

    Raises:
        ValueError: nobody has said what a file is for.
    """
    rows = []
    for file in sorted(each for each in folder.iterdir() if each.name != NOTES):
        use = next((use for pattern, use in _USES.items() if fnmatch(file.name, pattern)), None)
        if use is None:
            raise ValueError(f"{file.name}: write what it is for in install/release/listing.py")
        rows.append(f"| `{file.name}` | {format_size(file.stat().st_size)} | {use.replace('FILE', file.name)} |\n")
    return "\n## Files\n\n`sha256sum --check SHA256SUMS` says whether they are whole.\n\n| | | |\n|---|---|---|\n" + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(listing(Path(sys.argv[1])))
