"""What tests need from the machine beside Python."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

TO_GET = {
    "amtool": "apt-get install prometheus-alertmanager",
    "ansible-playbook": "apt-get install ansible-core",
    "bash": "apt-get install bash",
    "chromedriver": "apt-get install chromium-driver",
    "chromium": "apt-get install chromium",
    "dpkg": "apt-get install dpkg",
    "dpkg-deb": "apt-get install dpkg",
    "fincore": "apt-get install util-linux-extra",
    "git": "apt-get install git",
    "groff": "apt-get install groff-base",
    "hadolint": "make setup",
    "helm": "make tools",
    "helm-unittest": "make tools",
    "kubeconform": "make tools",
    "podman": "apt-get install podman runc mmdebstrap",
    "prometheus": "apt-get install prometheus",
    "prometheus-alertmanager": "apt-get install prometheus-alertmanager",
    "promtool": "apt-get install prometheus",
    "rpm": "apt-get install rpm",
    "rpmbuild": "apt-get install rpm",
    "rpmlint": "apt-get install rpmlint",
    "tmux": "apt-get install tmux",
    "systemd-analyze": "apt-get install systemd",
    "unshare": "apt-get install util-linux",
}
"""What brings each program that a test needs, on Debian."""


def find_tool(name: str) -> Path | None:
    """A program beside this Python or on the PATH."""
    found = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    return Path(found) if found else None


def require_tool(name: str) -> Path:
    """Finds a program, or gives the test up as `missing` does."""
    hint = f" ({TO_GET[name]})" if name in TO_GET else ""
    return find_tool(name) or missing(f"{name} is neither in .venv/bin nor on the PATH{hint}")


def missing(what: str) -> NoReturn:
    """Skips the test for want of something on a developer's machine; with ``CI=true`` that is a failure, never a silent skip."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}, and with CI=true every test has to run")
    pytest.skip(what)


NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user: run the tests as root")


@contextmanager
def nobody() -> Iterator[None]:
    """Root may read everything, so for a while it is a user without rights. Import before: the checkout may be root's own."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)
