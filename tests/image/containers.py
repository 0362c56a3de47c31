"""The container image that `make image` built, run by podman without a network, without rights and with a read-only file system."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.tools import missing, require_tool

IMAGE = "localhost/segtail:latest"


def podman(*arguments: str | Path) -> list[str | Path]:
    """A command of podman; runc, where it is, takes hosts that crun refuses."""
    runc = shutil.which("runc")
    return [require_tool("podman"), *(["--runtime", runc] if runc else []), *arguments]


def require_image() -> None:
    """Gives the test up where there is no image."""
    if subprocess.run(podman("image", "exists", IMAGE)).returncode:
        missing(f"podman has no image {IMAGE} (make image)")


def command(*arguments: str | Path, options: Sequence[str | Path] = (), network: str = "none") -> list[str | Path]:
    """The command that runs the image as a cluster would that trusts it with nothing."""
    return podman(
        "run",
        "--rm",
        "--pull=never",
        f"--network={network}",
        "--read-only",
        "--read-only-tmpfs=false",
        "--tmpfs=/tmp:exec,mode=1777",
        "--cap-drop=all",
        "--security-opt=no-new-privileges",
        "--ulimit=nofile=1024:1024",
        "--ulimit=nproc=4096:4096",
        *options,
        IMAGE,
        *arguments,
    )


def run(*arguments: str | Path, options: Sequence[str | Path] = ()) -> subprocess.CompletedProcess[str]:
    """Runs the image to its end, whatever that is."""
    return subprocess.run(command(*arguments, options=options), capture_output=True, text=True)
