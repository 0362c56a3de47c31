"""The container image that `make image` built, run by podman without a network, without rights and with a read-only file system."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.tools import missing, require_tool

ROOT = Path(__file__).resolve().parents[2]
IMAGE, LOOK = "localhost/segtail:latest", "localhost/segtail-look:latest"


def podman(*arguments: str | Path) -> list[str | Path]:
    """A command of podman; runc, where it is, takes hosts that crun refuses."""
    runc = shutil.which("runc")
    return [require_tool("podman"), *(["--runtime", runc] if runc else []), *arguments]


def require_image(image: str = IMAGE) -> None:
    """Gives the test up where there is no image."""
    if subprocess.run(podman("image", "exists", image)).returncode:
        missing(f"podman has no image {image} (make image)")


def command(*arguments: str | Path, options: Sequence[str | Path] = (), network: str = "none", image: str = IMAGE) -> list[str | Path]:
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
        image,
        *arguments,
    )


def run(*arguments: str | Path, options: Sequence[str | Path] = (), image: str = IMAGE) -> subprocess.CompletedProcess[str]:
    """Runs the image to its end, whatever that is."""
    return subprocess.run(command(*arguments, options=options, image=image), capture_output=True, text=True)
