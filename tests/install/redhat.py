"""The RPM that `make rpm` built, and a bare root to install it into by `rpm --root`: Python 3.11 and nothing else, no network, as root.

It is a Debian, for images of RHEL come from registries: a package without files provides by name what RHEL's own would.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.image.containers import podman
from tests.install.built import ROOT
from tests.install.debian import BARE
from tests.tools import missing, require_tool

BUILT = ROOT / "build" / "rpm"
PROVIDED = ("python3.11", "shadow-utils", "/bin/sh", "libc.so.6(GLIBC_2.28)(64bit)", "libstdc++.so.6(GLIBCXX_3.4.22)(64bit)")
STUB = """Name: host
Version: 1
Release: 1
Summary: What the host has
License: none
BuildArch: noarch
Provides: {provided}
%description
Nothing.
%files
"""


def require_rpm() -> Path:
    """The package, or the test is given up."""
    require_tool("rpm")
    require_tool("rpmbuild")
    found = sorted(BUILT.glob("segtail-*.x86_64.rpm"))
    if len(found) != 1:
        missing(f"there is no RPM in {BUILT.relative_to(ROOT)} (make rpm)")
    if subprocess.run(podman("image", "exists", BARE)).returncode:
        missing(f"podman has no image {BARE} (make image)")
    return found[0]


def stub(folder: Path, provided: tuple[str, ...] = PROVIDED) -> Path:
    """A package without files that provides these names."""
    spec = folder / "host.spec"
    spec.write_text(STUB.format(provided=", ".join(provided)))
    subprocess.run([require_tool("rpmbuild"), "-bb", "--quiet", "--define", f"_topdir {folder}", spec], check=True)
    (built,) = folder.rglob("host-*.rpm")
    return built


@dataclass(frozen=True, slots=True)
class BareRoot:
    """A container that does nothing, and where its files lie on this machine."""

    container: str
    path: Path

    def rpm(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run this machine's rpm on the root; scripts of packages run inside of it."""
        command = [require_tool("rpm"), "--root", self.path, "--dbpath", "/var/lib/rpm", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script of sh, which ends at its first error, inside."""
        command = podman("exec", "--env=LANG=C.UTF-8", self.container, "sh", "-ec", script)
        return subprocess.run(command, capture_output=True, text=True, check=False)


@contextmanager
def bare_root(*volumes: str, shared: Path | None = None) -> Iterator[BareRoot]:
    """A root of its own, with these volumes read-only, and one folder that is the same inside and outside."""
    limits = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096")
    mounts = [f"--volume={volume}:ro" for volume in volumes] + ([f"--volume={shared}:{shared}"] if shared else [])
    start = podman("run", "--detach", "--rm", "--pull=never", "--network=none", *limits, *mounts, BARE, "sleep", "infinity")
    container = subprocess.run(start, check=True, capture_output=True, text=True).stdout.strip()
    try:
        mount = subprocess.run(podman("mount", container), check=True, capture_output=True, text=True).stdout.strip()
        yield BareRoot(container, Path(mount))
    finally:
        subprocess.run(podman("rm", "--force", "--time=0", container), check=True, capture_output=True)
