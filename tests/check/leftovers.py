"""A plugin of pytest that ends what a run has started and left: one that is interrupted does not get to the ends of its fixtures.

Processes of tests have sessions of their own, so that Ctrl-C does not reach them. Each inherits a word of its run in its environment, by
which it is found. A run that gets to its end leaves nothing; what is found there is named.
"""

import os
import signal
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

_NAME = "TEST_RUN"
_PROCESSES = Path("/proc")
_SHOWN = 160
"""So many characters of a command line are shown."""

_WORD = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # processes of pytest-xdist have the word from their controller
        config.stash[_WORD] = f"{_NAME}={uuid.uuid4()}"
        os.environ[_NAME] = config.stash[_WORD].partition("=")[2]


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if not (word := config.stash.get(_WORD, "")):
        return
    for pid, command in left(word):
        with suppress(ProcessLookupError):  # it ended meanwhile
            os.kill(pid, signal.SIGKILL)
            config.get_terminal_writer().line(f"left by the tests, and ended: {command:.{_SHOWN}}")


def left(word: str) -> Iterator[tuple[int, str]]:
    """The processes that have a word in their environment, with their command lines; none where the system does not tell."""
    for entry in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if word.encode() in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
