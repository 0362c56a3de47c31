"""A place in memory for what a property test writes: hundreds of journals, each written through to its disk at every commit."""

import os
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A directory that is gone when its block ends, or by ``cleanup``; on the disk where the machine has none in memory."""
    return tempfile.TemporaryDirectory(prefix="segtail-test-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
