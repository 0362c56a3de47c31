"""What of a file the kernel holds."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.tools import require_tool


def resident(files: Sequence[Path]) -> int:
    """Bytes of these files in the page cache."""
    command = [str(require_tool("fincore")), "--bytes", "--noheadings", "--output", "RES", *map(str, files)]
    return sum(map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()))
