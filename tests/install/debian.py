"""The Debian package that `make deb` built, and a bare Debian to install it in: Python and nothing else, no network, as root."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.image.containers import podman
from tests.install.built import ROOT
from tests.tools import missing, require_tool

BARE = "localhost/segtail-python:latest"
BUILT = ROOT / "build" / "deb"
WHEELS = ROOT / "build" / "payload" / "wheels"


def require_package() -> Path:
    """The package, or the test is given up; one of another state of the checkout is a failure."""
    require_tool("dpkg-deb")
    found = sorted(BUILT.glob("segtail_*_amd64.deb"))
    if len(found) != 1:
        missing(f"there is no Debian package in {BUILT.relative_to(ROOT)} (make deb)")
    if subprocess.run(podman("image", "exists", BARE)).returncode:
        missing(f"podman has no image {BARE} (make image)")
    return found[0]


def extracted(package: Path, folder: Path) -> Path:
    """The files of the package, below a folder."""
    subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
    return folder


def in_bare_debian(script: str, *volumes: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run a script of sh, which ends at its first error, where only these volumes are added, read-only. ``options`` are podman's."""
    limits = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096")
    mounts = [f"--volume={volume}:ro" for volume in volumes]
    isolated = podman("run", "--rm", "--pull=never", "--network=none", *limits, *mounts, *options, "--env=LANG=C.UTF-8")
    command = [*isolated, BARE, "sh", "-ec", script]
    return subprocess.run(command, capture_output=True, text=True, check=False)
