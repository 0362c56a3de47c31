"""A small disk of a test's own: a tmpfs in a mount namespace that ends with the test, so that nothing is left and nobody else is full."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.tools import missing

_READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && echo ready && exec cat'
_MOUNT = 'mount -t tmpfs -o size="$1" tmpfs "$2" && echo ready && exec cat'
_PIECES = (1 << 16, 1 << 12, 1)


class SmallDisk:
    """``before`` is the command that runs another where the disk is mounted; ``path`` is where it is mounted there."""

    def __init__(self, path: Path, holder: int) -> None:
        self.path = path
        self.before = _inside(holder)
        self._filler = Path(f"/proc/{holder}/root{path}/filler")

    def fill(self) -> None:
        """Leave no room at all."""
        with self._filler.open("ab", buffering=0) as filler:
            for size in _PIECES:
                try:
                    while True:
                        filler.write(bytes(size))
                except OSError:
                    continue

    def free(self) -> None:
        """Give back what `fill` took."""
        self._filler.unlink()


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[SmallDisk]:
    """A disk of ``size`` (as mount has it: 4m), mounted at ``path``, which is made. Needs root."""
    path.mkdir()
    with _mounted(_MOUNT, size, str(path)) as holder:
        yield SmallDisk(path, holder)


@contextmanager
def read_only(path: Path) -> Iterator[tuple[str, ...]]:
    """A command that runs another where nothing below ``path`` can be written. Needs root."""
    with _mounted(_READ_ONLY, str(path)) as holder:
        yield _inside(holder)


def _inside(holder: int) -> tuple[str, ...]:
    return ("nsenter", "--target", str(holder), "--mount")


@contextmanager
def _mounted(script: str, *arguments: str) -> Iterator[int]:
    """A process in a mount namespace of its own, which lasts as long as the block."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount anything")
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        stated = holder.stdout.readline().strip()
        if stated != "ready":
            missing(f"nothing can be mounted: {stated}")
        try:
            yield holder.pid
        finally:
            holder.stdin.close()
