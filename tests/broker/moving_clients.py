"""Java clients for groups that move, in a process of their own: what coordinators answer, and what Python's clients cannot do."""

import subprocess
from contextlib import closing
from pathlib import Path

from tests.broker.install import compiled, java_command
from tests.broker.lab import Lab

_SOURCES = Path(__file__).parent / "moving_java"


class MovingClients(Lab):
    """As `Lab`, with the requests of `Moving.java`."""

    def __init__(self, bootstrap: str, stderr: Path) -> None:
        command = java_command("Moving", bootstrap, classes=compiled(_SOURCES))
        with stderr.open("wb") as written:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=written, text=True)


def moving_clients(bootstrap: str, stderr: Path) -> closing[MovingClients]:
    """Those of one process, which does not outlive the block."""
    return closing(MovingClients(bootstrap, stderr))
