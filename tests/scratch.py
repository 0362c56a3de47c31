"""A place in memory for what a property test writes: hundreds of journals, each written through to its disk at every commit."""

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

_MEMORY = Path("/dev/shm")
_LEAST_BYTES = 512 << 20  # a container may have 64 MiB of it
_PREFIX = "segtail-test-"


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A directory that is gone when its block ends, or by ``cleanup``; on the disk where the machine has none in memory."""
    return tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-", dir=_memory())


@cache
def _memory() -> Path | None:
    """Where to write, without what runs that were killed have left there."""
    if not os.access(_MEMORY, os.W_OK):
        return None
    for left in _MEMORY.glob(f"{_PREFIX}*-*"):
        if not Path("/proc", left.name.removeprefix(_PREFIX).partition("-")[0]).exists():
            shutil.rmtree(left, ignore_errors=True)
    return _MEMORY if shutil.disk_usage(_MEMORY).free >= _LEAST_BYTES else None
